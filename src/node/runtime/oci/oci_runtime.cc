#include "node/runtime/oci/oci_runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/env/descriptor_watch.h"
#include "base/env/file_watcher.h"
#include "base/env/process.h"
#include "base/text/text.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {
namespace {

// A runtime that has not created its container by then hangs (a dead network mount, say).
constexpr Duration kLaunchTimeout = std::chrono::minutes(2);
// Dying processes keep a control group busy for a moment. Retried this often, this far apart.
constexpr int kReleaseAttempts = 100;
constexpr Duration kReleasePause = std::chrono::milliseconds(20);
constexpr std::size_t kMaxLoggedOnce = 1000;
constexpr int kStartErrorExitCode = 128;
constexpr int kUnknownExitCode = 255;

struct Container {
  ContainerRecord record;
  bool busy = false;           // being created, started or removed
  bool is_created = false;     // visible in lists
  bool is_releasing = false;
  std::shared_ptr<ProcessHandle> init;
  std::unique_ptr<DescriptorWatch> init_watch;
  ProcessHandle conmon;
  std::unique_ptr<DescriptorWatch> conmon_watch;
  std::unique_ptr<ConmonLaunch> launch;
  TimerHandle launch_timer;
  std::optional<Duration> stop_after_start;  // asked to stop while starting
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

struct Exec {
  std::unique_ptr<Process> process;
  TimerHandle timer;
  bool timed_out = false;
  RuntimeCallback<ExecResult> done;
};

// Calls back once after `Expect` calls have been answered; the first error wins.
class Countdown {
 public:
  explicit Countdown(RuntimeCallback<void> done) : done_(std::move(done)) {}
  ~Countdown() { done_(std::move(result_)); }
  void Note(Result<void> result) {
    if (!result.ok() && result_.ok()) result_ = std::move(result);
  }

 private:
  RuntimeCallback<void> done_;
  Result<void> result_;
};

class OciRuntime final : public Runtime {
 public:
  OciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files, Random& random,
             ImageStore& images, OciRuntimeOptions options)
      : loop_(loop), workers_(workers), files_(files), random_(random), images_(images),
        options_(std::move(options)), spawner_(MakeSpawner(loop)) {}

  // Callbacks hold the containers they are about: end them, or neither would ever be freed.
  ~OciRuntime() override {
    for (auto& [id, container] : containers_) {
      container->launch.reset();
      container->launch_timer.reset();
      container->kill_timer.reset();
      container->init_watch.reset();
      container->conmon_watch.reset();
      container->exit_waiters.clear();
      container->remove_waiters.clear();
    }
    for (auto& [id, sandbox] : sandboxes_) sandbox->remove_waiters.clear();
  }

  void Open(RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto prepared = Prepare();
    if (!prepared.ok()) return Answer(std::move(done), std::move(prepared));
    auto found_before = std::make_shared<BundleBuilder::Found>();
    // Undoing what a dead agent left half done may have to wait for killed processes to be gone.
    Retrying(
        [builder = builder_, &images = images_, found_before]() -> Result<void> {
          RETURN_IF_ERROR(images.Open());
          ASSIGN_OR_RETURN(*found_before, builder->Scan());
          return Ok();
        },
        kReleaseAttempts, [this, found = found_before, done = std::move(done)](Result<void> scanned) mutable {
          if (!scanned.ok()) return done(std::move(scanned).error());
          for (const std::string& note : found->notes) Log(note);
          for (SandboxRecord& record : found->sandboxes) {
            const std::string id = record.id;
            auto sandbox = std::make_shared<Sandbox>();
            sandbox->record = std::move(record);
            sandboxes_[id] = std::move(sandbox);
          }
          is_open_ = true;
          std::vector<std::shared_ptr<Container>> adopted;
          for (ContainerRecord& record : found->containers) {
            auto container = std::make_shared<Container>();
            container->record = std::move(record);
            container->is_created = true;
            containers_[container->record.id] = container;
            adopted.push_back(std::move(container));
          }
          for (const auto& container : adopted) Adopt(container);
          done(Ok());
        });
  }

  void OnExit(std::function<void(const ContainerStatus&)> listener) override {
    listener_ = std::move(listener);
  }

