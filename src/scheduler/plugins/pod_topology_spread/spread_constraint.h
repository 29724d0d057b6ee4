#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/label_selector.h"
#include "base/result/result.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// One of a pod's spec.topologySpreadConstraints: how evenly the pods that `selector` matches are
// spread over the domains, which are the values of a node label.
struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::string topology_key;
  api::LabelSelector selector;  // includes the labels that matchLabelKeys adds
  std::int64_t min_domains = 1;
  // Whether nodes that the pod's affinity or missing tolerations exclude are left out of the count.
  bool honors_affinity = true;
  bool honors_taints = false;

  // Whether the constraint counts a pod. As in Kubernetes, a selector without requirements counts
  // none, and neither does one that is absent; pods that are being deleted do not count.
  bool Counts(const api::Object& pod, std::string_view ns) const;
  // Whether the pod with this constraint counts itself once it is placed.
  bool CountsItself(const PodInfo& pod) const { return selector.Matches(pod.labels()); }
};

inline constexpr char kDoNotSchedule[] = "DoNotSchedule";
inline constexpr char kScheduleAnyway[] = "ScheduleAnyway";

// The pod's constraints with this whenUnsatisfiable.
Result<std::vector<SpreadConstraint>> ReadSpreadConstraints(const PodInfo& pod,
                                                            std::string_view when_unsatisfiable);

}  // namespace drakkar::scheduler
