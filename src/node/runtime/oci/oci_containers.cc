#include "node/runtime/oci/oci_runtime_impl.h"

#include <signal.h>

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/container_id.h"

namespace drakkar::node {
namespace {

// A runtime that takes longer than this to create a container hangs (for example on a dead network
// mount).
constexpr Duration kLaunchTimeout = std::chrono::minutes(2);
constexpr int kStartErrorExitCode = 128;

}  // namespace

void OciRuntime::CreateContainer(const std::string& sandbox_id, ContainerConfig config,
                                 RuntimeCallback<std::string> done) {
  loop_.AssertInLoop();
  auto found = sandboxes_.find(sandbox_id);
  if (found == sandboxes_.end() || found->second->record.phase != Phase::kRunning) {
    return Answer(std::move(done),
                  Result<std::string>(FailedPrecondition("create container " + config.name +
                                                         ": its sandbox is not ready")));
  }
  auto container = std::make_shared<Container>();
  ContainerRecord& record = container->record;
  record.id = config.id.empty() ? NewContainerId(random_) : config.id;
  record.sandbox_id = sandbox_id;
  record.name = config.name;
  record.attempt = config.attempt;
  record.image = config.image;
  const SandboxRecord& sandbox = found->second->record;
  if (!config.log_path.empty()) record.log_path = JoinPath(sandbox.log_directory, config.log_path);
  record.cgroup_path = JoinPath(sandbox.cgroup_parent, record.id);
  if (!config.cgroup_path.empty()) {
    // Everything in this cgroup is killed when the container ends, so it must be its own.
    const bool is_own = config.cgroup_path.starts_with('/') &&
                        BaseName(config.cgroup_path) == record.id &&
                        config.cgroup_path.find("/../") == std::string::npos;
    if (!is_own) {
      return Answer(std::move(done), Result<std::string>(InvalidArgument(StrCat(
                                         "create container ", config.name, ": the cgroup path ",
                                         Quote(config.cgroup_path),
                                         " must be absolute and end in the container's id"))));
    }
    record.cgroup_path = config.cgroup_path;
  }
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
          return done(
              std::move(built).error().Prefixed("create container " + container->record.name));
        }
        for (const std::string& warning : built->warnings) LogOnce(warning);
        container->record = std::move(built->record);
        container->is_created = true;
        done(container->record.id);
      });
}

void OciRuntime::StartContainer(const std::string& id, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container) return Answer(std::move(done), Result<void>(NotFound("no container " + id)));
  ContainerRecord& record = container->record;
  if (record.phase == Phase::kRunning) return Answer(std::move(done), Ok());
  if (record.phase != Phase::kCreated || container->busy) {
    return Answer(std::move(done),
                  Result<void>(FailedPrecondition("start container " + record.name +
                                                  ": it is not in the created state")));
  }
  auto sandbox = sandboxes_.find(record.sandbox_id);
  if (sandbox == sandboxes_.end() || sandbox->second->record.phase != Phase::kRunning) {
    return Answer(std::move(done),
                  Result<void>(FailedPrecondition("start container " + record.name +
                                                  ": its sandbox is not ready")));
  }
  record.phase = Phase::kStarting;
  if (auto saved = builder_->Save(record); !saved.ok()) {
    record.phase = Phase::kCreated;
    return Answer(std::move(done), std::move(saved));
  }
  container->busy = true;
  auto shared_done = std::make_shared<RuntimeCallback<void>>(std::move(done));
  auto launch = ConmonLaunch::Start(
      loop_, *spawner_, ConmonArguments(ProgramsOf(record.sandbox_id), builder_->paths(), record),
      builder_->paths().Container(record.id), [this, container, shared_done](Result<int> pid) {
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
    StartFailed(
        container,
        Error{ErrorCode::kDeadlineExceeded, "the runtime did not create it within the time limit"},
        std::move(*shared_done));
  });
}

