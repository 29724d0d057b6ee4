#include "answers/pending/pending.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "answers/cluster/claim_use.h"

namespace drakkar::answers {
namespace {

using api::Value;
using Stage = PendingPod::Stage;

std::optional<Stage> FindStage(const api::Object& pod, Value scheduled) {
  const std::string_view phase = pod["status"]["phase"].str();
  const bool has_claims = !pod["spec"]["resourceClaims"].empty();
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  if (pod.is_being_deleted()) {
    return has_claims ? std::optional(Stage::kTerminating) : std::nullopt;
  }
  if (!pod["spec"]["nodeName"].str().empty()) {
    return has_claims && phase == "Pending" ? std::optional(Stage::kStarting) : std::nullopt;
  }
  if (!pod["spec"]["schedulingGates"].empty()) return Stage::kGated;
  return scheduled["status"].str() == "False" ? Stage::kUnschedulable : Stage::kQueued;
}

}  // namespace

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kUnschedulable:
      return "Unschedulable";
    case Stage::kQueued:
      return "Queued";
    case Stage::kGated:
      return "Gated";
    case Stage::kStarting:
      return "Starting";
    case Stage::kTerminating:
      return "Terminating";
  }
  return "";
}

std::vector<PendingPod> FindPending(const Snapshot& snapshot) {
  std::vector<PendingPod> found;
  for (const api::ObjectPtr& pod : snapshot.pods) {
    Value scheduled;
    for (Value condition : (*pod)["status"]["conditions"].elements()) {
      if (condition["type"].str() == "PodScheduled") scheduled = condition;
    }
    const std::optional<Stage> stage = FindStage(*pod, scheduled);
    if (!stage) continue;
    const Value metadata = (*pod)["metadata"];
    PendingPod pending{.namespace_ = std::string(pod->namespace_()),
                       .name = std::string(pod->name()),
                       .stage = *stage,
                       .since = std::string(metadata["creationTimestamp"].str()),
                       .node = std::string((*pod)["spec"]["nodeName"].str()),
                       .owner = OwnerOf(*pod),
                       .claims = (*pod)["spec"]["resourceClaims"].size()};
    if (*stage == Stage::kTerminating) pending.since = metadata["deletionTimestamp"].str();
    if (*stage == Stage::kUnschedulable || *stage == Stage::kGated) {
      pending.message = scheduled["message"].str();
    }
    found.push_back(std::move(pending));
  }
  std::sort(found.begin(), found.end(), [](const PendingPod& a, const PendingPod& b) {
    return std::tie(a.stage, a.since, a.namespace_, a.name) <
           std::tie(b.stage, b.since, b.namespace_, b.name);
  });
  return found;
}

}  // namespace drakkar::answers
