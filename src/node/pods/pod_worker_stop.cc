#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/checkpoint/blocking_work.h"
#include "node/dra/dra_manager.h"
#include "node/pods/container_config.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

}  // namespace

void PodWorker::RetryStop() {
  retry_at_ = Tick() + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLongestRetry);
}

void PodWorker::StepStop() {
  if (!StopContainers()) return;
  if (retry_at_ > Tick()) return ArmTimer(retry_at_);
  if (!StopSandboxes()) return;
  if (!unprepared_) return Unprepare();
  terminated_ = true;
  if (!volumes_removed_) return TakeDownVolumes();
  if (!IsDeleted()) return;  // it ran to its end: what is left stays until it is deleted
  if (!gone_ && !WriteStatus()) return;
  if (!removed_) return RemoveRemains();
  if (!gone_ && !object_deleted_) return DeleteObject();
  if (gone_) {
    finished_ = true;
    context_.loop.Post([this, alive = Alive()] {
      if (alive.lock()) on_finished_();
    });
  }
}

// True once nothing runs.
bool PodWorker::StopContainers() {
  if (!facts_.any_running()) return true;
  const Value metadata = root()["metadata"];
  std::int64_t seconds = root()["spec"]["terminationGracePeriodSeconds"].integer(30);
  if (auto asked = metadata["deletionGracePeriodSeconds"].optional_integer()) seconds = *asked;
  if (pod_ == nullptr) seconds = 2;  // an orphan: nobody says how long it may take
  Duration grace = std::chrono::seconds(std::max<std::int64_t>(seconds, 0));
  if (eviction_) grace = std::min(grace, kEvictionGrace);
  const MonotonicTime kill_at = stop_started_ + grace;
  const Duration left = std::max<Duration>(kill_at - Tick(), Duration::zero());
  auto stop = [&](const std::string& id, const std::string& name) {
    auto [entry, first] = stops_.try_emplace(id, kill_at);
    if (!first && entry->second <= kill_at) return;
    entry->second = kill_at;
    if (first && pod_) {
      context_.events.Normal(pod_, "Killing", StrCat("Stopping container ", name));
    }
    StopOne(id, name, left);
  };
  for (const std::string& id : facts_.strangers) stop(id, "of an older version");
  bool others = !facts_.strangers.empty();
  for (const auto* list : {&facts_.ephemeral, &facts_.regular, &facts_.init}) {
    for (const ContainerFacts& each : *list) {
      if (!each.running() || each.sidecar) continue;
      others = true;
      stop(each.current->id, each.name);
    }
  }
  if (others) return false;
  for (auto each = facts_.init.rbegin(); each != facts_.init.rend(); ++each) {
    if (!each->running()) continue;
    stop(each->current->id, each->name);
    break;  // the next one when this one has ended
  }
  return false;
}

void PodWorker::StopOne(const std::string& id, const std::string& name, Duration grace) {
  const Value container = FindSpec(name);
  const Value hook = container["lifecycle"]["preStop"];
  if (hook.has_value() && grace > Duration::zero() &&
      CanRunHook(hook, context_.prober != nullptr) && hooked_.insert(id).second) {
    const MonotonicTime kill_at = Tick() + grace;
    // The hook's time counts; a container it leaves without any gets two more seconds.
    return RunHook(id, container, hook, grace, [this, id, name, kill_at](Result<void> result) {
      if (!result.ok() && pod_) {
        context_.events.Warning(pod_, "FailedPreStopHook",
                                StrCat("PreStopHook failed: ", result.error().message));
      }
      StopOne(id, name, std::max<Duration>(kill_at - Tick(), std::chrono::seconds(2)));
    });
  }
  context_.runtime.StopContainer(id, grace, [this, id, name, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    if (!result.ok()) {
      kLog.Warning("cannot stop a container",
                   {{"container", name}, {"err", result.error().message}});
      stops_.erase(id);
      return ArmTimer(Tick() + kFirstRetry);
    }
    Sync();
  });
}