void OciRuntime::StopContainer(const std::string& id, Duration grace, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container) return Answer(std::move(done), Ok());
  switch (container->record.phase) {
    case Phase::kCreating:
    case Phase::kCreated:
    case Phase::kRemoving:
      return Answer(std::move(done), Ok());
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

void OciRuntime::UpdateContainer(const std::string& id, ResourceUpdate update,
                                 RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  auto sandbox = container ? sandboxes_.find(container->record.sandbox_id) : sandboxes_.end();
  if (!container || container->record.phase != Phase::kRunning || sandbox == sandboxes_.end()) {
    return Answer(std::move(done),
                  Result<void>(FailedPrecondition("the container is not running")));
  }
  Blocking<bool>(
      [builder = builder_, record = container->record, pod = sandbox->second->record,
       update]() -> Result<bool> {
        RETURN_IF_ERROR(builder->Resize(record, pod, update));
        return true;
      },
      [this, container, sandbox = sandbox->second, pod = update.pod,
       annotations = std::move(update.annotations),
       done = std::move(done)](Result<bool> resized) mutable {
        if (!resized.ok()) return done(std::move(resized).error());
        sandbox->record.cpu_shares = pod.cpu_shares;
        sandbox->record.cpu_quota_us = pod.cpu_quota_us;
        sandbox->record.cpu_period_us = pod.cpu_period_us;
        sandbox->record.memory_limit_bytes = pod.memory_limit_bytes;
        if (auto saved = builder_->Save(sandbox->record); !saved.ok()) {
          return done(std::move(saved));
        }
        for (auto& [name, value] : annotations) container->record.annotations[name] = value;
        done(builder_->Save(container->record));
      });
}

void OciRuntime::ChangeCgroup(const std::string& id, CgroupChanges changes,
                              RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container) return Answer(std::move(done), Result<void>(NotFound("no container " + id)));
  switch (container->record.phase) {
    case Phase::kCreating:
    case Phase::kCreated:
    case Phase::kStarting:
      // Its cgroup may not exist yet.
      Merge(changes, container->changes);
      return Answer(std::move(done), Ok());
    case Phase::kExited:
    case Phase::kRemoving:
      return Answer(std::move(done),
                    Result<void>(FailedPrecondition("the container is not running")));
    case Phase::kRunning:
      break;
  }
  Blocking<bool>(
      [builder = builder_, record = container->record,
       changes = std::move(changes)]() -> Result<bool> {
        RETURN_IF_ERROR(builder->ChangeCgroup(record, changes));
        return true;
      },
      [done = std::move(done)](Result<bool> changed) mutable {
        if (!changed.ok()) return done(std::move(changed).error());
        done(Ok());
      });
}

Result<std::string> OciRuntime::ContainerSpec(const std::string& id) const {
  if (!Find(id)) return NotFound("no container " + id);
  return files_.ReadFile(builder_->paths().Container(id) + "/config.json");
}

void OciRuntime::RemoveContainer(const std::string& id, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container) return Answer(std::move(done), Ok());
  if (container->record.phase == Phase::kCreating) {
    return Answer(std::move(done),
                  Result<void>(FailedPrecondition("the container is being created")));
  }
  container->remove_waiters.push_back(std::move(done));
  if (container->remove_waiters.size() > 1) return;
  StopContainer(id, Duration::zero(), [this, container](Result<void> stopped) {
    if (!stopped.ok()) return FinishRemoval(container, std::move(stopped));
    container->record.phase = Phase::kRemoving;
    if (auto saved = builder_->Save(container->record); !saved.ok()) {
      return FinishRemoval(container, std::move(saved));
    }
    Retrying([builder = builder_,
              record = container->record] { return builder->DestroyContainer(record); },
             kReleaseAttempts,
             [this, container](Result<void> destroyed) {
               FinishRemoval(container, std::move(destroyed));
             });
  });
}

void OciRuntime::OnLaunched(const std::shared_ptr<Container>& container, Result<int> pid,
                            RuntimeCallback<void> done) {
  container->launch_timer.reset();
  container->launch.reset();
  if (!pid.ok()) return StartFailed(container, std::move(pid).error(), std::move(done));
  container->record.pid = *pid;
  auto init = ProcessHandle::Open(*pid);
  auto ticks = ProcessStartTicks(*pid);
  if (!init.ok() || !ticks.ok()) {
    return StartFailed(container, FailedPrecondition("the container's init exited before it ran"),
                       std::move(done));
  }
  container->record.pid_start_ticks = *ticks;
  container->init = std::make_shared<ProcessHandle>(*std::move(init));
  if (container->changes.empty()) return LetGo(container, std::move(done));
  Blocking<bool>(
      [builder = builder_, record = container->record,
       changes = std::exchange(container->changes, {})]() -> Result<bool> {
        RETURN_IF_ERROR(builder->ChangeCgroup(record, changes));
        return true;
      },
      [this, container, done = std::move(done)](Result<bool> changed) mutable {
        if (!changed.ok()) {
          return StartFailed(container, std::move(changed).error(), std::move(done));
        }
        LetGo(container, std::move(done));
      });
}

