#include "scheduler/plugins/pod_topology_spread/spread_constraint.h"

#include "scheduler/cache/affinity_term.h"

namespace drakkar::scheduler {

using api::Value;

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
    ASSIGN_OR_RETURN(constraint.selector, SelectorWithOwnLabels(each, pod.labels()));
  }
  return constraints;
}

}  // namespace drakkar::scheduler
