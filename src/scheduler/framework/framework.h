#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/exec/event_loop.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

struct SchedulerMetrics;

// The node for a pod, or why there is none.
struct Decision {
  Status status;
  NodeIndex node = kNoNode;  // if a node was found
  Diagnosis diagnosis;       // if no node was found
  std::size_t feasible_nodes = 0;
};

// Runs the plugins, in the order of the registry, over the node table.
//
// Filters work on all nodes at once. As in Kubernetes, only some of the feasible nodes are scored:
// all of up to 100, and a decreasing percentage beyond. They are taken in index order from where
// the last cycle stopped, so that equal nodes take turns; the first of the best wins.
// Deterministic.
class Framework {
 public:
  Framework(EventLoop& loop, const NodeTable& nodes,
            std::span<const std::unique_ptr<Plugin>> plugins, SchedulerMetrics* metrics,
            int percentage_of_nodes_to_score = 0);

  // Runs PreFilter, Filter and Score, or PostFilter. If `preferred_node` (kNoNode: none) fits and
  // no Prefer excludes it, it is taken without scoring.
  Decision Decide(Cycle& cycle, NodeIndex preferred_node);
  // Runs every filter on every node, for explanations. Chooses nothing and changes nothing.
  struct Refusal {
    const Plugin* plugin;
    std::vector<std::string> reasons;
  };
  struct Survey {
    Status status;                                       // result of PreFilter, or a filter's error
    std::map<NodeIndex, std::vector<Refusal>> refusals;  // nodes that fit are absent
    NodeSet preferred;                                   // those that are left after Prefer
  };
  Survey Look(Cycle& cycle);
  // Whether the pod would fit the node as the caches are now. For trials: chooses nothing.
  bool FitsOn(const PodInfoPtr& pod, NodeIndex node);
  // Reserves in memory only. Undoes everything if a plugin fails.
  Status Reserve(Cycle& cycle);
  void Unreserve(Cycle& cycle);
  // Runs one plugin after the other up to the first failure. Only the first Bind plugin runs.
  void PreBind(CyclePtr cycle, StatusCallback done);
  void Bind(CyclePtr cycle, StatusCallback done);
  void Cancel(Cycle& cycle);
  void OnNodeLost(Cycle& cycle, const std::string& why);
  // Why the node no longer accepts the pod after its taints or spec.unschedulable changed; empty if
  // it still does.
  std::string RefusalByTaints(Cycle& cycle, NodeIndex node);

  // How many feasible nodes are scored.
  static std::size_t NodesToScore(std::size_t node_count, int percentage = 0);

 private:
  bool IsAsked(const Plugin& plugin, const Cycle& cycle) const {
    return (cycle.skipped & OnlyPlugin(plugin.id())) == 0;
  }
  // False if the decision is final.
  bool RunPreFilter(Cycle& cycle, Decision& decision);
  bool RunFilter(Cycle& cycle, Decision& decision);
  void Explain(Cycle& cycle, std::size_t last, Decision& decision);
  Status RunReserve(Cycle& cycle);
  NodeIndex Choose(Cycle& cycle);
  void PreBindFrom(std::size_t at, CyclePtr cycle, StatusCallback done);
  // Every tenth cycle is measured, as in Kubernetes.
  bool IsMeasured() const;
  template <typename Run>
  Status Measured(const Plugin& plugin, std::string_view point, Run run);
  // Runs `run` and records its duration. False if the decision is final.
  template <typename Run>
  bool MeasuredPoint(std::string_view point, const Decision& decision, Run run);
  // Wraps `done` so that it records the duration of the point.
  StatusCallback MeasuredCallback(std::string_view point, StatusCallback done);

  EventLoop& loop_;
  const NodeTable& nodes_;
  SchedulerMetrics* const metrics_;
  const int percentage_of_nodes_to_score_;
  std::vector<Plugin*> pre_filter_, filter_, post_filter_, prefer_, score_, reserve_, pre_bind_,
      bind_;

  NodeIndex next_start_ = 0;
  std::uint64_t cycles_ = 0;
  // State of the current cycle, kept to reuse its memory.
  NodeSet left_;
  std::vector<NodeSet> before_;  // the input of each filter
  std::vector<NodeIndex> chosen_;
  std::vector<std::int64_t> totals_, points_;
};

}  // namespace drakkar::scheduler
