#include "features/catalog/catalog.h"

#include <iterator>
#include <utility>

// The registry: one line per feature, whose file defines Make<Name>. Order does not matter.
#define DRAKKAR_FEATURES(FEATURE)                       \
  FEATURE(DraNodeAllocatableResources)                  \
  FEATURE(DraOptionalNodePreparation)                   \
  FEATURE(ExtendWebSocketsToKubelet)                    \
  FEATURE(InPlacePodLevelResourcesVerticalScaling)      \
  FEATURE(InPlacePodVerticalScalingInitContainers)      \
  FEATURE(InPlacePodVerticalScalingMemoryBackedVolumes) \
  FEATURE(RestartAllContainersOnContainerExits)         \
  FEATURE(UserNamespacesHostNetworkSupport)             \
  FEATURE(VolumeBindMountOptions)

namespace drakkar::features {

#define DECLARE_FEATURE(name) std::unique_ptr<const Feature> Make##name(CatalogSetting setting);
DRAKKAR_FEATURES(DECLARE_FEATURE)
#undef DECLARE_FEATURE

FeatureList AllFeatures(CatalogSetting setting) {
  FeatureList features;
#define ADD_FEATURE(name) features.push_back(Make##name(setting));
  DRAKKAR_FEATURES(ADD_FEATURE)
#undef ADD_FEATURE
  return features;
}

const Framework& DefaultFramework(CatalogSetting setting) {
  const auto make = [](CatalogSetting which) {
    Result<Framework> framework = FrameworkWith({}, which);
    CHECK(framework.ok());  // catalog_test reports what is wrong
    return *framework;
  };
  static const Framework kep = make(CatalogSetting::kKep);
  static const Framework kubernetes = make(CatalogSetting::kKubernetes);
  return setting == CatalogSetting::kKep ? kep : kubernetes;
}

Result<Framework> FrameworkWith(FeatureList more, CatalogSetting setting) {
  FeatureList features = AllFeatures(setting);
  features.insert(features.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  ASSIGN_OR_RETURN(std::shared_ptr<const Registry> registry, Registry::Create(std::move(features)));
  return Framework(std::move(registry));
}

}  // namespace drakkar::features