  void RunPodSandbox(PodSandboxConfig config, RuntimeCallback<std::string> done) override {
    loop_.AssertInLoop();
    if (auto refusal = Refusal(config)) return Answer(std::move(done), Result<std::string>(*refusal));
    auto sandbox = std::make_shared<Sandbox>();
    SandboxRecord& record = sandbox->record;
    record.id = NewId();
    record.name = config.name;
    record.namespace_name = config.namespace_name;
    record.uid = config.uid;
    record.attempt = config.attempt;
    record.hostname = config.hostname;
    record.log_directory = config.log_directory;
    record.cgroup_parent =
        config.cgroup_parent.empty() ? StrCat(kCgroupRoot, "/pod", config.uid) : config.cgroup_parent;
    record.host_pid = config.host_pid;
    record.host_ipc = config.host_ipc;
    record.created_at = loop_.clock().Now();
    record.labels = config.labels;
    record.annotations = config.annotations;
    record.sysctls = config.sysctls;
    sandbox->busy = true;
    sandboxes_[record.id] = sandbox;
    Blocking<SandboxRecord>(
        [builder = builder_, record, config = std::move(config)] {
          return builder->BuildSandbox(record, config);
        },
        [this, sandbox, done = std::move(done)](Result<SandboxRecord> built) mutable {
          sandbox->busy = false;
          if (!built.ok()) {
            sandboxes_.erase(sandbox->record.id);
            return done(std::move(built).error().Prefixed("run sandbox of pod " + sandbox->record.name));
          }
          sandbox->record = *std::move(built);
          done(sandbox->record.id);
        });
  }

  void StopPodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return Answer(std::move(done), Ok());
    auto sandbox = found->second;
    auto countdown = std::make_shared<Countdown>(
        [this, sandbox, done = std::move(done)](Result<void> stopped) mutable {
          if (!stopped.ok()) return done(std::move(stopped));
          if (sandbox->record.phase != Phase::kRunning) return done(Ok());
          sandbox->record.phase = Phase::kExited;
          auto saved = builder_->Save(sandbox->record);
          if (!saved.ok()) return done(std::move(saved));
          Blocking<bool>(
              [builder = builder_, sandbox_id = sandbox->record.id]() -> Result<bool> {
                RETURN_IF_ERROR(builder->ReleaseSandbox(sandbox_id));
                return true;
              },
              [done = std::move(done)](Result<bool> released) mutable {
                done(released.ok() ? Ok() : Result<void>(released.error()));
              });
        });
    for (const auto& container : ContainersOf(id)) {
      StopContainer(container->record.id, Duration::zero(),
                    [countdown](Result<void> stopped) { countdown->Note(std::move(stopped)); });
    }
    // With nothing to wait for, the answer must still come from the loop.
    loop_.Post([countdown] {});
  }

  void RemovePodSandbox(const std::string& id, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return Answer(std::move(done), Ok());
    auto sandbox = found->second;
    sandbox->remove_waiters.push_back(std::move(done));
    if (sandbox->remove_waiters.size() > 1) return;
    if (sandbox->busy) {
      return FinishSandboxRemoval(sandbox, FailedPrecondition("the sandbox is being made"));
    }
    StopPodSandbox(id, [this, sandbox, id](Result<void> stopped) {
      if (!stopped.ok()) return FinishSandboxRemoval(sandbox, std::move(stopped));
      auto countdown = std::make_shared<Countdown>([this, sandbox](Result<void> removed) {
        if (!removed.ok()) return FinishSandboxRemoval(sandbox, std::move(removed));
        DestroySandbox(sandbox);
      });
      for (const auto& container : ContainersOf(id)) {
        RemoveContainer(container->record.id, [countdown](Result<void> removed) {
          countdown->Note(std::move(removed));
        });
      }
    });
  }

  std::vector<PodSandbox> ListPodSandboxes() const override {
    std::vector<PodSandbox> list;
    for (const auto& [id, sandbox] : sandboxes_) {
      if (sandbox->record.phase == Phase::kRunning || sandbox->record.phase == Phase::kExited) {
        list.push_back(SandboxOf(sandbox->record));
      }
    }
    SortByAge(list);
    return list;
  }

