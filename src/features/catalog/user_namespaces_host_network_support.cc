#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {
namespace {

// Required by a pod with its own user namespace on the host network; the runtime must support that
// too.
class UserNamespacesHostNetworkSupport : public GatedFeature {
 public:
  UserNamespacesHostNetworkSupport()
      : GatedFeature("UserNamespacesHostNetworkSupport", {.user_namespaces_host_network = true}) {}

  NeededBecauseOf InferForScheduling(const PodInfo& pod) const override {
    const bool own_users = !pod.spec["hostUsers"].boolean(true);
    if (!own_users || !pod.spec["hostNetwork"].boolean()) return std::nullopt;
    return "spec.hostUsers";
  }
};

}  // namespace

std::unique_ptr<const Feature> MakeUserNamespacesHostNetworkSupport(CatalogSetting) {
  return std::make_unique<UserNamespacesHostNetworkSupport>();
}

}  // namespace drakkar::features
