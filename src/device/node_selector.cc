#include "device/node_selector.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"

namespace drakkar::device {

namespace {

constexpr char kNameField[] = "metadata.name";

bool Contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Error Bad(const NodeSelectorRequirement& requirement, std::string_view why) {
  return InvalidArgument(StrCat("node selector requirement ", Quote(requirement.key), ": ", why));
}

// The two forms of a node that selectors are tested against.
struct ParsedNode {
  const Node& node;

  std::string_view name() const { return node.name; }
  std::optional<std::string_view> FindLabel(const std::string& key) const {
    const auto found = node.labels.find(key);
    if (found == node.labels.end()) return std::nullopt;
    return found->second;
  }
};

struct NodeObject {
  explicit NodeObject(api::Value node) : metadata(node["metadata"]) {}
  api::Value metadata;

  std::string_view name() const { return metadata["name"].str(); }
  std::optional<std::string_view> FindLabel(const std::string& label_key) const {
    const api::Value label = metadata["labels"].Entry(label_key);
    if (!label.is_string()) return std::nullopt;
    return label.str();
  }
};

// Gt and Lt compare integers; a label that is absent or not a number does not match.
Result<bool> MatchesOrdered(const NodeSelectorRequirement& requirement,
                            std::optional<std::string_view> label) {
  if (requirement.values.size() != 1) return Bad(requirement, "needs exactly one value");
  const std::optional<std::int64_t> bound = ParseInt64(requirement.values[0]);
  if (!bound) return Bad(requirement, "needs an integer");
  if (!label) return false;
  const std::optional<std::int64_t> value = ParseInt64(*label);
  if (!value) return false;
  return requirement.op == "Gt" ? *value > *bound : *value < *bound;
}

Result<bool> MatchesLabel(const NodeSelectorRequirement& requirement,
                          std::optional<std::string_view> label) {
  if (requirement.op == "In" || requirement.op == "NotIn") {
    if (requirement.values.empty()) return Bad(requirement, "needs at least one value");
    const bool in = label && Contains(requirement.values, *label);
    return requirement.op == "In" ? in : !in;
  }
  if (requirement.op == "Exists" || requirement.op == "DoesNotExist") {
    if (!requirement.values.empty()) return Bad(requirement, "takes no values");
    return label.has_value() == (requirement.op == "Exists");
  }
  if (requirement.op == "Gt" || requirement.op == "Lt") return MatchesOrdered(requirement, label);
  return Bad(requirement, StrCat(Quote(requirement.op), " is not a valid label selector operator"));
}

Result<bool> MatchesField(const NodeSelectorRequirement& requirement, std::string_view node_name) {
  if (requirement.key != kNameField) {
    return Bad(requirement, "not a valid field selector key");
  }
  if (requirement.values.size() != 1) return Bad(requirement, "needs exactly one value");
  if (requirement.op == "In") return requirement.values[0] == node_name;
  if (requirement.op == "NotIn") return requirement.values[0] != node_name;
  return Bad(requirement, StrCat(Quote(requirement.op), " is not a valid field selector operator"));
}

template <typename AnyNode>
Result<bool> MatchesTerm(const NodeSelectorTerm& term, const AnyNode& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  bool all = true;
  for (const NodeSelectorRequirement& requirement : term.match_expressions) {
    ASSIGN_OR_RETURN(const bool one, MatchesLabel(requirement, node.FindLabel(requirement.key)));
    all = all && one;
  }
  for (const NodeSelectorRequirement& requirement : term.match_fields) {
    ASSIGN_OR_RETURN(const bool one, MatchesField(requirement, node.name()));
    all = all && one;
  }
  return all;
}

template <typename AnyNode>
Result<bool> MatchesAnyTerm(const NodeSelector& selector, const AnyNode& node) {
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

}  // namespace

Result<bool> Matches(const NodeSelector& selector, const Node& node) {
  return MatchesAnyTerm(selector, ParsedNode{node});
}

Result<bool> Matches(const NodeSelector& selector, api::Value node) {
  return MatchesAnyTerm(selector, NodeObject(node));
}

Result<bool> Matches(const NodeSelectorTerm& term, api::Value node) {
  return MatchesTerm(term, NodeObject(node));
}

NodeSelector SelectNode(std::string node_name) {
  NodeSelector selector;
  NodeSelectorRequirement& requirement = selector.terms.emplace_back().match_fields.emplace_back();
  requirement.key = kNameField;
  requirement.op = "In";
  requirement.values.push_back(std::move(node_name));
  return selector;
}

std::string_view FindOnlyNode(const NodeSelector& selector) {
  if (selector.terms.size() != 1) return {};
  for (const NodeSelectorRequirement& field : selector.terms[0].match_fields) {
    if (field.key == kNameField && field.op == "In" && field.values.size() == 1) {
      return field.values[0];
    }
  }
  return {};
}

std::string_view FindOnlyNode(api::Value selector) {
  const api::Value terms = selector["nodeSelectorTerms"];
  if (terms.size() != 1) return {};
  for (api::Value field : terms.at(0)["matchFields"].elements()) {
    if (field["key"].str() == kNameField && field["operator"].str() == "In" &&
        field["values"].size() == 1) {
      return field["values"].at(0).str();
    }
  }
  return {};
}

}  // namespace drakkar::device