  void CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                       RuntimeCallback<std::string> done) override {
    loop_.AssertInLoop();
    auto found = sandboxes_.find(sandbox_id);
    if (found == sandboxes_.end() || found->second->record.phase != Phase::kRunning) {
      return Answer(std::move(done), Result<std::string>(FailedPrecondition(
                                         "create container " + config.name + ": its sandbox is not ready")));
    }
    auto container = std::make_shared<Container>();
    ContainerRecord& record = container->record;
    record.id = config.id.empty() ? NewId() : config.id;
    record.sandbox_id = sandbox_id;
    record.name = config.name;
    record.attempt = config.attempt;
    record.image = config.image;
    const SandboxRecord& sandbox = found->second->record;
    if (!config.log_path.empty()) record.log_path = JoinPath(sandbox.log_directory, config.log_path);
    record.cgroup_path = JoinPath(sandbox.cgroup_parent, record.id);
    record.terminal = config.tty;
    record.standard_input = config.standard_input;
    record.standard_input_once = config.standard_input_once;
    record.has_poststop_hooks = std::any_of(config.hooks.begin(), config.hooks.end(),
                                            [](const Hook& hook) { return hook.name == "poststop"; });
    record.created_at = loop_.clock().Now();
    record.labels = config.labels;
    record.annotations = config.annotations;
    container->busy = true;
    containers_[record.id] = container;
    Blocking<BundleBuilder::Built>(
        [builder = builder_, record, sandbox, config = std::move(config)] {
          return builder->BuildContainer(record, sandbox, config);
        },
        [this, container, done = std::move(done)](Result<BundleBuilder::Built> built) mutable {
          container->busy = false;
          if (!built.ok()) {
            containers_.erase(container->record.id);
            return done(std::move(built).error().Prefixed("create container " + container->record.name));
          }
          for (const std::string& warning : built->warnings) LogOnce(warning);
          container->record = std::move(built->record);
          container->is_created = true;
          done(container->record.id);
        });
  }

  void StartContainer(const std::string& id, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto container = Find(id);
    if (!container) return Answer(std::move(done), Result<void>(NotFound("no container " + id)));
    ContainerRecord& record = container->record;
    if (record.phase == Phase::kRunning) return Answer(std::move(done), Ok());
    if (record.phase != Phase::kCreated || container->busy) {
      return Answer(std::move(done), Result<void>(FailedPrecondition(
                                         "start container " + record.name + ": it is not just created")));
    }
    auto sandbox = sandboxes_.find(record.sandbox_id);
    if (sandbox == sandboxes_.end() || sandbox->second->record.phase != Phase::kRunning) {
      return Answer(std::move(done), Result<void>(FailedPrecondition(
                                         "start container " + record.name + ": its sandbox is not ready")));
    }
    record.phase = Phase::kStarting;
    if (auto saved = builder_->Save(record); !saved.ok()) {
      record.phase = Phase::kCreated;
      return Answer(std::move(done), std::move(saved));
    }
    container->busy = true;
    auto shared_done = std::make_shared<RuntimeCallback<void>>(std::move(done));
    auto launch = ConmonLaunch::Start(
        loop_, *spawner_, ConmonArguments(programs_, builder_->paths(), record),
        builder_->paths().Container(record.id),
        [this, container, shared_done](Result<int> pid) {
          OnLaunched(container, std::move(pid), std::move(*shared_done));
        });
    if (!launch.ok()) {
      loop_.Post([this, container, shared_done, error = std::move(launch).error()] {
        StartFailed(container, error, std::move(*shared_done));
      });
      return;
    }
    container->launch = *std::move(launch);
    container->launch_timer = loop_.RunAfter(kLaunchTimeout, [this, container, shared_done] {
      container->launch.reset();
      StartFailed(container, Error{ErrorCode::kDeadlineExceeded, "the runtime did not create it in time"},
                  std::move(*shared_done));
    });
  }

  void StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto container = Find(id);
    if (!container) return Answer(std::move(done), Ok());
    switch (container->record.phase) {
      case Phase::kCreating:
      case Phase::kCreated:
      case Phase::kRemoving: return Answer(std::move(done), Ok());
      case Phase::kExited:
        if (!container->is_releasing) return Answer(std::move(done), Ok());
        container->exit_waiters.push_back(std::move(done));
        return;
      case Phase::kStarting:
        container->exit_waiters.push_back(std::move(done));
        container->stop_after_start = std::min(container->stop_after_start.value_or(grace), grace);
        return;
      case Phase::kRunning:
        container->exit_waiters.push_back(std::move(done));
        BeginStop(container, grace);
        return;
    }
  }

  void RemoveContainer(const std::string& id, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto container = Find(id);
    if (!container) return Answer(std::move(done), Ok());
    if (container->record.phase == Phase::kCreating) {
      return Answer(std::move(done), Result<void>(FailedPrecondition("the container is being created")));
    }
    container->remove_waiters.push_back(std::move(done));
    if (container->remove_waiters.size() > 1) return;
    StopContainer(id, Duration::zero(), [this, container](Result<void> stopped) {
      if (!stopped.ok()) return FinishRemoval(container, std::move(stopped));
      container->record.phase = Phase::kRemoving;
      if (auto saved = builder_->Save(container->record); !saved.ok()) {
        return FinishRemoval(container, std::move(saved));
      }
      Retrying(
          [builder = builder_, record = container->record] { return builder->DestroyContainer(record); },
          kReleaseAttempts,
          [this, container](Result<void> destroyed) { FinishRemoval(container, std::move(destroyed)); });
    });
  }

  std::vector<ContainerStatus> ListContainers() const override {
    std::vector<ContainerStatus> list;
    for (const auto& [id, container] : containers_) {
      if (container->is_created) list.push_back(StatusOf(container->record));
    }
    SortByAge(list);
    return list;
  }

  Result<ContainerStatus> GetContainerStatus(const std::string& id) const override {
    auto found = containers_.find(id);
    if (found == containers_.end() || !found->second->is_created) return NotFound("no container " + id);
    return StatusOf(found->second->record);
  }

  void ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                RuntimeCallback<ExecResult> done) override {
    loop_.AssertInLoop();
    auto started = StartExec(id, command, timeout, done);
    if (!started.ok()) Answer(std::move(done), Result<ExecResult>(std::move(started).error()));
  }

  void ReopenLog(const std::string& id, RuntimeCallback<void> done) override {
    loop_.AssertInLoop();
    auto container = Find(id);
    if (!container || container->record.phase != Phase::kRunning) {
      return Answer(std::move(done), Result<void>(FailedPrecondition("the container does not run")));
    }
    // conmon's control fifo: "2" asks it to open its log file again.
    const std::string path = builder_->paths().Container(id) + "/ctl";
    const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return Answer(std::move(done), Result<void>(ErrnoError(errno, "open " + path)));
    constexpr std::string_view kReopen = "2 0 0\n";
    const bool written = ::write(fd, kReopen.data(), kReopen.size()) ==
                         static_cast<ssize_t>(kReopen.size());
    const int reason = errno;
    ::close(fd);
    Answer(std::move(done), written ? Ok() : Result<void>(ErrnoError(reason, "write " + path)));
  }

  Result<Image> ImageStatus(const std::string& name) const override {
    ASSIGN_OR_RETURN(StoredImage stored, images_.Find(name));
    return std::move(stored.image);
  }
  std::vector<Image> ListImages() const override {
    auto list = images_.List();
    return list.ok() ? *std::move(list) : std::vector<Image>();
  }

 private:
  // --- opening ---

  Result<void> Prepare() {
    if (is_open_ || builder_) return FailedPrecondition("the runtime is already open");
    if (::geteuid() != 0) return FailedPrecondition("containers need root: run the node agent as root");
    ASSIGN_OR_RETURN(Cgroups cgroups, Cgroups::Detect(files_));
    ASSIGN_OR_RETURN(programs_, FindPrograms(files_, options_.runtime, cgroups.is_unified()));
    OciPaths paths;
    paths.root = options_.root;
    paths.runtime_state = options_.runtime_state.empty() ? options_.root + "/state" : options_.runtime_state;
    RETURN_IF_ERROR(files_.MakeDirectories(paths.Exits(), 0700));
    // Before the scan: an exit is then seen by one of the two, or by both.
    ASSIGN_OR_RETURN(watcher_, MakeFileWatcher(loop_));
    ASSIGN_OR_RETURN(exits_watch_, watcher_->Watch(paths.Exits(), [this](const FileEvent& event) {
      OnExitsEvent(event);
    }));
    builder_ = std::make_shared<BundleBuilder>(files_, images_, std::move(paths), std::move(cgroups),
                                               ProbeHostLimits());
    return Ok();
  }

  void Adopt(const std::shared_ptr<Container>& container) {
    ContainerRecord& record = container->record;
    if (record.phase == Phase::kExited && !record.released) return Release(container);
    if (record.phase != Phase::kRunning) return;
    if (HandleExit(container)) return;
    WatchConmon(container);
    auto init = ProcessHandle::Open(record.pid, record.pid_start_ticks);
    if (init.ok()) container->init = std::make_shared<ProcessHandle>(*std::move(init));
    if (container->conmon_watch != nullptr) return;  // it tells the rest
    OnConmonGone(container);
  }

  // --- starting ---

  void OnLaunched(const std::shared_ptr<Container>& container, Result<int> pid,
                  RuntimeCallback<void> done) {
    container->launch_timer.reset();
    container->launch.reset();
    if (!pid.ok()) return StartFailed(container, std::move(pid).error(), std::move(done));
    container->record.pid = *pid;
    auto init = ProcessHandle::Open(*pid);
    auto ticks = ProcessStartTicks(*pid);
    if (!init.ok() || !ticks.ok()) {
      return StartFailed(container, FailedPrecondition("the container's init ended before it ran"),
                         std::move(done));
    }
    container->record.pid_start_ticks = *ticks;
    container->init = std::make_shared<ProcessHandle>(*std::move(init));
    auto after = [this, container, done = std::move(done)](Result<bool> released) mutable {
      if (!released.ok()) return StartFailed(container, std::move(released).error(), std::move(done));
      OnStarted(container, std::move(done));
    };
    if (BaseName(programs_.runtime) == "runc") {
      Blocking<bool>(
          [fifo = builder_->paths().ExecFifo(container->record.id), process = container->init]() -> Result<bool> {
            RETURN_IF_ERROR(ReleaseExecFifo(fifo, *process));
            return true;
          },
          std::move(after));
      return;
    }
    RunRuntime({"start", container->record.id}, std::move(after));
  }

  void OnStarted(const std::shared_ptr<Container>& container, RuntimeCallback<void> done) {
    ContainerRecord& record = container->record;
    container->busy = false;
    record.phase = Phase::kRunning;
    record.started_at = loop_.clock().Now();
    // A record that could not be replaced still says "starting", which adoption settles as well.
    if (auto saved = builder_->Save(record); !saved.ok()) Log(saved.error().message);
    WatchConmon(container);
    done(Ok());
    if (HandleExit(container)) return;
    if (container->conmon_watch == nullptr) return OnConmonGone(container);
    if (container->stop_after_start) BeginStop(container, *container->stop_after_start);
  }

  void StartFailed(const std::shared_ptr<Container>& container, Error error,
                   RuntimeCallback<void> done) {
    ContainerRecord& record = container->record;
    container->launch_timer.reset();
    container->busy = false;
    record.phase = Phase::kExited;
    record.exit_code = kStartErrorExitCode;
    record.reason = std::string(kReasonStartError);
    record.message = error.message;
    record.finished_at = loop_.clock().Now();
    record.has_poststop_hooks = false;  // it never ran
    if (auto saved = builder_->Save(record); !saved.ok()) Log(saved.error().message);
    container->exit_waiters.push_back(
        [done = std::move(done), error = std::move(error).Prefixed("start container " + record.name)](
            Result<void>) mutable { done(std::move(error)); });
    Release(container);
  }

  // --- watching ---

  void WatchConmon(const std::shared_ptr<Container>& container) {
    const std::string& id = container->record.id;
    auto text = files_.ReadFile(builder_->paths().Container(id) + "/conmon.pid");
    const auto pid = text.ok() ? ParseInt64(Trim(*text)) : std::nullopt;
    if (!pid) return;
    auto handle = ProcessHandle::Open(static_cast<int>(*pid));
    if (!handle.ok()) return;
    // The number may be another process's by now. It is ours if it carries the container's id.
    auto arguments = files_.ReadFile(StrCat("/proc/", *pid, "/cmdline"));
    if (!arguments.ok() || arguments->find(id) == std::string::npos) return;
    container->conmon = *std::move(handle);
    container->conmon_watch =
        WatchReadable(loop_, container->conmon.descriptor(), [this, weak = std::weak_ptr(container)] {
          auto alive = weak.lock();
          if (!alive) return;
          alive->conmon_watch.reset();
          OnConmonGone(alive);
        });
  }

  void OnExitsEvent(const FileEvent& event) {
    if (event.change == FileChange::kCreated) {
      if (auto container = Find(event.name)) HandleExit(container);
    } else if (event.change == FileChange::kEventsLost) {
      const auto all = containers_;
      for (const auto& [id, container] : all) HandleExit(container);
    }
  }

  // Without its conmon a container has nobody who reads its output or learns its exit code.
  void OnConmonGone(const std::shared_ptr<Container>& container) {
    if (container->record.phase != Phase::kRunning || HandleExit(container)) return;
    if (container->init && container->init->ok() && !container->init->HasEnded()) {
      Log("container " + container->record.id + ": its conmon is gone, so it is killed");
      static_cast<void>(container->init->Signal(SIGKILL).ok());
      container->init_watch =
          WatchReadable(loop_, container->init->descriptor(), [this, weak = std::weak_ptr(container)] {
            auto alive = weak.lock();
            if (!alive) return;
            alive->init_watch.reset();
            Lost(alive, 128 + SIGKILL, kReasonError, "killed: its conmon had ended");
          });
      return;
    }
    Lost(container, kUnknownExitCode, kReasonContainerStatusUnknown,
         "the container ended together with its conmon; its exit code is not known");
  }

  void Lost(const std::shared_ptr<Container>& container, int exit_code, std::string_view reason,
            std::string message) {
    ContainerRecord& record = container->record;
    if (record.phase != Phase::kRunning) return;
    record.phase = Phase::kExited;
    record.exit_code = exit_code;
    record.reason = std::string(reason);
    record.message = std::move(message);
    record.finished_at = loop_.clock().Now();
    Ended(container);
  }

  // True if the container has ended by now.
  bool HandleExit(const std::shared_ptr<Container>& container) {
    if (container->record.phase != Phase::kRunning) return container->record.phase == Phase::kExited;
    ContainerRecord updated = container->record;
    if (!builder_->ReadExit(updated).ok()) return false;
    container->record = std::move(updated);
    Ended(container);
    return true;
  }

  void Ended(const std::shared_ptr<Container>& container) {
    container->kill_timer.reset();
    container->conmon_watch.reset();
    container->init_watch.reset();
    if (auto saved = builder_->Save(container->record); !saved.ok()) Log(saved.error().message);
    // Poststop hooks belong to the container's life: whoever unprepares devices must wait for them.
    if (!container->record.has_poststop_hooks) Notify(container);
    Release(container);
  }

  void Notify(const std::shared_ptr<Container>& container) {
    if (listener_) listener_(StatusOf(container->record));
  }

  // Gives back what a container that ended still holds, then answers who waited for its end.
  void Release(const std::shared_ptr<Container>& container) {
    container->is_releasing = true;
    auto rest = [this, container](Result<bool> deleted) {
      if (!deleted.ok()) Log("container " + container->record.id + ": " + deleted.error().message);
      Retrying([builder = builder_, record = container->record] { return builder->ReleaseContainer(record); },
               kReleaseAttempts, [this, container](Result<void> released) {
                 Released(container, std::move(released));
               });
    };
    if (container->record.has_poststop_hooks) {
      RunRuntime({"delete", "--force", container->record.id}, std::move(rest));
    } else {
      rest(true);
    }
  }

  void Released(const std::shared_ptr<Container>& container, Result<void> released) {
    ContainerRecord& record = container->record;
    container->is_releasing = false;
    container->init.reset();
    container->conmon = ProcessHandle();
    if (released.ok()) {
      record.released = true;
      if (auto saved = builder_->Save(record); !saved.ok()) Log(saved.error().message);
    } else {
      Log("container " + record.id + ": " + released.error().message);
    }
    if (record.has_poststop_hooks && record.reason != kReasonStartError) Notify(container);
    auto waiters = std::move(container->exit_waiters);
    container->exit_waiters.clear();
    for (auto& waiter : waiters) waiter(Ok());
  }

  // --- stopping and removing ---

  void BeginStop(const std::shared_ptr<Container>& container, Duration grace) {
    if (!container->init) return OnConmonGone(container);
    const MonotonicTime kill_at = loop_.clock().Monotonic() + std::max(grace, Duration::zero());
    if (grace <= Duration::zero()) {
      container->kill_timer.reset();
      static_cast<void>(container->init->Signal(SIGKILL).ok());
      return;
    }
    const bool is_first = container->kill_timer == nullptr;
    if (!is_first && container->kill_at <= kill_at) return;
    if (is_first) static_cast<void>(container->init->Signal(container->record.stop_signal).ok());
    container->kill_at = kill_at;
    container->kill_timer = loop_.RunAfter(grace, [weak = std::weak_ptr(container)] {
      auto alive = weak.lock();
      if (alive && alive->init) static_cast<void>(alive->init->Signal(SIGKILL).ok());
    });
  }

  void FinishRemoval(const std::shared_ptr<Container>& container, Result<void> result) {
    if (result.ok()) {
      containers_.erase(container->record.id);
    } else {
      result = std::move(result).error().Prefixed("remove container " + container->record.name);
    }
    auto waiters = std::move(container->remove_waiters);
    container->remove_waiters.clear();
    for (auto& waiter : waiters) waiter(result);
  }

  void DestroySandbox(const std::shared_ptr<Sandbox>& sandbox) {
    sandbox->record.phase = Phase::kRemoving;
    if (auto saved = builder_->Save(sandbox->record); !saved.ok()) {
      return FinishSandboxRemoval(sandbox, std::move(saved));
    }
    // Another sandbox of the same pod (a later attempt) may use the group: leave it then.
    SandboxRecord record = sandbox->record;
    for (const auto& [id, other] : sandboxes_) {
      if (id != record.id && other->record.cgroup_parent == record.cgroup_parent) {
        record.cgroup_parent.clear();
        break;
      }
    }
    Retrying([builder = builder_, record] { return builder->DestroySandbox(record); }, kReleaseAttempts,
             [this, sandbox](Result<void> destroyed) { FinishSandboxRemoval(sandbox, std::move(destroyed)); });
  }

  void FinishSandboxRemoval(const std::shared_ptr<Sandbox>& sandbox, Result<void> result) {
    if (result.ok()) {
      sandboxes_.erase(sandbox->record.id);
      // On the loop, where no new sandbox can come in between.
      if (sandboxes_.empty()) builder_->ReleaseRoot();
    } else {
      result = std::move(result).error().Prefixed("remove sandbox of pod " + sandbox->record.name);
    }
    auto waiters = std::move(sandbox->remove_waiters);
    sandbox->remove_waiters.clear();
    loop_.Post([waiters = std::move(waiters), result]() mutable {
      for (auto& waiter : waiters) waiter(result);
    });
  }

  // --- exec ---

  Result<void> StartExec(const std::string& id, const std::vector<std::string>& command,
                         Duration timeout, RuntimeCallback<ExecResult>& done) {
    auto container = Find(id);
    if (!container || container->record.phase != Phase::kRunning) {
      return FailedPrecondition("exec: the container does not run");
    }
    if (command.empty()) return InvalidArgument("exec: no command");
    const std::string directory = builder_->paths().Container(id);
    ASSIGN_OR_RETURN(const std::string spec, files_.ReadFile(directory + "/config.json"));
    ASSIGN_OR_RETURN(const std::string process_json, WriteExecProcess(spec, command));
    const std::uint64_t number = next_exec_++;
    const std::string base = StrCat(directory, "/exec-", number);
    RETURN_IF_ERROR(files_.WriteFile(base + ".json", process_json, 0600));
    auto exec = std::make_shared<Exec>();
    ProcessOptions options;
    options.arguments = {programs_.runtime, "--root", builder_->paths().runtime_state, "exec",
                         "--process", base + ".json", "--pid-file", base + ".pid", id};
    auto process = spawner_->Spawn(std::move(options), [this, number, base](ProcessExit exit) {
      FinishExec(number, base, std::move(exit));
    });
    if (!process.ok()) return std::move(process).error();
    exec->process = *std::move(process);
    exec->done = std::move(done);
    if (timeout > Duration::zero()) {
      exec->timer = loop_.RunAfter(timeout, [this, weak = std::weak_ptr(exec), base] {
        auto alive = weak.lock();
        if (!alive) return;
        alive->timed_out = true;
        // The command, not runc: killing runc alone would leave the command running.
        auto text = files_.ReadFile(base + ".pid");
        const auto pid = text.ok() ? ParseInt64(Trim(*text)) : std::nullopt;
        auto handle = pid ? ProcessHandle::Open(static_cast<int>(*pid)) : NotFound("no pid");
        if (handle.ok()) {
          static_cast<void>(handle->Signal(SIGKILL).ok());
        } else {
          static_cast<void>(alive->process->Signal(SIGKILL).ok());
        }
      });
    }
    execs_[number] = std::move(exec);
    return Ok();
  }

  void FinishExec(std::uint64_t number, const std::string& base, ProcessExit exit) {
    auto found = execs_.find(number);
    if (found == execs_.end()) return;
    auto exec = std::move(found->second);
    execs_.erase(found);
    exec->timer.reset();
    static_cast<void>(files_.Remove(base + ".json").ok());
    static_cast<void>(files_.Remove(base + ".pid").ok());
    if (exec->timed_out) {
      return exec->done(Error{ErrorCode::kDeadlineExceeded, "exec: the command ran out of time"});
    }
    if (exit.exit_code != 0 && exit.error_output.find("exec failed: ") != std::string::npos &&
        exit.error_output.find("level=error") != std::string::npos) {
      return exec->done(FailedPrecondition("exec: " + MeaningfulLine(exit.error_output)));
    }
    exec->done(ExecResult{exit.exit_code, std::move(exit.output), std::move(exit.error_output)});
  }

  // --- tools ---

  // Runs `runc <arguments>` and reports its failure in its own words.
  void RunRuntime(std::vector<std::string> arguments, absl::AnyInvocable<void(Result<bool>)> then) {
    ProcessOptions options;
    const std::string verb = arguments.front();
    options.arguments = {programs_.runtime, "--root", builder_->paths().runtime_state};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    auto shared = std::make_shared<absl::AnyInvocable<void(Result<bool>)>>(std::move(then));
    const std::uint64_t number = next_exec_++;
    auto process = spawner_->Spawn(std::move(options), [this, shared, verb, number](ProcessExit exit) {
      commands_.erase(number);
      if (exit.exit_code == 0) return (*shared)(true);
      (*shared)(FailedPrecondition(StrCat(BaseName(programs_.runtime), " ", verb, ": ",
                                          MeaningfulLine(exit.error_output))));
    });
    if (!process.ok()) {
      loop_.Post([shared, error = std::move(process).error()] { (*shared)(error); });
      return;
    }
    commands_[number] = *std::move(process);
  }

  template <typename T>
  void Blocking(absl::AnyInvocable<Result<T>()> work, absl::AnyInvocable<void(Result<T>)> then) {
    auto shared = std::make_shared<absl::AnyInvocable<void(Result<T>)>>(std::move(then));
    auto alive = std::weak_ptr<int>(alive_);
    const bool accepted =
        workers_.Run([&loop = loop_, alive, shared, work = std::move(work)]() mutable {
          auto result = work();
          work = nullptr;
          loop.Post([alive, shared = std::move(shared), result = std::move(result)]() mutable {
            if (alive.lock()) (*shared)(std::move(result));
          });
        });
    if (accepted) return;
    loop_.Post([alive, shared] {
      if (alive.lock()) (*shared)(Error{ErrorCode::kResourceExhausted, "too many operations at once"});
    });
  }

  // Repeats blocking work while it answers kUnavailable.
  void Retrying(std::function<Result<void>()> work, int attempts,
                absl::AnyInvocable<void(Result<void>)> then) {
    Blocking<bool>(
        [work]() -> Result<bool> {
          RETURN_IF_ERROR(work());
          return true;
        },
        [this, work, attempts, then = std::move(then)](Result<bool> done) mutable {
          if (done.ok()) return then(Ok());
          if (done.error().code != ErrorCode::kUnavailable || attempts <= 1) {
            return then(std::move(done).error());
          }
          const std::uint64_t number = next_exec_++;
          retries_[number] = loop_.RunAfter(
              kReleasePause, [this, number, work, attempts, then = std::move(then)]() mutable {
                auto own = std::move(retries_[number]);
                retries_.erase(number);
                Retrying(std::move(work), attempts - 1, std::move(then));
              });
        });
  }

  template <typename T>
  void Answer(RuntimeCallback<T> done, Result<T> result) {
    loop_.Post([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
  }

  std::optional<Error> Refusal(const PodSandboxConfig& config) const {
    if (!is_open_) return FailedPrecondition("the runtime is not open");
    if (config.uid.empty() || config.uid.find('/') != std::string::npos) {
      return InvalidArgument("run sandbox: the pod's uid is not valid");
    }
    if (config.share_process_namespace) {
      return Error{ErrorCode::kUnimplemented,
                   "shareProcessNamespace is not supported by the embedded runtime"};
    }
    if (!config.host_network) {
      return Error{ErrorCode::kUnimplemented,
                   "a network namespace per pod needs CNI, which the embedded runtime does not have"};
    }
    return std::nullopt;
  }

  std::shared_ptr<Container> Find(const std::string& id) const {
    auto found = containers_.find(id);
    return found == containers_.end() ? nullptr : found->second;
  }
  std::vector<std::shared_ptr<Container>> ContainersOf(const std::string& sandbox_id) const {
    std::vector<std::shared_ptr<Container>> list;
    for (const auto& [id, container] : containers_) {
      if (container->record.sandbox_id == sandbox_id) list.push_back(container);
    }
    return list;
  }
  template <typename T>
  static void SortByAge(std::vector<T>& list) {
    std::sort(list.begin(), list.end(), [](const T& a, const T& b) {
      return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
    });
  }

  // 256 random bits in hexadecimal, the form every container tool uses.
  std::string NewId() {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string id;
    for (int i = 0; i < 4; ++i) {
      std::uint64_t bits = random_.Next();
      for (int j = 0; j < 16; ++j, bits >>= 4) id += kDigits[bits & 15];
    }
    return id;
  }

  void Log(const std::string& text) const {
    if (options_.log) options_.log(text);
  }
  void LogOnce(const std::string& text) {
    if (logged_.size() >= kMaxLoggedOnce) logged_.clear();
    if (logged_.insert(text).second) Log(text);
  }

  UvLoop& loop_;
  WorkerPool& workers_;
  FileSystem& files_;
  Random& random_;
  ImageStore& images_;
  const OciRuntimeOptions options_;

  std::unique_ptr<Spawner> spawner_;
  OciPrograms programs_;
  std::shared_ptr<BundleBuilder> builder_;  // shared with work under way
  std::unique_ptr<FileWatcher> watcher_;
  std::unique_ptr<FileWatch> exits_watch_;  // after watcher_: ends before it

  bool is_open_ = false;
  std::function<void(const ContainerStatus&)> listener_;
  std::map<std::string, std::shared_ptr<Sandbox>> sandboxes_;
  std::map<std::string, std::shared_ptr<Container>> containers_;
  std::map<std::uint64_t, std::shared_ptr<Exec>> execs_;
  std::map<std::uint64_t, std::unique_ptr<Process>> commands_;
  std::map<std::uint64_t, TimerHandle> retries_;
  std::uint64_t next_exec_ = 0;
  std::set<std::string> logged_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // last: answers to nobody after us
};

}  // namespace

std::unique_ptr<Runtime> MakeOciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files,
                                        Random& random, ImageStore& images,
                                        OciRuntimeOptions options) {
  return std::make_unique<OciRuntime>(loop, workers, files, random, images, std::move(options));
}

}  // namespace drakkar::node
