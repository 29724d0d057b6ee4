#include "controllers/daemon_set/planner.h"

#include <algorithm>

#include "controllers/workload/pod_facts.h"
#include "controllers/workload/revisions.h"
#include "controllers/workload/scaled_value.h"

namespace drakkar::controllers {

namespace {

using api::Value;
using Pods = std::vector<api::ObjectPtr>;
using PodsByNode = std::map<std::string_view, Pods>;

constexpr std::string_view kGenerationAnnotation = "deprecated.daemonset.template.generation";
constexpr std::string_view kGenerationLabel = "pod-template-generation";

Duration MinReady(const api::Object& set) {
  return std::chrono::seconds(set["spec"]["minReadySeconds"].integer());
}

// Scheduled pods first, then the oldest.
bool ComesFirst(const api::ObjectPtr& a, const api::ObjectPtr& b) {
  const bool a_bound = !(*a)["spec"]["nodeName"].str().empty();
  const bool b_bound = !(*b)["spec"]["nodeName"].str().empty();
  if (a_bound != b_bound) return a_bound;
  const std::string_view x = (*a)["metadata"]["creationTimestamp"].str();
  const std::string_view y = (*b)["metadata"]["creationTimestamp"].str();
  return x != y ? x < y : a->name() < b->name();
}

// Pods that were deleted and have ended no longer block the next one.
PodsByNode GroupByNode(const Pods& pods) {
  PodsByNode groups;
  for (const api::ObjectPtr& pod : pods) {
    if (pod->is_being_deleted() && IsTerminal(*pod)) continue;
    const std::string_view node = TargetNode(*pod);
    if (!node.empty()) groups[node].push_back(pod);
  }
  for (auto& [node, group] : groups) std::ranges::sort(group, ComesFirst);
  return groups;
}

Value RollingUpdate(const api::Object& set) {
  const Value strategy = set["spec"]["updateStrategy"];
  return strategy["type"].str() == "RollingUpdate" ? strategy["rollingUpdate"] : Value();
}

std::int64_t Surge(const api::Object& set, std::int64_t desired) {
  return ScaledValue(RollingUpdate(set)["maxSurge"], desired, Rounding::kUp);
}

// What to do on one node that should have, or may keep, a pod.
class NodePlanner {
 public:
  NodePlanner(const DaemonState& state, DaemonPlan& plan)
      : state_(state), plan_(plan), surges_(Surge(state.set, 1) > 0) {}

  void Plan(const api::Object& node, const Pods* pods) {
    const bool should_run = state_.placement.ShouldRun(node);
    if (should_run && pods == nullptr) return plan_.create.emplace_back(node.name()), void();
    if (pods == nullptr) return;
    if (!state_.placement.MayStay(node)) {
      for (const api::ObjectPtr& pod : *pods) Remove(pod);
      return;
    }
    const Pods running = RemoveEnded(*pods);
    if (running.empty()) {
      // Without surge, wait until the old pod is gone.
      if (surges_ && should_run) plan_.create.emplace_back(node.name());
    } else if (surges_) {
      KeepOldAndNew(running);
    } else {
      for (std::size_t i = 1; i < running.size(); ++i) Remove(running[i]);
    }
  }

 private:
  void Remove(const api::ObjectPtr& pod) {
    if (!pod->is_being_deleted()) plan_.remove.push_back(pod);
  }

  Pods RemoveEnded(const Pods& pods) {
    Pods running;
    for (const api::ObjectPtr& pod : pods) {
      if (pod->is_being_deleted()) continue;
      const std::string_view phase = (*pod)["status"]["phase"].str();
      if (phase == "Failed") {
        plan_.failed.push_back(pod);
      } else if (phase == "Succeeded") {
        plan_.succeeded.push_back(pod);
      } else {
        running.push_back(pod);
      }
    }
    return running;
  }

  // During an update with surge a node may have one old and one new pod, until the new one is
  // available or the old one is no longer ready.
  void KeepOldAndNew(const Pods& running) {
    const api::ObjectPtr* fresh = nullptr;
    const api::ObjectPtr* old = nullptr;
    for (const api::ObjectPtr& pod : running) {
      const bool is_new = (*pod)["metadata"]["labels"].Entry(kDaemonHashLabel).str() == state_.hash;
      const api::ObjectPtr*& kept = is_new ? fresh : old;
      if (kept == nullptr) {
        kept = &pod;
      } else {
        Remove(pod);
      }
    }
    if (fresh == nullptr || old == nullptr) return;
    if (!IsReady(**old) || IsAvailable(**fresh, MinReady(state_.set), state_.now)) Remove(*old);
  }

