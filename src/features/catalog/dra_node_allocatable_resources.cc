#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {

// Admission of slices and the allocator ask the node for it; no pod field tells.
std::unique_ptr<const Feature> MakeDraNodeAllocatableResources(CatalogSetting) {
  return std::make_unique<GatedFeature>("DRANodeAllocatableResources");
}

}  // namespace drakkar::features
