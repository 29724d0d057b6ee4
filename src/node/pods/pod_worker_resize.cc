// In-place resize of requests and limits (KEP-1287).
#include <algorithm>

#include "api/json/reader.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/pods/pod_worker.h"

namespace drakkar::node {
namespace {

using api::Value;

// Whether the resizePolicy of a changed resource requires a restart.
bool WantsRestart(Value container, std::string_view before) {
  Result<api::TreePtr> old = api::ParseJson(before);
  if (!old.ok()) return false;
  for (Value policy : container["resizePolicy"].elements()) {
    if (policy["restartPolicy"].str() != "RestartContainer") continue;
    const std::string_view name = policy["resourceName"].str();
    for (const api::FieldName part : api::FieldNames{"limits", "requests"}) {
      if ((*old)->root()[part].Entry(name).str() != container["resources"][part].Entry(name).str())
        return true;
    }
  }
  return false;
}

bool ChangesCpu(Value container, std::string_view before) {
  Result<api::TreePtr> old = api::ParseJson(before);
  if (!old.ok()) return false;
  return std::ranges::any_of(api::FieldNames{"limits", "requests"}, [&](const api::FieldName part) {
    return CpuMilli((*old)->root()[part]) != CpuMilli(container["resources"][part]);
  });
}

}  // namespace

void PodWorker::SetResize(std::optional<ResizeState> state) {
  using Stage = ResizeState::Stage;
  const Stage before = resize_ ? resize_->stage : Stage::kInProgress;
  resize_ = std::move(state);
  const Stage after = resize_ ? resize_->stage : Stage::kInProgress;
  if (after == Stage::kInProgress || after == before) return;
  context_.events.Warning(pod_, StrCat("Resize", resize_->reason()), resize_->message);
}

std::optional<ResizeState> PodWorker::ResizeRefusal() const {
  const PodRequests wanted = RequestsOf(root());
  const PodRequests others =
      context_.others_requests ? context_.others_requests(uid_) : PodRequests{};
  const struct {
    const char* name;
    std::int64_t requested, used, capacity;
  } rows[] = {{"cpu", wanted.cpu_milli, others.cpu_milli, context_.machine_cpu_milli},
              {"memory", wanted.memory_bytes, others.memory_bytes, context_.machine_memory_bytes}};
  for (const auto& row : rows) {
    if (row.capacity > 0 && row.requested > row.capacity) {
      return ResizeState{ResizeState::Stage::kInfeasible,
                         StrCat("Node didn't have enough capacity: ", row.name,
                                ", requested: ", row.requested, ", capacity: ", row.capacity)};
    }
  }
  for (const auto& row : rows) {
    if (row.capacity > 0 && api::SaturatedAdd(row.requested, row.used) > row.capacity) {
      return ResizeState{ResizeState::Stage::kDeferred,
                         StrCat("Node didn't have enough resource: ", row.name, ", requested: ",
                                row.requested, ", used: ", row.used, ", capacity: ", row.capacity)};
    }
  }
  return std::nullopt;
}

bool PodWorker::StepResize() {
  for (const auto* list : {&facts_.init, &facts_.regular}) {
    for (const ContainerFacts& each : *list) {
      if (!each.running() || (each.init && !each.sidecar)) continue;
      const auto applied = each.current->annotations.find(kResourcesAnnotation);
      if (applied == each.current->annotations.end()) continue;  // created by an older agent
      const std::string wanted = ResourcesText(each.spec);
      if (applied->second == wanted || IsStopRequested(each.current->id)) continue;
      if (context_.cpus != nullptr && QosOf(root()) == QosClass::kGuaranteed &&
          ChangesCpu(each.spec, applied->second)) {
        SetResize(ResizeState{ResizeState::Stage::kInfeasible,
                              "Resize is infeasible for Guaranteed Pods alongside CPU Manager "
                              "policy \"static\""});
        return true;
      }
      if (auto refusal = ResizeRefusal()) {
        if (refusal->stage == ResizeState::Stage::kDeferred) ArmTimer(Tick() + kResizeRetry);
        SetResize(std::move(refusal));
        return true;
      }
      if (resize_retry_at_ > Tick()) {
        ArmTimer(resize_retry_at_);
        return true;
      }
      if (WantsRestart(each.spec, applied->second)) {
        SetResize(ResizeState{});
        attempts_[each.current->id].restarts_for_change = true;
        context_.events.Normal(pod_, "Killing",
                               StrCat("Container ", each.name, " resize requires restart"));
        StopContainer(each.current->id, each.name, GracePeriod());
        return true;
      }
      UpdateResources(each, wanted);
      return false;
    }
  }
  SetResize(std::nullopt);
  return true;
}

void PodWorker::UpdateResources(const ContainerFacts& container, const std::string& resources) {
  Begin(PodOperation::kResizingContainer);
  if (!resize_ || resize_->is_pending()) SetResize(ResizeState{});
  ResourceUpdate update;
  update.container = LimitsOf(container.spec);
  update.pod = PodLimits(context_.limits, root(), HasExclusiveCpus());
  update.annotations[kResourcesAnnotation] = resources;
  context_.runtime.UpdateContainer(
      container.current->id, std::move(update),
      lifetime_.Guard([this, name = container.name, resources](Result<void> updated) {
        if (!updated.ok()) {
          SetResize(ResizeState{ResizeState::Stage::kFailed,
                                StrCat("container ", name, ": ", updated.error().message)});
          resize_retry_at_ = Tick() + kResizeRetry;
        } else {
          context_.events.Normal(pod_, "ResizeCompleted",
                                 StrCat("Container ", name, " has its new resources: ", resources));
        }
        End();
      }));
}

}  // namespace drakkar::node
