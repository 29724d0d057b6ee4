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

// Where a pod can go, or why nowhere.
struct Decision {
  Status status;
  NodeIndex node = kNoNode;  // of a success
  Diagnosis diagnosis;       // of a refusal
  std::size_t feasible_nodes = 0;
};

// Runs the plugins, in the order of the registry, over the node table.
//
// The filters see all nodes at once. Of the nodes that fit, a share is scored (as in Kubernetes:
// all of up to 100, a falling percentage beyond), taken in index order from where the last cycle
// stopped, so that equal nodes are used in turn; the first of the best wins. Equal input gives
// equal output.
class Framework {
 public:
  Framework(EventLoop& loop, const NodeTable& nodes,
            std::span<const std::unique_ptr<Plugin>> plugins, SchedulerMetrics* metrics,
            int percentage_of_nodes_to_score = 0);

  // PreFilter, Filter and Score, or PostFilter. `preferred_node` (kNoNode: none) is taken before
  // any score if it fits and no plugin prefers others in any case.
  Decision Decide(Cycle& cycle, NodeIndex preferred_node);
  // What each filter by itself says of each node, for explanations: nothing is chosen and nothing
  // done about it.
  struct Refusal {
    const Plugin* plugin;
    std::vector<std::string> reasons;
  };
  struct Survey {
    Status status;                                       // of PreFilter, or an error of a filter
    std::map<NodeIndex, std::vector<Refusal>> refusals;  // nodes that fit have none
  };
  Survey Look(Cycle& cycle);
  // In memory; everything is taken back if a plugin refuses.
  Status Reserve(Cycle& cycle);
  void Unreserve(Cycle& cycle);
  // One plugin after the other, up to the first that fails; the first binder binds.
  void PreBind(CyclePtr cycle, StatusCallback done);
  void Bind(CyclePtr cycle, StatusCallback done);
  void Cancel(Cycle& cycle);
  void OnNodeLost(Cycle& cycle, const std::string& why);
  // Why the pod would not be put on its node any more since taints or spec.unschedulable of the
  // node changed; empty if it would.
  std::string RefusalByTaints(Cycle& cycle, NodeIndex node);

  // How many nodes that fit are enough to choose from.
  static std::size_t NodesToScore(std::size_t node_count, int percentage = 0);

 private:
  bool IsAsked(const Plugin& plugin, const Cycle& cycle) const {
    return (cycle.skipped & OnlyPlugin(plugin.id)) == 0;
  }
  // False: the decision is made.
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
  // Calls `run`, which has made the decision if it gives false.
  template <typename Run>
  bool MeasuredPoint(std::string_view point, const Decision& decision, Run run);
  // `done`, which also says how long the point took.
  StatusCallback MeasuredCallback(std::string_view point, StatusCallback done);

  EventLoop& loop_;
  const NodeTable& nodes_;
  SchedulerMetrics* const metrics_;
  const int percentage_of_nodes_to_score_;
  std::vector<Plugin*> pre_filter_, filter_, post_filter_, prefer_, score_, reserve_, pre_bind_,
      bind_;

  NodeIndex next_start_ = 0;
  std::uint64_t cycles_ = 0;
  // Of the cycle under way; kept to save their memory.
  NodeSet left_;
  std::vector<NodeSet> before_;  // what each filter was given
  std::vector<NodeIndex> chosen_;
  std::vector<std::int64_t> totals_, points_;
};

}  // namespace drakkar::scheduler
