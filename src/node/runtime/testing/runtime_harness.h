#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The environment of the runtime contract test: images, a few programs, waiting, a restart.
class RuntimeHarness {
 public:
  enum class Program {
    kPrintsAndExits3,   // environment on stdout, a line on stderr, exit code 3
    kRunsUntilStopped,  // ends with 143 on SIGTERM
    kIgnoresStopSignal,
    kEndsWhenTold,  // with exit code 7, after LetItEnd
  };

  virtual ~RuntimeHarness() = default;
  virtual ContainerConfig ConfigFor(Program program) = 0;
  virtual PodSandboxConfig SandboxConfig(const std::string& uid) = 0;
  virtual void LetItEnd(const std::string& container_id) = 0;

  // Runs `call` on the runtime's loop and waits for it, or until `until` holds there.
  virtual void OnLoop(std::function<void(Runtime&)> call) = 0;
  virtual bool WaitUntil(std::function<bool()> until) = 0;
  // The agent is killed and a new one opens the same state.
  virtual void KillAgent() = 0;
  virtual void StartAgent() = 0;
  virtual Result<void> TryToStartAgent() = 0;  // as above, for one that may fail
  // True once a container has exited while no agent is running.
  virtual bool WaitForUnseenExit(const std::string& container_id) = 0;
  virtual std::vector<ContainerStatus>& exits() = 0;
  // What is wrongly left on the machine; empty if nothing is.
  virtual std::vector<std::string> Leftovers() = 0;
  virtual bool has_real_processes() const = 0;
  // A port of the host that nothing else uses: pods of this test share its network.
  std::uint16_t EchoPort() const {
    return static_cast<std::uint16_t>(20'000 + ::getpid() % 10'000);
  }
  // Whether a pod on the host's network can have a hostname of its own.
  virtual bool names_host_network_pods() const { return true; }
  // A runtime handler besides the default one.
  virtual std::string handler() const { return "second"; }
  virtual std::size_t image_count() const { return 1; }
  // How the error for a missing image says what to do.
  virtual std::string import_hint() const { return "drakkar image import"; }
  // Kills the runtime's own process, and starts it again. False where there is none.
  virtual bool RestartRuntime() { return false; }
};

std::unique_ptr<RuntimeHarness> MakeHollowHarness();
// Null, with the reason in `why`, where containers cannot run.
std::unique_ptr<RuntimeHarness> MakeOciHarness(std::string& why);
// Everything the runtime and its images do with files goes through `files`, which must outlive it.
std::unique_ptr<RuntimeHarness> MakeOciHarness(std::string& why, FileSystem& files);

// CRI with simulated containers, with or without events.
std::unique_ptr<RuntimeHarness> MakeCriHarness(bool has_events);
// CRI with a containerd of its own; null, with the reason in `why`, where there is none.
std::unique_ptr<RuntimeHarness> MakeContainerdHarness(std::string& why);

// The programs of the contract test: for simulated containers, and for those with a shell.
HollowProgram HollowProgramFor(const ContainerConfig& config);
ContainerConfig HollowConfigFor(RuntimeHarness::Program program);
PodSandboxConfig HollowSandboxConfig(const std::string& uid);
ContainerConfig OciConfigFor(RuntimeHarness::Program program);

template <typename T>
Result<T> Await(RuntimeHarness& harness, std::function<void(Runtime&, RuntimeCallback<T>)> call) {
  auto answer = std::make_shared<std::optional<Result<T>>>();
  harness.OnLoop([&](Runtime& runtime) {
    call(runtime, [answer](Result<T> result) { answer->emplace(std::move(result)); });
  });
  if (!harness.WaitUntil([answer] { return answer->has_value(); })) {
    return Error{ErrorCode::kDeadlineExceeded, "no answer"};
  }
  std::optional<Result<T>> taken;
  harness.OnLoop([&](Runtime&) { taken = std::move(*answer); });
  return *std::move(taken);
}

}  // namespace drakkar::node
