#include "features/catalog/internal/container_fields.h"
#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {
namespace {

// Required by a pod that mounts a volume with its own options; the runtime applies them.
class VolumeBindMountOptions : public GatedFeature {
 public:
  VolumeBindMountOptions() : GatedFeature("VolumeBindMountOptions", {.mount_options = true}) {}

  NeededBecauseOf InferForScheduling(const PodInfo& pod) const override {
    const auto has_options = [](api::Value mount) -> std::optional<std::string> {
      if (mount["bindMountOptions"].empty()) return std::nullopt;
      return ".bindMountOptions";
    };
    return FindInContainers(pod.spec, {"initContainers", "containers", "ephemeralContainers"},
                            [&](api::Value container) {
                              return FindInList(container["volumeMounts"], ".volumeMounts",
                                                has_options);
                            });
  }
};

}  // namespace

std::unique_ptr<const Feature> MakeVolumeBindMountOptions(CatalogSetting) {
  return std::make_unique<VolumeBindMountOptions>();
}

}  // namespace drakkar::features
