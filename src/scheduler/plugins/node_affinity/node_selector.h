#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::scheduler {

struct NodeRequirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess, kNever };
  std::string key;
  Operator op = Operator::kNever;  // kNever: cannot be evaluated, matches no node
  std::vector<std::string> values;

  // `text` is null if the node has no such label.
  bool Matches(const std::string_view* text) const;
};

// All requirements hold together; a term without any matches nothing.
struct NodeTerm {
  std::vector<NodeRequirement> labels;
  std::vector<NodeRequirement> fields;  // metadata.name

  static NodeTerm Read(api::Value term);
  bool Matches(api::Value node) const;
};

// What a pod requires of a node's labels and name: its nodeSelector and one of the terms of its
// required affinity, where it has them.
struct NodeCondition {
  std::vector<NodeRequirement> selector;  // all
  bool has_terms = false;
  std::vector<NodeTerm> terms;  // any

  static NodeCondition Read(api::Value pod_spec);
  bool IsEmpty() const { return selector.empty() && !has_terms; }
  bool Matches(api::Value node) const;
};

}  // namespace drakkar::scheduler
