#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/checkpoint/blocking_work.h"
#include "node/cpus/cpu_pool.h"
#include "node/dra/dra_manager.h"
#include "node/pods/container_config.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

}  // namespace

void PodWorker::StepStop() {
  if (FoundRunning()) Advance(PodEvent::kFoundRunning);
  while (!IsFinished()) {
    // Failed steps back off. Stopping containers is driven by its own deadlines.
    if (stage() != PodStage::kStoppingContainers && retry_at_ > Tick()) return ArmTimer(retry_at_);
    const std::optional<PodEvent> event = TakeDown();
    if (!event) return;
    Advance(*event);
  }
  Finish();
}

std::optional<PodEvent> PodWorker::TakeDown() {
  auto event_if = [](bool reached, PodEvent event) {
    return reached ? std::optional(event) : std::nullopt;
  };
  switch (stage()) {
    case PodStage::kAdmitting:
    case PodStage::kRunning:
    case PodStage::kFinished:
      break;
    case PodStage::kStoppingContainers:
      if (!StopContainers()) return std::nullopt;
      if (context_.cpus != nullptr) context_.cpus->Release(uid_);
      return PodEvent::kContainersStopped;
    case PodStage::kStoppingSandboxes:
      return event_if(StopSandboxes(), PodEvent::kSandboxesStopped);
    case PodStage::kUnpreparingClaims:
      Unprepare();
      break;
    case PodStage::kRemovingVolumes:
      TakeDownVolumes();
      break;
    case PodStage::kEnded:
      return event_if(IsDeleted(), PodEvent::kDeletionRequested);
    case PodStage::kReportingEnd:
      return event_if(object_gone_ || WriteStatus(), PodEvent::kEndReported);
    case PodStage::kRemovingRemains:
      RemoveRemains();
      break;
    case PodStage::kDeletingObject:
      if (object_gone_) return PodEvent::kObjectGone;
      DeleteObject();
      break;
    case PodStage::kAwaitingRemoval:
      return event_if(object_gone_, PodEvent::kObjectGone);
  }
  return std::nullopt;
}

// Nothing is started any more, but the runtime may still report something running.
bool PodWorker::FoundRunning() const {
  if (!stage_.Accepts(PodEvent::kFoundRunning)) return false;
  if (facts_.any_running()) return true;
  return stage() != PodStage::kStoppingSandboxes &&
         std::ranges::any_of(facts_.sandboxes, [](const PodSandbox& sandbox) {
           return sandbox.state == SandboxState::kReady;
         });
}

void PodWorker::Finish() {
  context_.loop.Post(lifetime_.Guard([this] { on_finished_(); }));
}

// True once no container runs.
bool PodWorker::StopContainers() {
  if (!facts_.any_running()) return true;
  const Value metadata = root()["metadata"];
  std::int64_t seconds = root()["spec"]["terminationGracePeriodSeconds"].integer(30);
  if (auto asked = metadata["deletionGracePeriodSeconds"].optional_integer()) seconds = *asked;
  if (pod_ == nullptr) seconds = 2;  // an orphan: its grace period is unknown
  Duration grace = BoundedSeconds(seconds);
  if (eviction_) grace = std::min(grace, eviction_grace_);
  const MonotonicTime kill_at = stop_started_ + grace;
  const Duration left = std::max<Duration>(kill_at - Tick(), Duration::zero());
  auto stop = [&](const std::string& id, const std::string& name) {
    if (!IsStopRequested(id) && pod_) {
      context_.events.Normal(pod_, "Killing", StrCat("Stopping container ", name));
    }
    StopContainer(id, name, left);
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
    break;  // the next one follows when this one has exited
  }
  return false;
}

bool PodWorker::IsStopRequested(const std::string& id) const {
  const auto found = attempts_.find(id);
  return found != attempts_.end() && found->second.stop.state() != ContainerStop::kNotRequested;
}

void PodWorker::StopContainer(const std::string& id, const std::string& name, Duration grace) {
  ContainerAttempt& attempt = attempts_[id];
  const MonotonicTime kill_at = Tick() + grace;
  if (attempt.stop.state() != ContainerStop::kNotRequested) {
    if (kill_at >= attempt.kill_at) return;
    attempt.kill_at = kill_at;
    return AskRuntimeToStop(id, name, grace);
  }
  attempt.kill_at = kill_at;
  const Value container = FindSpec(name);
  const Value hook = container["lifecycle"]["preStop"];
  if (!hook.has_value() || grace <= Duration::zero() ||
      !CanRunHook(hook, context_.prober != nullptr)) {
    return AskRuntimeToStop(id, name, grace);
  }
  attempt.stop.Apply(StopEvent::kHookBegun);
  // The hook consumes the grace period, but the container always gets two seconds after it.
  RunHook(
      id, container, hook, grace, &ContainerAttempt::pre_stop_timer,
      [this, id, name, kill_at](Result<void> result) {
        if (!result.ok() && pod_) {
          context_.events.Warning(pod_, "FailedPreStopHook",
                                  StrCat("PreStopHook failed: ", result.error().message));
        }
        const auto found = attempts_.find(id);
        if (found == attempts_.end() || found->second.stop.state() != ContainerStop::kPreStopHook) {
          return;  // an earlier deadline cut the hook short
        }
        AskRuntimeToStop(id, name, std::max<Duration>(kill_at - Tick(), std::chrono::seconds(2)));
      });
}

