#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {

// Checked by slice admission and by the allocator; no pod field requires it.
std::unique_ptr<const Feature> MakeDraNodeAllocatableResources(CatalogSetting) {
  return std::make_unique<GatedFeature>("DRANodeAllocatableResources");
}

}  // namespace drakkar::features
