#include "scheduler/cache/taints.h"

#include "api/meta/compared_taint.h"

namespace drakkar::scheduler {

std::vector<NodeTaint> ReadTaints(api::Value node) {
  std::vector<NodeTaint> taints;
  for (api::Value taint : node["spec"]["taints"].elements()) {
    taints.push_back({std::string(taint["key"].str()), std::string(taint["value"].str()),
                      std::string(taint["effect"].str())});
  }
  return taints;
}

bool ToleratesTaint(api::Value tolerations, const NodeTaint& taint, Comparisons comparisons) {
  for (api::Value toleration : tolerations.elements()) {
    const std::string_view effect = toleration["effect"].str();
    if (!effect.empty() && effect != taint.effect) continue;
    const std::string_view name = toleration["key"].str();
    if (!name.empty() && name != taint.key) continue;
    const std::string_view op = toleration["operator"].str();
    if (op == "Exists") return true;
    const std::string_view value = toleration["value"].str();
    if ((op.empty() || op == "Equal") && value == taint.value) return true;
    if (comparisons == Comparisons::kAllowed && api::ComparesTaint(op, value, taint.value)) {
      return true;
    }
  }
  return false;
}

const NodeTaint* FindUntolerated(const std::vector<NodeTaint>& taints, api::Value tolerations,
                                 Comparisons comparisons) {
  for (const NodeTaint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!ToleratesTaint(tolerations, taint, comparisons)) return &taint;
  }
  return nullptr;
}

}  // namespace drakkar::scheduler
