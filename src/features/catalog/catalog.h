#pragma once

#include <cstdint>

#include "features/framework/framework.h"

namespace drakkar::features {

// Whose answers the catalog gives where the proposals and Kubernetes 1.37 differ:
// - kKep: DraOptionalNodePreparation with DRAOptionalNodeOperations as its alias, needed by pods
//   whose allocated claims skip node operations; resources written differently but equal in
//   meaning are no change.
// - kKubernetes: DRAOptionalNodeOperations alone, never inferred; resources of init containers
//   are compared as written.
enum class CatalogSetting : std::uint8_t { kKep, kKubernetes };

// Every feature that we know, whether or not our own node has it.
FeatureList AllFeatures(CatalogSetting setting);

// The framework over AllFeatures, built once.
const Framework& DefaultFramework(CatalogSetting setting = CatalogSetting::kKep);

// With further features, for tests and for those who have features of their own.
Result<Framework> FrameworkWith(FeatureList more, CatalogSetting setting = CatalogSetting::kKep);

}  // namespace drakkar::features
