#include "device/toleration.h"

namespace drakkar::device {

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  if (toleration.op.empty() || toleration.op == "Equal") return toleration.value == taint.value;
  return false;
}

const Taint* FindUntolerated(const std::vector<Taint>& taints,
                             const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    bool tolerated = false;
    for (const Toleration& toleration : tolerations) {
      tolerated = tolerated || Tolerates(toleration, taint);
    }
    if (!tolerated) return &taint;
  }
  return nullptr;
}

}  // namespace drakkar::device