void OciRuntime::LetGo(const std::shared_ptr<Container>& container, RuntimeCallback<void> done) {
  auto after = [this, container, done = std::move(done)](Result<bool> released) mutable {
    if (!released.ok()) return StartFailed(container, std::move(released).error(), std::move(done));
    OnStarted(container, std::move(done));
  };
  if (BaseName(ProgramsOf(container->record.sandbox_id).runtime) == "runc") {
    Blocking<bool>(
        [fifo = builder_->paths().ExecFifo(container->record.id),
         process = container->init]() -> Result<bool> {
          RETURN_IF_ERROR(ReleaseExecFifo(fifo, *process));
          return true;
        },
        std::move(after));
    return;
  }
  RunRuntime({"start"}, container->record, std::move(after));
}

void OciRuntime::OnStarted(const std::shared_ptr<Container>& container,
                           RuntimeCallback<void> done) {
  ContainerRecord& record = container->record;
  container->busy = false;
  record.phase = Phase::kRunning;
  record.started_at = loop_.clock().Now();
  // If the record could not be replaced it still says "starting", which adoption also handles.
  if (auto saved = builder_->Save(record); !saved.ok()) Log(saved.error().message);
  // Changes that came while it was let go.
  if (!container->changes.empty()) {
    ChangeCgroup(record.id, std::exchange(container->changes, {}),
                 [this, name = record.name](Result<void> changed) {
                   if (!changed.ok()) {
                     Log("change the cgroup of container " + name + ": " + changed.error().message);
                   }
                 });
  }
  const Conmon conmon = WatchConmon(container);
  done(Ok());
  if (auto ended = HandleExit(container); ended.ok() && *ended) return;
  if (conmon == Conmon::kGone) return OnConmonGone(container);
  if (conmon == Conmon::kUnknown) LookAgainForConmon(container);
  if (container->stop_after_start) BeginStop(container, *container->stop_after_start);
}

void OciRuntime::StartFailed(const std::shared_ptr<Container>& container, Error error,
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

void OciRuntime::Release(const std::shared_ptr<Container>& container) {
  container->is_releasing = true;
  auto rest = [this, container](Result<bool> deleted) {
    if (!deleted.ok()) Log("container " + container->record.id + ": " + deleted.error().message);
    Retrying(
        [builder = builder_, record = container->record] {
          return builder->ReleaseContainer(record);
        },
        kReleaseAttempts,
        [this, container](Result<void> released) { Released(container, std::move(released)); });
  };
  if (container->record.has_poststop_hooks) {
    RunRuntime({"delete", "--force"}, container->record, std::move(rest));
  } else {
    rest(true);
  }
}

void OciRuntime::Released(const std::shared_ptr<Container>& container, Result<void> released) {
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

void OciRuntime::BeginStop(const std::shared_ptr<Container>& container, Duration grace) {
  if (!container->init) {
    // It has exited, or could not be inspected when it was adopted.
    auto init = ProcessHandle::Open(container->record.pid, container->record.pid_start_ticks);
    if (!init.ok()) return OnConmonGone(container);
    container->init = std::make_shared<ProcessHandle>(*std::move(init));
  }
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

void OciRuntime::FinishRemoval(const std::shared_ptr<Container>& container, Result<void> result) {
  if (result.ok()) {
    containers_.erase(container->record.id);
  } else {
    result = std::move(result).error().Prefixed("remove container " + container->record.name);
  }
  auto waiters = std::move(container->remove_waiters);
  container->remove_waiters.clear();
  for (auto& waiter : waiters) waiter(result);
}

}  // namespace drakkar::node