  const DaemonState& state_;
  DaemonPlan& plan_;
  const bool surges_;
};

// The pods of a node during an update.
struct OldAndNew {
  api::ObjectPtr old_pod;
  api::ObjectPtr new_pod;
  bool excess = false;  // more than one of either
};

OldAndNew Separate(const DaemonState& state, const Pods& pods) {
  OldAndNew result;
  for (const api::ObjectPtr& pod : pods) {
    if (pod->is_being_deleted()) continue;
    api::ObjectPtr& place =
        IsUpdatedDaemon(state.set, *pod, state.hash) ? result.new_pod : result.old_pod;
    result.excess = result.excess || place != nullptr;
    place = pod;
  }
  return result;
}

// Deletes old pods, as long as at most `allowed` nodes have no available pod.
void Replace(const DaemonState& state, const PodsByNode& by_node, std::int64_t allowed,
             DaemonPlan& plan) {
  std::int64_t unavailable = 0;
  Pods candidates;
  for (const auto& [node, pods] : by_node) {
    const OldAndNew found = Separate(state, pods);
    const auto is_available = [&](const api::Object& pod) {
      return IsAvailable(pod, MinReady(state.set), state.now);
    };
    if (found.excess || (found.old_pod == nullptr) == (found.new_pod == nullptr)) {
      ++unavailable;
    } else if (found.new_pod != nullptr) {
      if (!is_available(*found.new_pod)) ++unavailable;
    } else if (!is_available(*found.old_pod)) {
      // It is replaced in any case, so nothing is lost.
      plan.remove.push_back(found.old_pod);
      ++unavailable;
    } else {
      candidates.push_back(found.old_pod);
    }
  }
  for (const api::ObjectPtr& pod : candidates) {
    if (unavailable++ >= allowed) break;
    plan.remove.push_back(pod);
  }
}

// Creates new pods beside old ones, at most `allowed` at a time, and deletes the old pod once the
// new one is available.
void ReplaceWithSurge(const DaemonState& state, const PodsByNode& by_node, std::int64_t desired,
                      std::int64_t allowed, DaemonPlan& plan) {
  std::map<std::string_view, const api::Object*> nodes;
  for (const api::ObjectPtr& node : state.nodes) nodes.emplace(node->name(), node.get());
  const Duration min_ready = MinReady(state.set);
  std::int64_t surging = 0, available = 0;
  std::vector<std::string_view> candidates;
  Pods misplaced;  // available pods on nodes that should no longer have one
  for (const auto& [name, pods] : by_node) {
    const OldAndNew found = Separate(state, pods);
    if (found.excess) {
      ++surging;
      continue;
    }
    const api::ObjectPtr& counted = found.old_pod != nullptr ? found.old_pod : found.new_pod;
    const bool is_available = counted != nullptr && IsAvailable(*counted, min_ready, state.now);
    if (is_available) ++available;
    if (found.old_pod == nullptr) continue;
    if (found.new_pod != nullptr) {
      if (IsAvailable(*found.new_pod, min_ready, state.now)) {
        plan.remove.push_back(found.old_pod);
      } else {
        ++surging;
      }
      continue;
    }
    const auto node = nodes.find(name);
    if (node == nodes.end()) continue;
    if (!state.placement.ShouldRun(*node->second)) {
      (is_available ? misplaced : plan.remove).push_back(found.old_pod);
    } else if (!is_available) {
      plan.create.emplace_back(name);
    } else {
      candidates.push_back(name);
    }
  }
  // A set that moves to other nodes keeps its old pods until the new ones are available.
  for (const api::ObjectPtr& pod : misplaced) {
    if (available-- <= desired) break;
    plan.remove.push_back(pod);
  }
  for (const std::string_view node : candidates) {
    if (surging++ >= allowed) break;
    plan.create.emplace_back(node);
  }
}

void Limit(DaemonPlan& plan) {
  if (plan.create.size() > kMaxDaemonBurst) plan.create.resize(kMaxDaemonBurst);
  if (plan.remove.size() > kMaxDaemonBurst) plan.remove.resize(kMaxDaemonBurst);
}

}  // namespace

bool IsUpdatedDaemon(const api::Object& set, const api::Object& pod, std::string_view hash) {
  const Value labels = pod["metadata"]["labels"];
  if (!hash.empty() && labels.Entry(kDaemonHashLabel).str() == hash) return true;
  // Pods of controllers that predate revisions have only the template's generation.
  const std::string_view generation =
      set["metadata"]["annotations"].Entry(kGenerationAnnotation).str();
  return !generation.empty() && labels.Entry(kGenerationLabel).str() == generation;
}

DaemonPlan PlanDaemons(const DaemonState& state) {
  DaemonPlan plan;
  const PodsByNode by_node = GroupByNode(state.pods);
  NodePlanner planner(state, plan);
  std::size_t seen = 0;
  for (const api::ObjectPtr& node : state.nodes) {
    const auto found = by_node.find(node->name());
    if (found != by_node.end()) ++seen;
    planner.Plan(*node, found == by_node.end() ? nullptr : &found->second);
  }
  if (seen < by_node.size()) {
    // Pods that wait for a node that was deleted. The pod garbage collector handles those that are
    // bound.
    std::map<std::string_view, bool> exists;
    for (const api::ObjectPtr& node : state.nodes) exists[node->name()] = true;
    for (const auto& [node, pods] : by_node) {
      if (exists.contains(node)) continue;
      for (const api::ObjectPtr& pod : pods) {
        if ((*pod)["spec"]["nodeName"].str().empty() && !pod->is_being_deleted()) {
          plan.remove.push_back(pod);
        }
      }
    }
  }
  Limit(plan);
  return plan;
}

DaemonPlan PlanDaemonRollout(const DaemonState& state) {
  DaemonPlan plan;
  const Value rolling = RollingUpdate(state.set);
  if (!rolling.has_value()) return plan;
  PodsByNode by_node = GroupByNode(state.pods);
  std::int64_t desired = 0;
  for (const api::ObjectPtr& node : state.nodes) {
    if (!state.placement.ShouldRun(*node)) continue;
    ++desired;
    by_node[node->name()];
  }
  const std::int64_t surge = Surge(state.set, desired);
  std::int64_t unavailable = ScaledValue(rolling["maxUnavailable"], desired, Rounding::kUp);
  if (surge > 0) {
    ReplaceWithSurge(state, by_node, desired, surge, plan);
  } else {
    // Rounding must not produce a rollout that cannot make progress.
    Replace(state, by_node, std::max<std::int64_t>(unavailable, 1), plan);
  }
  Limit(plan);
  return plan;
}

std::optional<api::Draft> PlanDaemonStatus(const DaemonState& state) {
  const PodsByNode by_node = GroupByNode(state.pods);
  std::int64_t desired = 0, current = 0, misplaced = 0, ready = 0, updated = 0, available = 0;
  for (const api::ObjectPtr& node : state.nodes) {
    const auto found = by_node.find(node->name());
    const bool has_pod = found != by_node.end();
    if (!state.placement.ShouldRun(*node)) {
      misplaced += has_pod;
      continue;
    }
    ++desired;
    if (!has_pod) continue;
    ++current;
    const api::Object& pod = *found->second.front();
    updated += IsUpdatedDaemon(state.set, pod, state.hash);
    if (!IsReady(pod)) continue;
    ++ready;
    available += IsAvailable(pod, MinReady(state.set), state.now);
  }
  const Value before = state.set["status"];
  const std::int64_t generation = state.set["metadata"]["generation"].integer();
  struct Number {
    api::FieldName field;
    std::int64_t value;
    bool always;
  };
  const Number numbers[] = {
      {"currentNumberScheduled", current, true}, {"numberMisscheduled", misplaced, true},
      {"desiredNumberScheduled", desired, true}, {"numberReady", ready, true},
      {"observedGeneration", generation, false}, {"updatedNumberScheduled", updated, false},
      {"numberAvailable", available, false},     {"numberUnavailable", desired - available, false}};
  const bool same = std::ranges::all_of(numbers, [&](const Number& number) {
    return before[number.field].integer() == number.value;
  });
  if (same) return std::nullopt;
  api::Draft status(before);
  status.KeepAlive(state.set.tree());
  for (const Number& number : numbers) {
    if (number.value != 0 || number.always) {
      status[number.field] = number.value;
    } else {
      status.Remove(number.field);
    }
  }
  return status;
}

std::optional<Duration> NextDaemonAvailability(const DaemonState& state) {
  std::optional<Duration> next;
  for (const api::ObjectPtr& pod : state.pods) {
    const std::optional<Duration> wait = UntilAvailable(*pod, MinReady(state.set), state.now);
    if (wait && (!next || *wait < *next)) next = wait;
  }
  return next;
}

}  // namespace drakkar::controllers
