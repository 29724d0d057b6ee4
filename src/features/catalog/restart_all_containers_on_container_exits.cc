#include "features/catalog/internal/container_fields.h"
#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {
namespace {

// Required by a pod with a restart rule that restarts all containers (KEP-5532). Ephemeral
// containers have no such rules.
class RestartAllContainersOnContainerExits : public GatedFeature {
 public:
  RestartAllContainersOnContainerExits() : GatedFeature("RestartAllContainersOnContainerExits") {}

  NeededBecauseOf InferForScheduling(const PodInfo& pod) const override {
    const auto restarts_all = [](api::Value rule) -> std::optional<std::string> {
      if (rule["action"].str() != "RestartAllContainers") return std::nullopt;
      return ".action";
    };
    return FindInContainers(pod.spec, {"initContainers", "containers"}, [&](api::Value container) {
      return FindInList(container["restartPolicyRules"], ".restartPolicyRules", restarts_all);
    });
  }
};

}  // namespace

std::unique_ptr<const Feature> MakeRestartAllContainersOnContainerExits(CatalogSetting) {
  return std::make_unique<RestartAllContainersOnContainerExits>();
}

}  // namespace drakkar::features
