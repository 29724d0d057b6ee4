#include "scheduler/plugins/node_resources/node_resources_fit.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text/text.h"
#include "scheduler/cache/extended_resources.h"
#include "scheduler/cache/room_keepers.h"

namespace drakkar::scheduler {

namespace {

// Clears the bits of nodes with less than `wanted` in the column, 64 nodes at a time.
void KeepAtLeast(const std::vector<std::int64_t>& column, std::int64_t wanted, NodeSet& nodes) {
  for (std::size_t word = 0; word < nodes.word_count(); ++word) {
    const std::uint64_t bits = nodes.word(word);
    if (bits == 0) continue;
    const std::size_t first = word * 64;
    const std::size_t count = std::min<std::size_t>(64, column.size() - first);
    std::uint64_t enough = 0;
    for (std::size_t i = 0; i < count; ++i) {
      enough |= static_cast<std::uint64_t>(column[first + i] >= wanted) << i;
    }
    nodes.set_word(word, bits & enough);
  }
}

// The score of a shape at a utilization in percent.
std::int64_t At(const std::vector<FitScoring::ShapePoint>& shape, std::int64_t utilization) {
  if (utilization <= shape[0].utilization) return shape[0].score;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const FitScoring::ShapePoint &from = shape[i - 1], &to = shape[i];
    if (utilization > to.utilization) continue;
    return from.score + (to.score - from.score) * (utilization - from.utilization) /
                            (to.utilization - from.utilization);
  }
  return shape.back().score;
}

}  // namespace

template <typename Report>
void NodeResourcesFit::FindMissing(const PodInfo& pod, NodeIndex node, Nominated nominated_pods,
                                   Report report) const {
  ResourceAmounts wanted = pod.requests;
  std::int64_t pods = 1;
  const auto* nominated =
      nominated_pods == Nominated::kCount ? nodes_.FindNominated(node) : nullptr;
  if (nominated != nullptr) {
    for (const PodInfoPtr& other : *nominated) {
      if (!nodes_.KeepsRoomFrom(*other, pod)) continue;
      wanted.Add(other->requests);
      ++pods;
    }
  }
  if (nodes_.free_pods()[node] < pods) report("Too many pods");
  // A resource that the pod itself does not request may be overcommitted.
  const ResourceAmounts& own = pod.requests;
  if (own.milli_cpu > 0 && wanted.milli_cpu > nodes_.free_cpu()[node]) report("Insufficient cpu");
  if (own.memory > 0 && wanted.memory > nodes_.free_memory()[node]) report("Insufficient memory");
  if (own.ephemeral_storage > 0 && wanted.ephemeral_storage > nodes_.free_storage()[node]) {
    report("Insufficient ephemeral-storage");
  }
  for (const auto& [name, amount] : own.others) {
    if (IsIgnored(name) || IsGivenAsDevices(nodes_, devices_, node, name)) continue;
    if (wanted.Other(name) > nodes_.FreeOther(node, name)) report(StrCat("Insufficient ", name));
  }
}

Status NodeResourcesFit::Filter(Cycle& cycle, NodeSet& nodes) {
  const PodInfo& pod = *cycle.pod;
  nodes.RemoveAll(nodes_.without_pod_slots());
  if (pod.requests.milli_cpu > 0) KeepAtLeast(nodes_.free_cpu(), pod.requests.milli_cpu, nodes);
  if (pod.requests.memory > 0) KeepAtLeast(nodes_.free_memory(), pod.requests.memory, nodes);
  if (pod.requests.ephemeral_storage > 0) {
    KeepAtLeast(nodes_.free_storage(), pod.requests.ephemeral_storage, nodes);
  }
  if (pod.requests.others.empty() && !nodes_.has_nominated()) return Status::Success();
  const NodeSet left = nodes;
  left.ForEach([&](NodeIndex node) {
    if (pod.requests.others.empty() && nodes_.FindNominated(node) == nullptr) return;
    bool fits = true;
    FindMissing(pod, node, Nominated::kCount, [&](std::string_view) { fits = false; });
    if (!fits) nodes.Remove(node);
  });
  return Status::Success();
}

void NodeResourcesFit::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const PodInfo& pod = *cycle.pod;
  // Distinguish kept from used resources and name the pods they are kept for. Otherwise nobody
  // could tell why a node that looks empty accepts no pods. The names come first, so that equal
  // reasons are counted together.
  RoomKeepers keepers;
  std::map<NodeIndex, std::set<std::string>>
      kept;  // resources that are missing only because they are kept
  if (nodes_.has_nominated()) {
    rejected.ForEach([&](NodeIndex node) {
      if (nodes_.FindNominated(node) == nullptr) return;
      std::set<std::string> reasons;
      FindMissing(pod, node, Nominated::kCount,
                  [&](std::string_view reason) { reasons.emplace(reason); });
      FindMissing(pod, node, Nominated::kIgnore,
                  [&](std::string_view reason) { reasons.erase(std::string(reason)); });
      if (reasons.empty()) return;
      keepers.AddOf(nodes_, node, pod);
      kept.emplace(node, std::move(reasons));
    });
  }
  rejected.ForEach([&](NodeIndex node) {
    const auto kept_here = kept.find(node);
    FindMissing(pod, node, Nominated::kCount, [&](std::string_view reason) {
      if (kept_here != kept.end() && kept_here->second.contains(std::string(reason))) {
        diagnosis.Count(StrCat(reason, " (", keepers.ToText(), ")"));
      } else {
        diagnosis.Count(reason);
      }
    });
  });
}

