#pragma once

#include <cstdint>

#include "features/framework/framework.h"

namespace drakkar::features {

// Which answers the catalog gives where the proposals and Kubernetes 1.37 differ:
// - kKep: DraOptionalNodePreparation with the alias DRAOptionalNodeOperations, required by pods
//   whose allocated claims skip node operations; resources with equal values count as unchanged,
//   however they are written.
// - kKubernetes: only DRAOptionalNodeOperations, never inferred; resources of init containers
//   are compared as written.
enum class CatalogSetting : std::uint8_t { kKep, kKubernetes };

// Every known feature, whether or not our own node implements it.
FeatureList AllFeatures(CatalogSetting setting);

// The framework over AllFeatures, built once.
const Framework& DefaultFramework(CatalogSetting setting = CatalogSetting::kKep);

// With additional features, for tests and for callers with their own features.
Result<Framework> FrameworkWith(FeatureList more, CatalogSetting setting = CatalogSetting::kKep);

}  // namespace drakkar::features
