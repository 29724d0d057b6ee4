#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "features/framework/runtime_features.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// Runs once, on the runtime's loop, never inside the call that took it.
template <typename T>
using RuntimeCallback = absl::AnyInvocable<void(Result<T>)>;

enum class SandboxState { kReady, kNotReady };

struct PodSandbox {
  std::string id;
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::uint32_t attempt = 0;
  SandboxState state = SandboxState::kNotReady;
  WallTime created_at{};
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

enum class ContainerState { kCreated, kRunning, kExited, kUnknown };
std::string_view ContainerStateName(ContainerState state);

// Why a container ended, in the words of Kubernetes' terminated reason.
inline constexpr std::string_view kReasonCompleted = "Completed";
inline constexpr std::string_view kReasonError = "Error";
inline constexpr std::string_view kReasonOomKilled = "OOMKilled";
inline constexpr std::string_view kReasonStartError = "StartError";
inline constexpr std::string_view kReasonContainerStatusUnknown = "ContainerStatusUnknown";

struct ContainerStatus {
  std::string id;
  std::string sandbox_id;
  std::string name;
  std::uint32_t attempt = 0;
  ContainerState state = ContainerState::kUnknown;
  int pid = 0;  // on the host, while running
  WallTime created_at{};
  WallTime started_at{};   // zero: not started
  WallTime finished_at{};  // zero: not finished
  int exit_code = 0;       // 128 + signal when killed by one
  std::string reason;
  std::string message;
  std::string image;     // as asked for
  std::string image_id;  // "sha256:..."
  std::string log_path;  // absolute
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

struct ExecResult {
  int exit_code = 0;
  std::string output;
  std::string error_output;
};

// Which streams of a process somebody wants, and how.
struct StreamOptions {
  bool standard_input = false;
  bool standard_output = false;
  bool error_output = false;  // with a terminal: part of standard output
  bool terminal = false;
};

enum class OutputStream { kStandard, kError };

// A process as the one who talks to it sees it. Bound to the runtime's loop. Destroying it ends
// what Exec started (SIGKILL), and lets go of what Attach found; no event follows.
class ProcessStreams {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnOutput(OutputStream stream, std::string_view bytes) = 0;
    // pending_input has come down to zero.
    virtual void OnInputDrained() = 0;
    // The last event: the exit code, or why there is none. All output came before.
    virtual void OnEnd(Result<int> exit_code) = 0;
  };

  virtual ~ProcessStreams() = default;
  // Buffers what the process does not take at once: whoever sees pending_input grow waits.
  virtual void WriteInput(std::string_view bytes) = 0;
  virtual std::size_t pending_input() const = 0;
  virtual void CloseInput() = 0;
  virtual void Resize(std::uint16_t columns, std::uint16_t rows) = 0;
  // False: the process waits once its pipe is full.
  virtual void SetReading(bool reading) = 0;
};

struct ResourceUpdate {
  CgroupResources container;
  CgroupResources pod;
  std::map<std::string, std::string> annotations;  // of the container; others stay
};

struct Image {
  std::string id;                  // "sha256:<hex>"
  std::vector<std::string> names;  // full names with tag, sorted
  std::uint64_t size_bytes = 0;    // unpacked
};

// The node's door to containers, shaped after CRI: a pod is a sandbox and containers in it.
//
// Guarantees, which the contract test proves for each implementation:
// - what was created is found again by a runtime opened on the same state, whatever happened to the
//   process in between; nothing runs twice, nothing is left behind by the Remove calls;
// - each exit is reported to the listener exactly once per opened runtime, also one that happened
//   while nobody looked (reported from Open), and the status tells it before the listener hears it;
// - Stop and Remove of what is stopped or gone succeed.
// Lives on one EventLoop; every method is called there and returns at once. Calls for one container
// are answered in any order; a call that does not fit its state fails with kFailedPrecondition.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // Checks what is needed, cleans up half-made things and adopts what is there. First call of all;
  // the others fail until it has answered.
  virtual void Open(RuntimeCallback<void> done) = 0;
  // What it offers beyond the ordinary; asked once it is open.
  virtual features::RuntimeFeatures Features() const { return {}; }
  // At most one. Called on the loop with the status of a container that just ended.
  virtual void OnExit(std::function<void(const ContainerStatus&)> listener) = 0;

  virtual void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) = 0;
  // Kills what still runs in it.
  virtual void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) = 0;
  // Removes its containers too.
  virtual void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) = 0;
  virtual std::vector<PodSandbox> ListPodSandboxes() const = 0;  // in the order of creation

  virtual void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                               RuntimeCallback<std::string> done) = 0;
  virtual void StartContainer(const std::string& id, RuntimeCallback<void> done) = 0;
  // The stop signal, then after `grace` SIGKILL. Answers once the container has ended. A second
  // call may shorten the grace period, never lengthen it.
  virtual void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) = 0;
  // Kills it first if it runs. The log stays: it belongs to the caller.
  virtual void RemoveContainer(const std::string& id, RuntimeCallback<void> done) = 0;
  // Changes the limits of a running container, and of the pod around it, without a restart.
  virtual void UpdateContainer(const std::string& id, ResourceUpdate update,
                               RuntimeCallback<void> done) = 0;
  virtual std::vector<ContainerStatus> ListContainers() const = 0;  // in the order of creation
  virtual Result<ContainerStatus> GetContainerStatus(const std::string& id) const = 0;

  // Runs a command in a running container and waits for it; killed after `timeout` (zero: never)
  // with kDeadlineExceeded. Output is bounded to its last kMaxProcessOutput bytes.
  virtual void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                        RuntimeCallback<ExecResult> done) = 0;
  // Runs a command in a running container with somebody at its streams. Events come later, never
  // from within the call; `events` must outlive what is returned.
  virtual Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                                       std::vector<std::string> command,
                                                       const StreamOptions& options,
                                                       ProcessStreams::Events& events) = 0;
  // The streams of a running container itself, from now on. Ends with exit code 0 when the
  // container does: its own status has the real one.
  virtual Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id,
                                                         const StreamOptions& options,
                                                         ProcessStreams::Events& events) = 0;
  // After the log file was renamed: writing goes on in a new file of the old name.
  virtual void ReopenLog(const std::string& id, RuntimeCallback<void> done) = 0;

  // By name or id. kNotFound says how to import it.
  virtual Result<Image> ImageStatus(const std::string& name) const = 0;
  virtual std::vector<Image> ListImages() const = 0;
};

}  // namespace drakkar::node
