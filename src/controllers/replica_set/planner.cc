#include "controllers/replica_set/planner.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kReplicaFailure = "ReplicaFailure";

Duration MinReady(const api::Object& set) {
  return std::chrono::seconds(set["spec"]["minReadySeconds"].integer());
}

int PhaseRank(std::string_view phase) {
  if (phase == "Running") return 2;
  return phase == "Unknown" ? 1 : 0;
}

// The logarithm of an age, so that pods of similar age count as equally old. Younger pods are
// deleted first, and pods without a time before all others.
int AgeRank(std::optional<WallTime> time, WallTime now) {
  if (!time) return -2;
  const auto age = (now - *time).count();
  return age <= 0 ? -1 : static_cast<int>(std::log2(static_cast<double>(age)));
}

std::pair<std::int64_t, std::int64_t> Restarts(const api::Object& pod) {
  const Value status = pod["status"];
  std::int64_t regular = 0, sidecars = 0;
  for (Value container : status["containerStatuses"].elements()) {
    regular = std::max(regular, container["restartCount"].integer());
  }
  std::set<std::string_view> names;
  for (Value container : pod["spec"]["initContainers"].elements()) {
    if (container["restartPolicy"].str() == "Always") {
      names.insert(container["name"].str());
    }
  }
  for (Value container : status["initContainerStatuses"].elements()) {
    if (!names.contains(container["name"].str())) continue;
    sidecars = std::max(sidecars, container["restartCount"].integer());
  }
  return {regular, sidecars};
}

using DeletionOrder = std::tuple<bool, int, bool, std::int64_t, int, int, std::int64_t,
                                 std::int64_t, int, std::string_view>;

DeletionOrder OrderOf(const api::Object& pod,
                      const std::map<std::string, int, std::less<>>& related, WallTime now) {
  const std::string_view node = pod["spec"]["nodeName"].str();
  const auto neighbours = related.find(node);
  const bool ready = IsReady(pod);
  const auto [regular, sidecars] = Restarts(pod);
  const Value metadata = pod["metadata"];
  return {!node.empty(),
          PhaseRank(pod["status"]["phase"].str()),
          ready,
          ParseInt64(metadata["annotations"].Entry(kDeletionCost).str()).value_or(0),
          neighbours == related.end() ? 0 : -neighbours->second,
          ready ? AgeRank(ReadySince(pod), now) : 0,
          -regular,
          -sidecars,
          AgeRank(TimeOf(metadata["creationTimestamp"]), now),
          pod.uid()};
}

bool HasLabelsOf(Value labels, Value wanted) {
  for (const auto& [key, name, value] : wanted.members()) {
    if (labels.Entry(name).str() != value.str() || !labels.Entry(name).exists()) return false;
  }
  return true;
}

void SetNumber(api::Draft& status, api::FieldName field, std::int64_t number, bool always) {
  if (number != 0 || always) {
    status[field] = number;
  } else {
    status.Remove(field);
  }
}

}  // namespace

std::vector<api::ObjectPtr> InOrderOfDeletion(
    const std::vector<api::ObjectPtr>& pods, const std::map<std::string, int, std::less<>>& related,
    WallTime now) {
  std::vector<std::pair<DeletionOrder, api::ObjectPtr>> ordered;
  ordered.reserve(pods.size());
  for (const api::ObjectPtr& pod : pods) ordered.emplace_back(OrderOf(*pod, related, now), pod);
  std::ranges::sort(ordered, {},
                    [](const auto& each) -> const DeletionOrder& { return each.first; });
  std::vector<api::ObjectPtr> result;
  result.reserve(pods.size());
  for (auto& [order, pod] : ordered) result.push_back(std::move(pod));
  return result;
}

ReplicaPlan PlanReplicas(std::int64_t wanted, const std::vector<api::ObjectPtr>& active,
                         const std::map<std::string, int, std::less<>>& related, WallTime now) {
  ReplicaPlan plan;
  const auto have = static_cast<std::int64_t>(active.size());
  if (have < wanted) {
    plan.create = std::min(static_cast<std::size_t>(wanted - have), kMaxReplicaBurst);
  } else if (have > wanted) {
    const std::size_t extra = std::min(static_cast<std::size_t>(have - wanted), kMaxReplicaBurst);
    plan.remove = extra == active.size() ? active : InOrderOfDeletion(active, related, now);
    plan.remove.resize(extra);
  }
  return plan;
}

std::optional<api::Draft> PlanReplicaStatus(const api::Object& set, const ReplicaCounts& counts,
                                            WallTime now) {
  const Value before = set["status"];
  const Duration min_ready = MinReady(set);
  const Value template_labels = set["spec"]["template"]["metadata"]["labels"];
  std::int64_t labelled = 0, ready = 0, available = 0;
  for (const api::ObjectPtr& pod : counts.active) {
    if (HasLabelsOf((*pod)["metadata"]["labels"], template_labels)) ++labelled;
    if (!IsReady(*pod)) continue;
    ++ready;
    if (IsAvailable(*pod, min_ready, now)) ++available;
  }
  const auto replicas = static_cast<std::int64_t>(counts.active.size());
  const std::int64_t generation = set["metadata"]["generation"].integer();
  const Value failure = FindCondition(before, kReplicaFailure);
  const bool same = before["replicas"].optional_integer() == replicas &&
                    before["fullyLabeledReplicas"].integer() == labelled &&
                    before["readyReplicas"].integer() == ready &&
                    before["availableReplicas"].integer() == available &&
                    (!counts.reports_terminating ||
                     before["terminatingReplicas"].optional_integer() == counts.terminating) &&
                    before["observedGeneration"].integer() == generation &&
                    failure.exists() == !counts.failure_reason.empty();
  if (same) return std::nullopt;
  api::Draft status(before);
  status.KeepAlive(set.tree());
  SetNumber(status, "replicas", replicas, true);
  SetNumber(status, "fullyLabeledReplicas", labelled, false);
  SetNumber(status, "readyReplicas", ready, false);
  SetNumber(status, "availableReplicas", available, false);
  if (counts.reports_terminating) {
    SetNumber(status, "terminatingReplicas", counts.terminating, true);
  }
  SetNumber(status, "observedGeneration", generation, false);
  if (failure.exists() == !counts.failure_reason.empty()) return status;
  api::Draft conditions = api::Draft::Array();
  for (Value condition : before["conditions"].elements()) {
    if (condition["type"].str() != kReplicaFailure) conditions.Append(api::Draft(condition));
  }
  if (!counts.failure_reason.empty()) {
    conditions.Append({{"type", kReplicaFailure},
                       {"status", "True"},
                       {"lastTransitionTime", api::FormatTime(now)},
                       {"reason", counts.failure_reason},
                       {"message", counts.failure}});
  }
  if (conditions.size() == 0) {
    status.Remove("conditions");
  } else {
    status["conditions"] = std::move(conditions);
  }
  return status;
}

std::optional<Duration> NextAvailability(const api::Object& set,
                                         const std::vector<api::ObjectPtr>& active, WallTime now) {
  std::optional<Duration> next;
  for (const api::ObjectPtr& pod : active) {
    const std::optional<Duration> wait = UntilAvailable(*pod, MinReady(set), now);
    if (wait && (!next || *wait < *next)) next = wait;
  }
  return next;
}

}  // namespace drakkar::controllers
