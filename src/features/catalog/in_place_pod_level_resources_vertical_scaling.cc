#include "features/catalog/internal/gated_feature.h"
#include "features/catalog/internal/resources.h"

namespace drakkar::features {
namespace {

// Required by an update that changes pod-level resources. Absent and empty resources differ.
class InPlacePodLevelResourcesVerticalScaling : public GatedFeature {
 public:
  InPlacePodLevelResourcesVerticalScaling()
      : GatedFeature("InPlacePodLevelResourcesVerticalScaling") {}

  NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const override {
    const api::Value before = old_pod.spec["resources"];
    const api::Value after = new_pod.spec["resources"];
    if (before.has_value() == after.has_value() && EqualResources(before, after)) {
      return std::nullopt;
    }
    return "spec.resources";
  }
};

}  // namespace

std::unique_ptr<const Feature> MakeInPlacePodLevelResourcesVerticalScaling(CatalogSetting) {
  return std::make_unique<InPlacePodLevelResourcesVerticalScaling>();
}

}  // namespace drakkar::features
