#include "device/node_selector.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"

namespace drakkar::device {
namespace {

bool Contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Error Bad(const NodeSelectorRequirement& requirement, std::string_view why) {
  return InvalidArgument(StrCat("node selector requirement ", Quote(requirement.key), ": ", why));
}

// Gt and Lt compare integers; a label that is absent or no number does not match.
Result<bool> MatchesOrdered(const NodeSelectorRequirement& requirement, const std::string* label) {
  if (requirement.values.size() != 1) return Bad(requirement, "needs exactly one value");
  const std::optional<std::int64_t> bound = ParseInt64(requirement.values[0]);
  if (!bound) return Bad(requirement, "needs an integer");
  if (label == nullptr) return false;
  const std::optional<std::int64_t> value = ParseInt64(*label);
  if (!value) return false;
  return requirement.op == "Gt" ? *value > *bound : *value < *bound;
}

Result<bool> MatchesLabel(const NodeSelectorRequirement& requirement, const Node& node) {
  const auto found = node.labels.find(requirement.key);
  const std::string* label = found == node.labels.end() ? nullptr : &found->second;
  if (requirement.op == "In" || requirement.op == "NotIn") {
    if (requirement.values.empty()) return Bad(requirement, "needs at least one value");
    const bool in = label != nullptr && Contains(requirement.values, *label);
    return requirement.op == "In" ? in : !in;
  }
  if (requirement.op == "Exists" || requirement.op == "DoesNotExist") {
    if (!requirement.values.empty()) return Bad(requirement, "takes no values");
    return (label != nullptr) == (requirement.op == "Exists");
  }
  if (requirement.op == "Gt" || requirement.op == "Lt") return MatchesOrdered(requirement, label);
  return Bad(requirement, StrCat(Quote(requirement.op), " is not a valid label selector operator"));
}

Result<bool> MatchesField(const NodeSelectorRequirement& requirement, const Node& node) {
  if (requirement.key != "metadata.name") {
    return Bad(requirement, "not a valid field selector key");
  }
  if (requirement.values.size() != 1) return Bad(requirement, "needs exactly one value");
  if (requirement.op == "In") return requirement.values[0] == node.name;
  if (requirement.op == "NotIn") return requirement.values[0] != node.name;
  return Bad(requirement, StrCat(Quote(requirement.op), " is not a valid field selector operator"));
}

Result<bool> MatchesTerm(const NodeSelectorTerm& term, const Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  bool all = true;
  for (const NodeSelectorRequirement& requirement : term.match_expressions) {
    ASSIGN_OR_RETURN(const bool one, MatchesLabel(requirement, node));
    all = all && one;
  }
  for (const NodeSelectorRequirement& requirement : term.match_fields) {
    ASSIGN_OR_RETURN(const bool one, MatchesField(requirement, node));
    all = all && one;
  }
  return all;
}

}  // namespace

Result<bool> Matches(const NodeSelector& selector, const Node& node) {
  std::optional<Error> error;
  for (const NodeSelectorTerm& term : selector.terms) {
    Result<bool> matches = MatchesTerm(term, node);
    if (!matches.ok()) {
      if (!error) error = matches.error();
      continue;
    }
    if (*matches) return true;
  }
  if (error) return *error;
  return false;
}

NodeSelector SelectNode(std::string node_name) {
  NodeSelector selector;
  NodeSelectorRequirement& requirement = selector.terms.emplace_back().match_fields.emplace_back();
  requirement.key = "metadata.name";
  requirement.op = "In";
  requirement.values.push_back(std::move(node_name));
  return selector;
}

}  // namespace drakkar::device
