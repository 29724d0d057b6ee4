#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "device/node_selector.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// What a pod requires of a node's labels and name: its nodeSelector and one of the terms of its
// required affinity, where it has them. A term that cannot be evaluated matches no node.
struct NodeCondition {
  std::optional<device::NodeSelectorTerm> labels;  // nodeSelector
  std::optional<device::NodeSelector> affinity;

  static NodeCondition Read(api::Value pod_spec);
  bool Matches(api::Value node) const;
};

// The pod's nodeSelector and node affinity, required and preferred, and a node affinity that the
// profile adds to that of every pod.
//
// The nodes that match a condition are remembered under its text; a later pod with the same
// condition asks only nodes whose labels changed since. At most kMaxRemembered texts are kept; past
// that all are dropped.
class NodeAffinity final : public Plugin {
 public:
  static constexpr std::size_t kMaxRemembered = 1'024;

  // `added` is a NodeAffinity, or null.
  explicit NodeAffinity(const NodeTable& nodes, api::TreePtr added = nullptr);
  std::string_view name() const override { return "NodeAffinity"; }
  Points points() const override { return Point::kPreFilter | Point::kFilter | Point::kScore; }
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  using Matcher = std::function<bool(api::Value node)>;
  struct Remembered {
    Matcher matcher;
    NodeSet matching;
    std::uint64_t version = 0;
  };
  // The nodes that match; `make` is called if the text is new.
  const NodeSet& Matching(const std::string& text, const std::function<Matcher()>& make);
  const NodeSet& MatchingTerms(api::Value required);
  void AddPoints(api::Value preferred, std::span<const NodeIndex> nodes,
                 std::span<std::int64_t> scores);

  const NodeTable& nodes_;
  const api::TreePtr added_;
  const api::Value added_required_, added_preferred_;
  std::map<std::string, Remembered, std::less<>> remembered_;
};

}  // namespace drakkar::scheduler
