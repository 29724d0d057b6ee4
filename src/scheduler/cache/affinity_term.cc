#include "scheduler/cache/affinity_term.h"

#include <algorithm>

#include "api/tree/draft.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

void AddOwnLabels(Value keys, std::string_view op, Value pod_labels, api::Draft& added) {
  for (Value label_key : keys.elements()) {
    const Value value = pod_labels.Entry(label_key.str());
    if (!value.is_string()) continue;
    api::Draft requirement{{"key", label_key.str()}, {"operator", op}};
    requirement["values"].Append(value.str());
    added.Append(std::move(requirement));
  }
}

}  // namespace

bool AffinityTerm::Matches(const api::Object& pod) const {
  if (!in_any_namespace &&
      std::find(namespaces.begin(), namespaces.end(), pod.namespace_()) == namespaces.end()) {
    return false;
  }
  return selector.Matches(pod["metadata"]["labels"]);
}

std::vector<AffinityTerm> ReadRequiredTerms(const api::Object& pod, api::FieldName kind) {
  std::vector<AffinityTerm> terms;
  const Value required =
      pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
  for (Value each : required.elements()) {
    AffinityTerm& term = terms.emplace_back();
    term.topology_key = each["topologyKey"].str();
    if (auto selector = SelectorWithOwnLabels(each, pod["metadata"]["labels"]); selector.ok()) {
      term.selector = *std::move(selector);
    }
    term.in_any_namespace = each["namespaceSelector"].has_value();
    for (Value name : each["namespaces"].elements()) term.namespaces.emplace_back(name.str());
    if (term.namespaces.empty()) term.namespaces.emplace_back(pod.namespace_());
  }
  return terms;
}

Result<api::LabelSelector> SelectorWithOwnLabels(Value holder, Value pod_labels) {
  api::Draft added = api::Draft::Array();
  AddOwnLabels(holder["matchLabelKeys"], "In", pod_labels, added);
  AddOwnLabels(holder["mismatchLabelKeys"], "NotIn", pod_labels, added);
  const Value selector = holder["labelSelector"];
  if (added.size() == 0) return api::LabelSelector::FromObject(selector);
  api::Draft merged = selector.has_value() ? api::Draft(selector) : api::Draft::Object();
  for (std::size_t i = 0; i < added.size(); ++i) {
    merged["matchExpressions"].Append(std::move(added.at(i)));
  }
  const api::TreePtr tree = merged.Freeze();
  return api::LabelSelector::FromObject(tree->root());
}

}  // namespace drakkar::scheduler
