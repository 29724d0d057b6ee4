#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "device/node.h"

namespace drakkar::device {

struct NodeSelectorRequirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;

  bool operator==(const NodeSelectorRequirement&) const = default;
};

// All requirements must hold; a term without any matches nothing.
struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions;  // over labels
  std::vector<NodeSelectorRequirement> match_fields;       // metadata.name only

  bool operator==(const NodeSelectorTerm&) const = default;
};

// One of the terms must match. A selector without terms matches nothing.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;

  bool operator==(const NodeSelector&) const = default;
};

// Fails on a requirement that cannot be evaluated (unknown operator, wrong number of values,
// unknown field). As in Kubernetes, a bad term matters only if no other term matches.
Result<bool> Matches(const NodeSelector& selector, const Node& node);
// `node` is the whole Node object.
Result<bool> Matches(const NodeSelector& selector, api::Value node);
Result<bool> Matches(const NodeSelectorTerm& term, api::Value node);

// The selector for exactly one node, by name.
NodeSelector SelectNode(std::string node_name);

// The name of the only node that can match: the selector has a single term, and that term names the
// node. Otherwise "". Other requirements of the term may still reject the node.
std::string_view FindOnlyNode(const NodeSelector& selector);
// The same for a NodeSelector object; "" if `selector` is absent.
std::string_view FindOnlyNode(api::Value selector);

}  // namespace drakkar::device