bool NodeResourcesFit::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  const ResourceAmounts& wanted = pod.requests;
  switch (event.kind) {
    case EventKind::kBoundPodRemove:  // it used at least one pod slot
    case EventKind::kBoundPodShrink:
      return true;
    case EventKind::kNodeAdd:
    case EventKind::kNodeAllocatable: {
      const api::Value allocatable = event.after->root()["status"]["allocatable"];
      const ResourceAmounts has = ReadResourceList(allocatable);
      if (ReadAmount("pods", allocatable.Entry("pods")) < 1) return false;
      if (has.milli_cpu < wanted.milli_cpu || has.memory < wanted.memory ||
          has.ephemeral_storage < wanted.ephemeral_storage) {
        return false;
      }
      return std::all_of(wanted.others.begin(), wanted.others.end(), [&](const auto& other) {
        const std::int64_t offered = has.Other(other.first);
        return IsIgnored(other.first) || offered >= other.second ||
               (offered == 0 && devices_.FindClassOf(other.first) != nullptr);
      });
    }
    case EventKind::kClassChange:
      return std::ranges::any_of(wanted.others, [&](const auto& other) {
        return devices_.FindClassOf(other.first) != nullptr;
      });
    case EventKind::kTargetPodChange:
      return MakePodInfo(event.before)->requests != wanted;
    default:
      return true;
  }
}

bool NodeResourcesFit::IsIgnored(std::string_view resource) const {
  const auto has = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (args_.ignored_resources.empty() && args_.ignored_groups.empty()) return false;
  return has(args_.ignored_resources, resource) ||
         has(args_.ignored_groups, resource.substr(0, resource.find('/')));
}

bool NodeResourcesFit::ScoreByArgs(const PodInfo& pod, std::span<const NodeIndex> nodes,
                                   std::span<std::int64_t> scores) const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeIndex node = nodes[i];
    std::int64_t sum = 0;
    std::int64_t weights = 0;
    for (const auto& [name, factor] : args_.scoring.resources) {
      const std::int64_t capacity = nodes_.AllocatableOf(node, name);
      std::int64_t used = 0;
      if (name == "cpu") {
        used = nodes_.scored_cpu()[node] + pod.scoring_requests.milli_cpu;
      } else if (name == "memory") {
        used = nodes_.scored_memory()[node] + pod.scoring_requests.memory;
      } else {
        // A resource that the pod does not request does not affect its score.
        const std::int64_t more = pod.requests.Get(name);
        if (more == 0) continue;
        const std::int64_t free = name == "ephemeral-storage" ? nodes_.free_storage()[node]
                                                              : nodes_.FreeOther(node, name);
        used = capacity - free + more;
      }
      if (capacity <= 0) continue;
      if (!args_.scoring.shape.empty()) {
        // As in Kubernetes, a resource without points does not count at all.
        const std::int64_t points =
            At(args_.scoring.shape, used > capacity ? 100 : used * 100 / capacity);
        if (points == 0) continue;
        weights += factor;
        sum += factor * points;
        continue;
      }
      weights += factor;
      if (args_.scoring.most_allocated) {
        sum += factor * (std::min(used, capacity) * 100 / capacity);
      } else if (used <= capacity) {
        sum += factor * ((capacity - used) * 100 / capacity);
      }
    }
    if (!args_.scoring.shape.empty()) sum += weights / 2;  // rounded; the other strategies truncate
    scores[i] = weights == 0 ? 0 : sum / weights;
  }
  return true;
}

bool NodeResourcesFit::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                             std::span<std::int64_t> scores) {
  static const FitScoring kDefault;
  if (args_.scoring != kDefault) return ScoreByArgs(*cycle.pod, nodes, scores);
  const ResourceAmounts& pod = cycle.pod->scoring_requests;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeIndex node = nodes[i];
    std::int64_t sum = 0;
    std::int64_t weights = 0;
    auto add = [&](std::int64_t capacity, std::int64_t used) {
      if (capacity <= 0) return;
      ++weights;
      if (used <= capacity) sum += (capacity - used) * 100 / capacity;
    };
    add(nodes_.allocatable_cpu()[node], nodes_.scored_cpu()[node] + pod.milli_cpu);
    add(nodes_.allocatable_memory()[node], nodes_.scored_memory()[node] + pod.memory);
    scores[i] = weights == 0 ? 0 : sum / weights;
  }
  return true;
}

}  // namespace drakkar::scheduler
