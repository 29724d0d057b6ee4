#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {

// The API server chooses its protocol to the node by it; pods never need it.
std::unique_ptr<const Feature> MakeExtendWebSocketsToKubelet(CatalogSetting) {
  return std::make_unique<GatedFeature>("ExtendWebSocketsToKubelet");
}

}  // namespace drakkar::features
