#include <algorithm>

#include "base/text/text.h"
#include "features/catalog/internal/gated_feature.h"
#include "features/catalog/internal/resources.h"

namespace drakkar::features {
namespace {

// Required by an update that changes the resources of an init container that is not a sidecar.
// Containers are compared by index; validation rejects added or removed ones.
class InPlacePodVerticalScalingInitContainers : public GatedFeature {
 public:
  explicit InPlacePodVerticalScalingInitContainers(CatalogSetting setting)
      : GatedFeature("InPlacePodVerticalScalingInitContainers"),
        same_(setting == CatalogSetting::kKubernetes ? IdenticalResources : EqualResources) {}

  NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const override {
    const api::Value before = old_pod.spec["initContainers"];
    const api::Value after = new_pod.spec["initContainers"];
    const std::size_t count = std::min(before.size(), after.size());
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_sidecar = before.at(i)["restartPolicy"].str() == "Always";
      if (!is_sidecar && !same_(before.at(i)["resources"], after.at(i)["resources"])) {
        return StrCat("spec.initContainers[", i, "].resources");
      }
    }
    return std::nullopt;
  }

 private:
  bool (*same_)(api::Value, api::Value);
};

}  // namespace

std::unique_ptr<const Feature> MakeInPlacePodVerticalScalingInitContainers(CatalogSetting setting) {
  return std::make_unique<InPlacePodVerticalScalingInitContainers>(setting);
}

}  // namespace drakkar::features
