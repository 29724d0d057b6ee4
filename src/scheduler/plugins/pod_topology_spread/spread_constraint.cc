#include "scheduler/plugins/pod_topology_spread/spread_constraint.h"

#include "api/tree/draft.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

// The labelSelector, extended by the pod's own value for each key in matchLabelKeys.
Result<api::LabelSelector> ReadSelector(Value constraint, Value pod_labels) {
  api::Draft added = api::Draft::Array();
  for (Value label_key : constraint["matchLabelKeys"].elements()) {
    const Value value = pod_labels.Entry(label_key.str());
    if (!value.is_string()) continue;
    api::Draft requirement{{"key", label_key.str()}, {"operator", "In"}};
    requirement["values"].Append(value.str());
    added.Append(std::move(requirement));
  }
  const Value selector = constraint["labelSelector"];
  if (added.size() == 0) return api::LabelSelector::FromObject(selector);
  api::Draft merged = selector.has_value() ? api::Draft(selector) : api::Draft::Object();
  for (std::size_t i = 0; i < added.size(); ++i) {
    merged["matchExpressions"].Append(std::move(added.at(i)));
  }
  const api::TreePtr tree = merged.Freeze();
  return api::LabelSelector::FromObject(tree->root());
}

}  // namespace

bool SpreadConstraint::Counts(const api::Object& pod, std::string_view ns) const {
  if (selector.empty() || pod.is_being_deleted() || pod.namespace_() != ns) return false;
  return selector.Matches(pod["metadata"]["labels"]);
}

Result<std::vector<SpreadConstraint>> ReadSpreadConstraints(const PodInfo& pod,
                                                            std::string_view when_unsatisfiable) {
  std::vector<SpreadConstraint> constraints;
  for (Value each : pod.spec()["topologySpreadConstraints"].elements()) {
    if (each["whenUnsatisfiable"].str(kDoNotSchedule) != when_unsatisfiable) continue;
    SpreadConstraint& constraint = constraints.emplace_back();
    constraint.max_skew = each["maxSkew"].integer(1);
    constraint.topology_key = each["topologyKey"].str();
    constraint.min_domains = each["minDomains"].integer(1);
    constraint.honors_affinity = each["nodeAffinityPolicy"].str("Honor") == "Honor";
    constraint.honors_taints = each["nodeTaintsPolicy"].str("Ignore") == "Honor";
    ASSIGN_OR_RETURN(constraint.selector, ReadSelector(each, pod.labels()));
  }
  return constraints;
}

}  // namespace drakkar::scheduler
