#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "features/framework/runtime_features.h"
#include "node/runtime/port_connection.h"
#include "node/runtime/runtime_config.h"
#include "node/runtime/usage.h"

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
  std::string network_namespace;  // a path; empty: the host's
  std::vector<std::string> ips;   // in a network namespace of its own, as the network returned them
  std::string cgroup_parent;      // of its containers; empty: not known
  std::map<std::string, std::string> namespaces;  // "ipc" -> path, without the network's
  CgroupResources resources;                      // for the whole pod
  std::string runtime_handler;                    // empty: the default one
};

// A way to run pods that the runtime offers under a name (RuntimeClass).
struct RuntimeHandler {
  std::string name;  // empty: the default one
  // Not set: the runtime does not say.
  std::optional<bool> recursive_read_only_mounts = {};
  std::optional<bool> user_namespaces = {};
  bool operator==(const RuntimeHandler&) const = default;
};

enum class ContainerState { kCreated, kRunning, kExited, kUnknown };
std::string_view ContainerStateName(ContainerState state);

// Why a container exited, in Kubernetes' terms.
inline constexpr std::string_view kReasonCompleted = "Completed";
inline constexpr std::string_view kReasonError = "Error";
inline constexpr std::string_view kReasonOomKilled = "OOMKilled";
inline constexpr std::string_view kReasonStartError = "StartError";
inline constexpr std::string_view kReasonContainerStatusUnknown = "ContainerStatusUnknown";

// The user that a container's first process starts as.
struct ContainerIdentity {
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::vector<std::int64_t> supplemental_groups;

  bool operator==(const ContainerIdentity&) const = default;
};

struct ContainerStatus {
  std::string id;
  std::string sandbox_id;
  std::string name;
  std::uint32_t attempt = 0;
  ContainerState state = ContainerState::kUnknown;
  int pid = 0;  // host pid, while running
  WallTime created_at{};
  WallTime started_at{};   // zero: not started
  WallTime finished_at{};  // zero: not finished
  int exit_code = 0;       // 128 + signal when killed by one
  std::string reason;
  std::string message;
  std::string image;  // as requested
  // By the manifest if it was pulled ("docker.io/library/busybox@sha256:..."), otherwise its id.
  std::string image_id;
  std::string log_path;                   // absolute
  std::optional<ContainerIdentity> user;  // not set: the runtime does not say
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

struct ExecResult {
  int exit_code = 0;
  std::string output;
  std::string error_output;
};

// Which streams of a process to connect, and how.
struct StreamOptions {
  bool standard_input = false;
  bool standard_output = false;
  bool error_output = false;  // with a terminal: part of standard output
  bool terminal = false;
};

enum class OutputStream { kStandard, kError };

// The streams of a process. Bound to the runtime's loop. Destroying the object kills (SIGKILL) a
// command that Exec started, or detaches from a container that Attach connected to; no event
// follows.
class ProcessStreams {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnOutput(OutputStream stream, std::string_view bytes) = 0;
    // pending_input has dropped to zero.
    virtual void OnInputDrained() = 0;
    // The last event: the exit code, or why there is none. All output precedes it.
    virtual void OnEnd(Result<int> exit_code) = 0;
  };

  virtual ~ProcessStreams() = default;
  // Buffers what the process does not accept yet. Stop writing while pending_input grows.
  virtual void WriteInput(std::string_view bytes) = 0;
  virtual std::size_t pending_input() const = 0;
  virtual void CloseInput() = 0;
  virtual void Resize(std::uint16_t columns, std::uint16_t rows) = 0;
  // False: the process blocks once its pipe is full.
  virtual void SetReading(bool reading) = 0;
};

struct ResourceUpdate {
  CgroupResources container;
  CgroupResources pod;
  std::map<std::string, std::string> annotations;  // added to the container's
};

struct Image {
  std::string id;                  // "sha256:<hex>"
  std::vector<std::string> names;  // full names with tag, sorted
  // "docker.io/library/busybox@sha256:<hex>": the manifests it was pulled by, sorted.
  std::vector<std::string> digests;
  std::uint64_t size_bytes = 0;  // unpacked
  bool is_pinned = false;        // the runtime needs it itself
};

// For one registry. Never logged.
struct RegistryCredential {
  std::string username;
  std::string password;

  bool operator==(const RegistryCredential&) const = default;
};

// Measuring files reads whole directories.
enum class UsageScope { kWithoutFiles, kWithFiles };

struct PullRequest {
  std::string image;                            // a name
  std::vector<RegistryCredential> credentials;  // tried in order; none: anonymously
};

