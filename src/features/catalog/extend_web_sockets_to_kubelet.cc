#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {

// Determines the API server's protocol to the node; pods never require it.
std::unique_ptr<const Feature> MakeExtendWebSocketsToKubelet(CatalogSetting) {
  return std::make_unique<GatedFeature>("ExtendWebSocketsToKubelet");
}

}  // namespace drakkar::features