void PodWorker::AskRuntimeToStop(const std::string& id, const std::string& name, Duration grace) {
  ContainerAttempt& attempt = attempts_[id];
  if (!attempt.stop.Accepts(StopEvent::kRuntimeAsked)) return;  // it has already stopped
  attempt.stop.Apply(StopEvent::kRuntimeAsked);
  context_.runtime.StopContainer(id, grace, lifetime_.Guard([this, id, name](Result<void> result) {
    // A second request may have been answered first, and the attempt removed.
    const auto found = attempts_.find(id);
    const StopEvent event = result.ok() ? StopEvent::kRuntimeStopped : StopEvent::kRuntimeFailed;
    if (found != attempts_.end() && found->second.stop.Accepts(event)) {
      found->second.stop.Apply(event);
    }
    if (!result.ok()) {
      kLog.Warning("could not stop container", {{"podUID", uid_},
                                                {"container", name},
                                                {"containerID", id},
                                                {"err", result.error().message}});
      return ArmTimer(Tick() + kFirstRetry);
    }
    Sync();
  }));
}

void PodWorker::RetryFailedStops() {
  auto retry = [this](const std::string& id, const std::string& name) {
    const auto found = attempts_.find(id);
    if (found == attempts_.end() || found->second.stop.state() != ContainerStop::kFailed) return;
    AskRuntimeToStop(id, name,
                     std::max<Duration>(found->second.kill_at - Tick(), Duration::zero()));
  };
  for (const auto* list : {&facts_.init, &facts_.regular, &facts_.ephemeral}) {
    for (const ContainerFacts& each : *list) {
      if (each.running()) retry(each.current->id, each.name);
    }
  }
  for (const std::string& id : facts_.strangers) retry(id, "");
}

// True once no sandbox is ready.
bool PodWorker::StopSandboxes() {
  for (const PodSandbox& sandbox : facts_.sandboxes) {
    if (sandbox.state != SandboxState::kReady) continue;
    Begin(PodOperation::kStoppingSandbox);
    context_.runtime.StopPodSandbox(sandbox.id, lifetime_.Guard([this](Result<void> result) {
      if (!result.ok()) {
        kLog.Warning("could not stop sandbox", {{"podUID", uid_}, {"err", result.error().message}});
        BackOff();
      }
      End();
    }));
    return false;
  }
  return true;
}

void PodWorker::Unprepare() {
  if (IsInFlight(recovery_.state())) return;  // its end brings us here again
  Begin(PodOperation::kUnpreparingClaims);
  claims_call_.Apply(DriverEvent::kBegun);
  KeepHealth();
  context_.dra.Unprepare(uid_, lifetime_.Guard([this](Result<void> result) {
    const bool outdated = claims_call_.state() == DriverCall::kOutdated;
    claims_call_.Apply(result.ok() ? DriverEvent::kSucceeded : DriverEvent::kCallFailed);
    if (result.ok()) {
      Advance(PodEvent::kClaimsUnprepared);
      retry_backoff_.Reset();
    } else {
      kLog.Warning("could not unprepare claims",
                   {{"podUID", uid_}, {"err", result.error().message}});
      if (pod_) {
        context_.events.Warning(
            pod_, "FailedUnprepareDynamicResources",
            StrCat("Failed to unprepare dynamic resources: ", result.error().message));
      }
      if (outdated) retry_backoff_.Reset();
      BackOff();
    }
    End();
  }));
}

// Also for a completed pod that stays in the API: its in-memory volumes would keep using memory.
void PodWorker::TakeDownVolumes() {
  Begin(PodOperation::kRemovingVolumes);
  context_.work.Run([&files = context_.files, &host = context_.volume_host,
                     directory = PodDirectory()] { return RemoveVolumes(files, host, directory); },
                    lifetime_.Guard([this](Result<void> gone) {
                      if (gone.ok()) {
                        Advance(PodEvent::kVolumesRemoved);
                        retry_backoff_.Reset();
                      } else {
                        kLog.Warning("could not remove pod volumes",
                                     {{"podUID", uid_}, {"err", gone.error().message}});
                        BackOff();
                      }
                      End();
                    }));
}

void PodWorker::RemoveRemains() {
  if (!facts_.sandboxes.empty()) {
    Begin(PodOperation::kRemovingSandbox);
    context_.runtime.RemovePodSandbox(
        facts_.sandboxes.front().id, lifetime_.Guard([this](Result<void> result) {
          if (!result.ok()) {
            kLog.Warning("could not remove sandbox",
                         {{"podUID", uid_}, {"err", result.error().message}});
            BackOff();
          }
          End();
        }));
    return;
  }
  Begin(PodOperation::kRemovingFiles);
  context_.work.Run(
      [&files = context_.files, directory = PodDirectory(),
       logs = pod_ ? PodLogDirectory(context_.log_root, root()) : std::string()]() -> Result<void> {
        RETURN_IF_ERROR(files.RemoveTree(directory));
        return logs.empty() ? Ok() : files.RemoveTree(logs);
      },
      lifetime_.Guard([this](Result<void> gone) {
        if (gone.ok()) {
          Advance(PodEvent::kRemainsRemoved);
        } else {
          kLog.Warning("could not remove pod files",
                       {{"podUID", uid_}, {"err", gone.error().message}});
          BackOff();
        }
        End();
      }));
}

void PodWorker::DeleteObject() {
  Begin(PodOperation::kDeletingObject);
  context_.client.Delete(Ref(), {.grace_period_seconds = 0, .precondition_uid = uid_},
                         lifetime_.Guard([this](client::Reply reply) {
                           if (reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                               reply.error->code == ErrorCode::kConflict) {
                             Advance(PodEvent::kObjectDeleted);
                           } else {
                             kLog.Warning("could not delete pod", {{"pod", pod_->qualified_name()},
                                                                   {"err", reply.error->message}});
                             BackOff();
                           }
                           End();
                         }));
}

}  // namespace drakkar::node
