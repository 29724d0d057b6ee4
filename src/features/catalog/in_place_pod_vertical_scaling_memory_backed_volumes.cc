#include "base/text/text.h"
#include "features/catalog/internal/gated_feature.h"
#include "features/catalog/internal/resources.h"

namespace drakkar::features {
namespace {

// Required by an update that changes the size limit of a memory-backed emptyDir with the same index
// and name and a limit before and after. Validation rejects any other volume change.
class InPlacePodVerticalScalingMemoryBackedVolumes : public GatedFeature {
 public:
  InPlacePodVerticalScalingMemoryBackedVolumes()
      : GatedFeature("InPlacePodVerticalScalingMemoryBackedVolumes") {}

  NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const override {
    const api::Value before = old_pod.spec["volumes"];
    const api::Value after = new_pod.spec["volumes"];
    if (before.size() != after.size()) return std::nullopt;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (before.at(i)["name"].str() != after.at(i)["name"].str()) continue;
      if (after.at(i)["emptyDir"]["medium"].str() != "Memory") continue;
      const api::Value old_limit = before.at(i)["emptyDir"]["sizeLimit"];
      const api::Value new_limit = after.at(i)["emptyDir"]["sizeLimit"];
      if (!old_limit.has_value() || !new_limit.has_value()) continue;
      if (!EqualQuantities(old_limit, new_limit)) {
        return StrCat("spec.volumes[", i, "].emptyDir.sizeLimit");
      }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<const Feature> MakeInPlacePodVerticalScalingMemoryBackedVolumes(CatalogSetting) {
  return std::make_unique<InPlacePodVerticalScalingMemoryBackedVolumes>();
}

}  // namespace drakkar::features
