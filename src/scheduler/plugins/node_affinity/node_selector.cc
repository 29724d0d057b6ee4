#include "scheduler/plugins/node_affinity/node_selector.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

NodeRequirement ReadRequirement(Value requirement) {
  using Operator = NodeRequirement::Operator;
  NodeRequirement read{.key = std::string(requirement["key"].str())};
  for (Value value : requirement["values"].elements()) read.values.emplace_back(value.str());
  const std::string_view op = requirement["operator"].str();
  const std::size_t count = read.values.size();
  if (op == "In" && count > 0) read.op = Operator::kIn;
  if (op == "NotIn" && count > 0) read.op = Operator::kNotIn;
  if (op == "Exists" && count == 0) read.op = Operator::kExists;
  if (op == "DoesNotExist" && count == 0) read.op = Operator::kDoesNotExist;
  if (op == "Gt" && count == 1) read.op = Operator::kGreater;
  if (op == "Lt" && count == 1) read.op = Operator::kLess;
  return read;
}

bool MatchesLabels(const std::vector<NodeRequirement>& requirements, Value labels) {
  for (const NodeRequirement& requirement : requirements) {
    const Value label = labels.Entry(requirement.key);
    const std::string_view text = label.str();
    if (!requirement.Matches(label.is_string() ? &text : nullptr)) return false;
  }
  return true;
}

}  // namespace

bool NodeRequirement::Matches(const std::string_view* text) const {
  const auto in = [&] { return std::find(values.begin(), values.end(), *text) != values.end(); };
  switch (op) {
    case Operator::kIn:
      return text != nullptr && in();
    case Operator::kNotIn:
      return text == nullptr || !in();
    case Operator::kExists:
      return text != nullptr;
    case Operator::kDoesNotExist:
      return text == nullptr;
    case Operator::kGreater:
    case Operator::kLess: {
      if (text == nullptr) return false;
      const auto have = ParseInt64(*text);
      const auto limit = ParseInt64(values[0]);
      if (!have || !limit) return false;
      return op == Operator::kGreater ? *have > *limit : *have < *limit;
    }
    case Operator::kNever:
      return false;
  }
  return false;
}

NodeTerm NodeTerm::Read(Value term) {
  NodeTerm read;
  for (Value each : term["matchExpressions"].elements())
    read.labels.push_back(ReadRequirement(each));
  for (Value each : term["matchFields"].elements()) {
    NodeRequirement field = ReadRequirement(each);
    if (field.key != "metadata.name") field.op = NodeRequirement::Operator::kNever;
    read.fields.push_back(std::move(field));
  }
  return read;
}

bool NodeTerm::Matches(Value node) const {
  if (labels.empty() && fields.empty()) return false;
  const Value metadata = node["metadata"];
  for (const NodeRequirement& field : fields) {
    const std::string_view name = metadata["name"].str();
    if (!field.Matches(&name)) return false;
  }
  return MatchesLabels(labels, metadata["labels"]);
}

NodeCondition NodeCondition::Read(Value spec) {
  NodeCondition read;
  for (const auto& [k, name, value] : spec["nodeSelector"].members()) {
    read.selector.push_back(
        {std::string(name), NodeRequirement::Operator::kIn, {std::string(value.str())}});
  }
  const Value required =
      spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  read.has_terms = required.has_value();
  for (Value term : required["nodeSelectorTerms"].elements()) {
    read.terms.push_back(NodeTerm::Read(term));
  }
  return read;
}

bool NodeCondition::Matches(Value node) const {
  if (!MatchesLabels(selector, node["metadata"]["labels"])) return false;
  return !has_terms || std::any_of(terms.begin(), terms.end(),
                                   [&](const NodeTerm& term) { return term.Matches(node); });
}

}  // namespace drakkar::scheduler
