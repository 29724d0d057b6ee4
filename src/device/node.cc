#include "device/node.h"

#include <algorithm>

namespace drakkar::device {

namespace {

bool IsOptionalOperations(std::string_view feature) {
  return feature == kOptionalNodePreparation || feature == kOptionalNodeOperations;
}

}  // namespace

bool CanSkipOperations(const Node& node) {
  return std::any_of(node.declared_features.begin(), node.declared_features.end(),
                     IsOptionalOperations);
}

bool CanSkipOperations(api::Value node) {
  for (api::Value feature : node["status"]["declaredFeatures"].elements()) {
    if (IsOptionalOperations(feature.str())) return true;
  }
  return false;
}

}  // namespace drakkar::device
