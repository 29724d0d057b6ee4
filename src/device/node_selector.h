#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::device {

// What device rules ask about a node. `labels` is ordered so that nothing depends on hashing.
struct Node {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  std::vector<std::string> declared_features;

  bool operator==(const Node&) const = default;
};

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

// One of the terms must match; no terms match nothing.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;

  bool operator==(const NodeSelector&) const = default;
};

// Fails on a requirement that no node could be tested against (unknown operator, wrong number of
// values, unknown field). As in Kubernetes a bad term counts only if no term matches.
Result<bool> Matches(const NodeSelector& selector, const Node& node);
// `node` is the whole Node object.
Result<bool> Matches(const NodeSelector& selector, api::Value node);
Result<bool> Matches(const NodeSelectorTerm& term, api::Value node);

// The selector for exactly one node, by name.
NodeSelector SelectNode(std::string node_name);

// The name of the only node that can match, or "": the selector has one term, and that names the
// node. Other requirements of the term may still reject it.
std::string_view FindOnlyNode(const NodeSelector& selector);
// The same for a NodeSelector object; "" if `selector` is absent.
std::string_view FindOnlyNode(api::Value selector);

}  // namespace drakkar::device
