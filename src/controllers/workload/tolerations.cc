#include "controllers/workload/tolerations.h"

#include "api/meta/compared_taint.h"

namespace drakkar::controllers {

bool Tolerates(api::Value toleration, api::Value taint) {
  const std::string_view effect = toleration["effect"].str();
  if (!effect.empty() && effect != taint["effect"].str()) return false;
  const std::string_view key = toleration["key"].str();
  if (!key.empty() && key != taint["key"].str()) return false;
  const std::string_view op = toleration["operator"].str();
  if (op == "Exists") return true;
  const std::string_view value = toleration["value"].str();
  // The API server accepts comparisons only while their gate is on.
  if (api::IsComparison(op)) return api::ComparesTaint(op, value, taint["value"].str());
  return (op.empty() || op == "Equal") && value == taint["value"].str();
}

bool IsTolerated(api::Value tolerations, api::Value taint) {
  for (api::Value toleration : tolerations.elements()) {
    if (Tolerates(toleration, taint)) return true;
  }
  return false;
}

void AddToleration(api::Draft& tolerations, std::string_view key, std::string_view effect) {
  api::Draft added = {{"key", key}, {"operator", "Exists"}, {"effect", effect}};
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    api::Draft& each = tolerations.at(i);
    const bool same = each["key"].str() == key && each["effect"].str() == effect &&
                      each["operator"].str() == "Exists" && each["value"].str().empty();
    if (!same) continue;
    each = std::move(added);
    return;
  }
  tolerations.Append(std::move(added));
}

}  // namespace drakkar::controllers
