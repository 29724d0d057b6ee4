#include "features/framework/feature.h"

#include <utility>

#include "base/text/text.h"

namespace drakkar::features {

PodInfo PodInfoOf(api::Value pod) {
  return {.spec = pod["spec"], .status = pod["status"], .claims = {}};
}

GateLookup LookupIn(const FeatureGates& gates) {
  return [gates](std::string_view name) { return gates.Enabled(name); };
}

GateLookup LookupIn(std::map<std::string, bool, std::less<>> gates) {
  return [gates = std::move(gates)](std::string_view name) {
    if (const auto found = gates.find(name); found != gates.end()) return found->second;
    const std::optional<Gate> wanted = FindGate(name);
    if (!wanted) return false;
    for (const auto& [given, on] : gates) {
      if (FindGate(given) == wanted) return on;
    }
    return false;
  };
}

std::optional<std::string> FirstUnmet(const FeatureRequirements& requirements,
                                      const NodeConfiguration& configuration) {
  for (const std::string& gate : requirements.enabled_feature_gates) {
    if (!configuration.gate_enabled || !configuration.gate_enabled(gate)) {
      return StrCat("feature gate ", gate, " is off");
    }
  }
  for (const auto& [key, wanted] : requirements.static_configuration) {
    const auto found = configuration.static_configuration.find(key);
    if (found == configuration.static_configuration.end()) {
      return StrCat(key, " is not set, but must be ", Quote(wanted));
    }
    if (found->second != wanted) {
      return StrCat(key, " is ", Quote(found->second), ", but must be ", Quote(wanted));
    }
  }
  const RuntimeFeatures& wanted = requirements.runtime_features;
  const RuntimeFeatures& offered = configuration.runtime_features;
  if (wanted.user_namespaces_host_network && !offered.user_namespaces_host_network) {
    return "the container runtime does not support UserNamespacesHostNetwork";
  }
  if (wanted.mount_options && !offered.mount_options) {
    return "the container runtime does not support MountOptions";
  }
  return std::nullopt;
}

Result<bool> Feature::Discover(const NodeConfiguration& configuration) const {
  return !FirstUnmet(Requirements(), configuration).has_value();
}

NeededBecauseOf Feature::InferForScheduling(const PodInfo&) const {
  return std::nullopt;
}

NeededBecauseOf Feature::InferForUpdate(const PodInfo&, const PodInfo&) const {
  return std::nullopt;
}

}  // namespace drakkar::features
