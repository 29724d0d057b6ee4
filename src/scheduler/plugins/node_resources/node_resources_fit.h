#pragma once

#include <functional>

#include "scheduler/cache/node_table.h"
#include "scheduler/config/profile.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// A node has room for what the pod requests, pod slots included; emptier nodes (or, if so
// configured, fuller ones) are preferred, by default with cpu and memory alike.
//
// Reads the free-amount columns, only of resources that the pod asks for. A pod without requests
// costs one set operation.
class NodeResourcesFit final : public Plugin {
 public:
  struct Options {
    FitScoring scoring;
    std::vector<std::string> ignored_resources;
    std::vector<std::string> ignored_groups;
    // Whether devices of some class stand for an extended resource, which we do not honour: only
    // said when it is missing. May be null.
    std::function<bool(std::string_view resource)> comes_from_devices;
  };
  explicit NodeResourcesFit(const NodeTable& nodes, Options options = {})
      : nodes_(nodes), options_(std::move(options)) {}
  std::string_view name() const override { return "NodeResourcesFit"; }
  Points points() const override { return Point::kFilter | Point::kScore; }
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeAllocatable, EventKind::kBoundPodRemove,
                  EventKind::kBoundPodShrink, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  // Whether nominated pods that come before the pod count as if they were there.
  enum class Nominated { kCount, kIgnore };
  // What is missing on one node, as reasons; nothing if it fits.
  template <typename Report>
  void FindMissing(const PodInfo& pod, NodeIndex node, Nominated nominated_pods,
                   Report report) const;
  bool IsIgnored(std::string_view resource) const;
  bool ScoreByOptions(const PodInfo& pod, std::span<const NodeIndex> nodes,
                      std::span<std::int64_t> scores) const;

  const NodeTable& nodes_;
  const Options options_;
};

// Prefers nodes on which cpu and memory would be used in the same proportion.
class NodeResourcesBalanced final : public Plugin {
 public:
  explicit NodeResourcesBalanced(const NodeTable& nodes) : nodes_(nodes) {}
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }
  Points points() const override { return Point::kScore | Points{0}; }
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  const NodeTable& nodes_;
};

}  // namespace drakkar::scheduler