// True once none is ready.
bool PodWorker::StopSandboxes() {
  for (const PodSandbox& sandbox : facts_.sandboxes) {
    if (sandbox.state != SandboxState::kReady) continue;
    Begin();
    context_.runtime.StopPodSandbox(sandbox.id, [this, alive = Alive()](Result<void> result) {
      if (!alive.lock()) return;
      if (!result.ok()) {
        kLog.Warning("cannot stop a sandbox", {{"podUID", uid_}, {"err", result.error().message}});
        RetryStop();
      }
      End();
    });
    return false;
  }
  return true;
}

void PodWorker::Unprepare() {
  if (recovering_) return;  // its end brings us here again
  Begin();
  driver_came_ = false;
  KeepHealth();
  context_.dra.Unprepare(uid_, [this, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    waits_for_driver_ = !result.ok();
    if (result.ok()) {
      unprepared_ = true;
      retry_delay_ = kFirstRetry;
    } else {
      kLog.Warning("cannot unprepare", {{"podUID", uid_}, {"err", result.error().message}});
      if (pod_) {
        context_.events.Warning(
            pod_, "FailedUnprepareDynamicResources",
            StrCat("Failed to unprepare dynamic resources: ", result.error().message));
      }
      if (driver_came_) retry_delay_ = kFirstRetry;
      RetryStop();
    }
    End();
  });
}

// Also of a pod that stays in the API for long after its end: what is in memory would stay there.
void PodWorker::TakeDownVolumes() {
  Begin();
  context_.work.Run([&files = context_.files, &host = context_.volume_host,
                     directory = PodDirectory()] { return RemoveVolumes(files, host, directory); },
                    [this, alive = Alive()](Result<void> gone) {
                      if (!alive.lock()) return;
                      if (gone.ok()) {
                        volumes_removed_ = true;
                        retry_delay_ = kFirstRetry;
                      } else {
                        kLog.Warning("cannot take down the volumes of a pod",
                                     {{"podUID", uid_}, {"err", gone.error().message}});
                        RetryStop();
                      }
                      End();
                    });
}

void PodWorker::RemoveRemains() {
  if (!facts_.sandboxes.empty()) {
    Begin();
    context_.runtime.RemovePodSandbox(
        facts_.sandboxes.front().id, [this, alive = Alive()](Result<void> result) {
          if (!alive.lock()) return;
          if (!result.ok()) {
            kLog.Warning("cannot remove a sandbox",
                         {{"podUID", uid_}, {"err", result.error().message}});
            RetryStop();
          }
          End();
        });
    return;
  }
  Begin();
  context_.work.Run(
      [&files = context_.files, directory = PodDirectory(),
       logs = pod_ ? PodLogDirectory(context_.log_root, root()) : std::string()]() -> Result<void> {
        RETURN_IF_ERROR(files.RemoveTree(directory));
        return logs.empty() ? Ok() : files.RemoveTree(logs);
      },
      [this, alive = Alive()](Result<void> gone) {
        if (!alive.lock()) return;
        if (gone.ok()) {
          removed_ = true;
        } else {
          kLog.Warning("cannot remove the files of a pod",
                       {{"podUID", uid_}, {"err", gone.error().message}});
          RetryStop();
        }
        End();
      });
}

void PodWorker::DeleteObject() {
  Begin();
  context_.client.Delete(Ref(), {.grace_period_seconds = 0, .precondition_uid = uid_},
                         [this, alive = Alive()](client::Reply reply) {
                           if (!alive.lock()) return;
                           if (reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                               reply.error->code == ErrorCode::kConflict) {
                             object_deleted_ = true;
                           } else {
                             kLog.Warning(
                                 "cannot delete a pod that has ended",
                                 {{"pod", pod_->qualified_name()}, {"err", reply.error->message}});
                             RetryStop();
                           }
                           End();
                         });
}

}  // namespace drakkar::node
