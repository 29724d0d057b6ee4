#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/exec/lifetime.h"
#include "base/os/descriptor_watch.h"
#include "base/os/file_watcher.h"
#include "base/os/process.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/exec_streams.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/oci/oci_runtime.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {

// Dying processes keep a cgroup busy for a moment, so its removal is retried this often.
inline constexpr int kReleaseAttempts = 100;

// The embedded runtime's implementation, one source file per topic: oci_runtime.cc (open, helpers),
// oci_sandboxes.cc, oci_containers.cc (create, start, stop, remove), oci_adoption.cc (watching
// containers, including those of an earlier agent), oci_exec.cc, oci_usage.cc.
class OciRuntime final : public Runtime {
 public:
  OciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files, Random& random,
             ImageStore& images, OciRuntimeOptions options);
  ~OciRuntime() override;

  void Open(RuntimeCallback<void> done) override;
  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    listener_ = std::move(listener);
  }
  std::optional<std::vector<RuntimeHandler>> Handlers() const override;
  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override;
  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override;
  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override;
  std::vector<PodSandbox> ListPodSandboxes() const override;
  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override;
  void StartContainer(const std::string& id, RuntimeCallback<void> done) override;
  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override;
  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override;
  void UpdateContainer(const std::string& id, ResourceUpdate update,
                       RuntimeCallback<void> done) override;
  void ChangeCgroup(const std::string& id, CgroupChanges changes,
                    RuntimeCallback<void> done) override;
  Result<std::string> ContainerSpec(const std::string& id) const override;
  std::vector<ContainerStatus> ListContainers() const override;
  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override;
  void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                RuntimeCallback<ExecResult> done) override;
  Result<std::unique_ptr<ProcessStreams>> Exec(const std::string& id,
                                               std::vector<std::string> command,
                                               const StreamOptions& options,
                                               ProcessStreams::Events& events) override;
  Result<std::unique_ptr<ProcessStreams>> Attach(const std::string& id,
                                                 const StreamOptions& options,
                                                 ProcessStreams::Events& events) override;
  Result<std::unique_ptr<PortConnection>> ConnectPort(const std::string& sandbox_id,
                                                      std::uint16_t port,
                                                      PortConnection::Events& events) override;
  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override;
  Result<Image> ImageStatus(const std::string& name) const override;
  std::vector<Image> ListImages() const override;
  void PullImage(PullRequest request, RuntimeCallback<Image> done) override;
  bool IsImported(const std::string& name) const override;
  void RemoveImage(const std::string& id, RuntimeCallback<void> done) override;
  void ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) override;

 private:
  struct Container {
    ContainerRecord record;
    bool busy = false;        // being created, started or removed
    bool is_created = false;  // visible in lists
    bool is_releasing = false;
    std::shared_ptr<ProcessHandle> init;
    std::unique_ptr<DescriptorWatch> init_watch;
    ProcessHandle conmon;
    std::unique_ptr<DescriptorWatch> conmon_watch;
    TimerHandle conmon_timer;  // retries a failed read
    int exit_reads = 0;        // failed reads of the exit file after conmon exited
    std::unique_ptr<ConmonLaunch> launch;
    TimerHandle launch_timer;
    std::optional<Duration> stop_after_start;  // asked to stop while starting
    CgroupChanges changes;                     // asked for before its cgroup existed
    TimerHandle kill_timer;
    MonotonicTime kill_at{};
    std::vector<RuntimeCallback<void>> exit_waiters;
    std::vector<RuntimeCallback<void>> remove_waiters;
  };

  struct Sandbox {
    SandboxRecord record;
    bool busy = false;
    std::vector<RuntimeCallback<void>> remove_waiters;
  };

  struct CommandRun {
    std::unique_ptr<Process> process;
    TimerHandle timer;
    bool timed_out = false;
    RuntimeCallback<ExecResult> done;
  };

  // Opening.
  Result<void> Prepare();
  void Adopt(const std::shared_ptr<Container>& container);
  void AdoptNetworks();
  void EndLostSandboxes();

  // Starting.
  void OnLaunched(const std::shared_ptr<Container>& container, Result<int> pid,
                  RuntimeCallback<void> done);
  // The container is complete: lets its process run.
  void LetGo(const std::shared_ptr<Container>& container, RuntimeCallback<void> done);
  void OnStarted(const std::shared_ptr<Container>& container, RuntimeCallback<void> done);
  void StartFailed(const std::shared_ptr<Container>& container, Error error,
                   RuntimeCallback<void> done);

  // Watching.
  enum class Conmon { kWatched, kGone, kUnknown };
  Conmon WatchConmon(const std::shared_ptr<Container>& container);
  void LookAgainForConmon(const std::shared_ptr<Container>& container);
  void OnExitsEvent(const FileEvent& event);
  // Without conmon nobody reads a container's output or records its exit code.
  void OnConmonGone(const std::shared_ptr<Container>& container);
  void Lost(const std::shared_ptr<Container>& container, int exit_code, std::string_view reason,
            std::string message);
  // True if the container has exited; an error if that could not be determined.
  Result<bool> HandleExit(const std::shared_ptr<Container>& container);
  void Ended(const std::shared_ptr<Container>& container);
  void Notify(const std::shared_ptr<Container>& container);
  // Releases what an exited container still holds, then answers everyone who waits for its exit.
  void Release(const std::shared_ptr<Container>& container);
  void Released(const std::shared_ptr<Container>& container, Result<void> released);

  // Stopping and removing.
  void BeginStop(const std::shared_ptr<Container>& container, Duration grace);
  void FinishRemoval(const std::shared_ptr<Container>& container, Result<void> result);
  void DestroySandbox(const std::shared_ptr<Sandbox>& sandbox);
  // The sandbox's network: the last step of its creation, the first of its end.
  void Connect(const std::shared_ptr<Sandbox>& sandbox, PodNetworkRequest request,
               RuntimeCallback<std::string> done);
  void Disconnect(const std::shared_ptr<Sandbox>& sandbox, RuntimeCallback<void> done);
  void EndSandbox(const std::shared_ptr<Sandbox>& sandbox, RuntimeCallback<void> done);
  SandboxRecord Abandoned(const Sandbox& sandbox) const;
  void FinishSandboxRemoval(const std::shared_ptr<Sandbox>& sandbox, Result<void> result);

  // Exec.
  struct ExecFiles {
    std::uint64_t number = 0;
    std::string base;                    // prefix of its file names
    std::vector<std::string> arguments;  // for the runtime
  };
  Result<ExecFiles> WriteExecFiles(const std::string& id, const std::vector<std::string>& command,
                                   bool terminal);
  Result<void> StartExec(const std::string& id, const std::vector<std::string>& command,
                         Duration timeout, RuntimeCallback<ExecResult>& done);
  void KillExec(const std::shared_ptr<CommandRun>& exec, const std::string& base, int tries);
  void FinishExec(std::uint64_t number, const std::string& base, ProcessExit exit);

  // Helpers. The programs that run the containers of a sandbox.
  OciPrograms ProgramsOf(const std::string& sandbox_id) const;
  // Runs `runc <verb...> <id>` and returns its error message on failure.
  void RunRuntime(std::vector<std::string> verb, const ContainerRecord& record,
                  absl::AnyInvocable<void(Result<bool>)> then);
  // Runs blocking work on a worker, then `then` on the loop if this object still exists.
  template <typename T>
  void Blocking(absl::AnyInvocable<Result<T>()> work, absl::AnyInvocable<void(Result<T>)> then) {
    auto shared = std::make_shared<absl::AnyInvocable<void(Result<T>)>>(std::move(then));
    auto answer = lifetime_.Guard([shared](Result<T> result) { (*shared)(std::move(result)); });
    const bool accepted = workers_.Run([&loop = loop_, answer, work = std::move(work)]() mutable {
      auto result = work();
      work = nullptr;
      loop.Post([answer = std::move(answer), result = std::move(result)]() mutable {
        answer(std::move(result));
      });
    });
    if (accepted) return;
    loop_.Post([answer]() mutable {
      answer(Error{ErrorCode::kResourceExhausted, "too many operations in flight"});
    });
  }
  // Retries blocking work while it returns kUnavailable.
  void Retrying(std::function<Result<void>()> work, int attempts,
                absl::AnyInvocable<void(Result<void>)> then);
  template <typename T>
  void Answer(RuntimeCallback<T> done, Result<T> result) {
    loop_.Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  std::optional<Error> Refusal(const PodSandboxConfig& config) const;
  std::shared_ptr<Container> Find(const std::string& id) const {
    auto found = containers_.find(id);
    return found == containers_.end() ? nullptr : found->second;
  }
  std::vector<std::shared_ptr<Container>> ContainersOf(const std::string& sandbox_id) const;
  void Log(const std::string& text) const {
    if (options_.log) options_.log(text);
  }
  void LogOnce(const std::string& text);

  UvLoop& loop_;
  WorkerPool& workers_;
  FileSystem& files_;
  Random& random_;
  ImageStore& images_;
  const OciRuntimeOptions options_;

  std::unique_ptr<Spawner> spawner_;
  OciPrograms programs_;
  std::map<std::string, std::string> handlers_;  // by name, their programs
  std::shared_ptr<BundleBuilder> builder_;       // shared with work in flight
  std::unique_ptr<FileWatcher> watcher_;
  std::unique_ptr<FileWatch> exits_watch_;  // declared after watcher_, so destroyed first

  bool is_open_ = false;
  std::function<void(const ContainerStatus&)> listener_;
  std::map<std::string, std::shared_ptr<Sandbox>> sandboxes_;
  std::map<std::string, std::shared_ptr<Container>> containers_;
  std::map<std::uint64_t, std::shared_ptr<CommandRun>> execs_;
  std::map<std::uint64_t, std::shared_ptr<ExecCommand>> commands_with_streams_;
  std::map<std::uint64_t, std::unique_ptr<Process>> commands_;
  std::map<std::uint64_t, TimerHandle> retries_;
  std::uint64_t next_exec_ = 0;
  std::set<std::string> logged_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
