#include "scheduler/cache/taints.h"

#include "api/keys.h"

namespace drakkar::scheduler {

namespace key = api::key;

std::vector<NodeTaint> ReadTaints(api::Value node) {
  std::vector<NodeTaint> taints;
  for (api::Value taint : node[key::kSpec][key::kTaints].elements()) {
    taints.push_back({std::string(taint[key::kKey].str()), std::string(taint[key::kValue].str()),
                      std::string(taint[key::kEffect].str())});
  }
  return taints;
}

bool ToleratesTaint(api::Value tolerations, const NodeTaint& taint) {
  for (api::Value toleration : tolerations.elements()) {
    const std::string_view effect = toleration[key::kEffect].str();
    if (!effect.empty() && effect != taint.effect) continue;
    const std::string_view name = toleration[key::kKey].str();
    if (!name.empty() && name != taint.key) continue;
    const std::string_view op = toleration[key::kOperator].str();
    if (op == "Exists") return true;
    if ((op.empty() || op == "Equal") && toleration[key::kValue].str() == taint.value) return true;
  }
  return false;
}

const NodeTaint* FindUntolerated(const std::vector<NodeTaint>& taints, api::Value tolerations) {
  for (const NodeTaint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!ToleratesTaint(tolerations, taint)) return &taint;
  }
  return nullptr;
}

}  // namespace drakkar::scheduler