// The container runtime, modelled on CRI: a pod is a sandbox with containers in it.
//
// Guarantees, verified by the contract test for every implementation: a runtime opened on the same
// state finds everything that was created, however the previous process ended; nothing runs twice,
// and the Remove calls leave nothing behind. Each exit is reported to the listener exactly once per
// opened runtime, including exits while none was open (reported from Open), and the status shows it
// before the listener is called. Stop and Remove succeed for what is already stopped or removed.
//
// Loop-bound; every method returns at once. Calls for one container may be answered in any order; a
// call that does not fit its state fails with kFailedPrecondition.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // Checks prerequisites, cleans up incomplete state and adopts existing containers. Must be the
  // first call; all others fail until it has answered.
  virtual void Open(RuntimeCallback<void> done) = 0;
  // Optional features; valid once it is open.
  virtual features::RuntimeFeatures Features() const { return {}; }
  // Valid once it is open. Not set: it does not say which it has.
  virtual std::optional<std::vector<RuntimeHandler>> Handlers() const {
    return std::vector<RuntimeHandler>();
  }
  // Whether it can leave out the groups that the image gives the user; valid once it is open.
  virtual bool HasGroupsPolicy() const { return true; }
  // The directories of CDI specs that the runtime reads itself: devices that they define may be
  // passed by name (ContainerConfig::cdi_devices). The caller applies all others.
  virtual std::vector<std::string> CdiDirectories() const { return {}; }
  // Whether cgroups have systemd's names; valid once it is open.
  virtual bool UsesSystemdCgroups() const { return false; }
  // Why no containers can be started at the moment, for the node's Ready condition; empty if they
  // can.
  virtual std::string WhyNotReady() const { return {}; }
  // The name and version of a runtime with its own process, "containerd://1.6.20"; otherwise, and
  // before it is open, empty.
  virtual std::string RuntimeVersion() const { return {}; }
  // Sets the only listener. It is called on the loop with the status of a container that just
  // exited.
  virtual void OnExit(std::function<void(const ContainerStatus&)> listener) = 0;

  virtual void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) = 0;
  // Kills all containers in it.
  virtual void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) = 0;
  // Removes its containers too.
  virtual void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) = 0;
  virtual std::vector<PodSandbox> ListPodSandboxes() const = 0;  // in the order of creation

  virtual void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                               RuntimeCallback<std::string> done) = 0;
  virtual void StartContainer(const std::string& id, RuntimeCallback<void> done) = 0;
  // Sends the stop signal, then SIGKILL after `grace`. Answers once the container has exited. A
  // second call may shorten the grace period but not extend it.
  virtual void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) = 0;
  // Kills it first if it is running. The log belongs to the caller and is kept.
  virtual void RemoveContainer(const std::string& id, RuntimeCallback<void> done) = 0;
  // Updates the limits of a running container and of its pod without a restart.
  virtual void UpdateContainer(const std::string& id, ResourceUpdate update,
                               RuntimeCallback<void> done) = 0;
  // Changes settings of a container's cgroup. Before the start, they apply from the start on.
  virtual void ChangeCgroup(const std::string& id, CgroupChanges changes,
                            RuntimeCallback<void> done) = 0;
  // The container's OCI configuration (config.json); kUnimplemented if the runtime has none.
  virtual Result<std::string> ContainerSpec(const std::string&) const {
    return Error{ErrorCode::kUnimplemented, "this runtime has no bundles"};
  }
  virtual std::vector<ContainerStatus> ListContainers() const = 0;  // in the order of creation
  virtual Result<ContainerStatus> GetContainerStatus(const std::string& id) const = 0;

  // Runs a command in a running container and waits for it; after `timeout` (zero: none) it is
  // killed and the call fails with kDeadlineExceeded. Returns the last kMaxProcessOutput bytes of
  // output.
  virtual void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                        RuntimeCallback<ExecResult> done) = 0;
  // Runs a command in a running container with its streams connected. Events are never delivered
  // inside the call; `events` must outlive the returned object.
  virtual Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                                       std::vector<std::string> command,
                                                       const StreamOptions& options,
                                                       ProcessStreams::Events& events) = 0;
  // Connects to the streams of a running container, from now on. Ends with exit code 0 when the
  // container exits; the container status has the real code.
  virtual Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id,
                                                         const StreamOptions& options,
                                                         ProcessStreams::Events& events) = 0;
  // Connects to a port of a pod, as a process in the pod would to its own host. Events are never
  // delivered inside the call; `events` must outlive the returned object.
  virtual Result<std::unique_ptr<PortConnection>> ConnectPort(const std::string& sandbox_id,
                                                              std::uint16_t port,
                                                              PortConnection::Events& events) = 0;
  // After the log file was renamed: continues in a new file under the old name.
  virtual void ReopenLog(const std::string& id, RuntimeCallback<void> done) = 0;

  // Looks up a name or id. kNotFound says how to import the image.
  virtual Result<Image> ImageStatus(const std::string& name) const = 0;
  virtual std::vector<Image> ListImages() const = 0;
  // Fetches an image from its registry and stores it under the name. Concurrent pulls of one image
  // with the same credentials share their work.
  virtual void PullImage(PullRequest request, RuntimeCallback<Image> done) = 0;
  // Whether the image of that name was imported here by somebody, so that no registry has a newer
  // one.
  virtual bool IsImported(const std::string& name) const = 0;
  // Removes an image that no container uses, with all its names. Succeeds if it is gone.
  virtual void RemoveImage(const std::string& id, RuntimeCallback<void> done) = 0;

  // What the running containers and their pods use now.
  virtual void ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) = 0;
};

}  // namespace drakkar::node
