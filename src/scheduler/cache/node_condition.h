#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/tree/value.h"
#include "device/node_selector.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/cache/node_table.h"

namespace drakkar::scheduler {

// A pod's requirements for a node's labels and name: its nodeSelector and one of the terms of its
// required affinity, if it has them. A term that cannot be evaluated matches no node.
struct NodeCondition {
  std::optional<device::NodeSelectorTerm> labels;  // nodeSelector
  std::optional<device::NodeSelector> affinity;

  static NodeCondition Read(api::Value pod_spec);
  bool Matches(api::Value node) const;
};

// A node selector or one of its terms; one that cannot be evaluated matches nothing.
bool IsMatch(const device::NodeSelector& selector, api::Value node);
bool IsMatch(const device::NodeSelectorTerm& term, api::Value node);

// The nodes whose labels and name meet a condition, cached by the text of the condition. A cached
// entry is updated only for nodes whose labels changed. At most kMaxRemembered texts are kept;
// beyond that all are dropped.
class NodeMatches {
 public:
  static constexpr std::size_t kMaxRemembered = 1'024;
  using Matcher = std::function<bool(api::Value node)>;

  explicit NodeMatches(const NodeTable& nodes) : nodes_(nodes) {}

  // `make` is called if the text is new; equal texts must mean equal matchers. Valid until the next
  // call.
  const NodeSet& Find(const std::string& text, const std::function<Matcher()>& make);
  // The nodes that meet a pod's NodeCondition; null if it has none.
  const NodeSet* FindFor(api::Value pod_spec);

 private:
  struct Entry {
    Matcher matcher;
    NodeSet matching = {};
    std::uint64_t version = 0;
  };

  const NodeTable& nodes_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace drakkar::scheduler
