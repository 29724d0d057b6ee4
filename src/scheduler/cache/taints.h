#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::scheduler {

struct NodeTaint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
  bool operator==(const NodeTaint&) const = default;
};

std::vector<NodeTaint> ReadTaints(api::Value node);

// Whether tolerations with the operators Gt and Lt have an effect (gate
// TaintTolerationComparisonOperators).
enum class Comparisons : bool { kIgnored, kAllowed };

// Whether one of the pod's spec.tolerations, which may be absent, tolerates the taint.
bool ToleratesTaint(api::Value tolerations, const NodeTaint& taint, Comparisons comparisons);

// The first taint with effect NoSchedule or NoExecute that is not tolerated; null if there is none.
const NodeTaint* FindUntolerated(const std::vector<NodeTaint>& taints, api::Value tolerations,
                                 Comparisons comparisons);

}  // namespace drakkar::scheduler
