#pragma once

#include <string>
#include <string_view>

#include "features/catalog/catalog.h"
#include "features/framework/feature.h"

namespace drakkar::features {

// A feature with one gate of the same name, as almost all features are.
class GatedFeature : public Feature {
 public:
  // `name` must be a string literal.
  explicit GatedFeature(std::string_view name, RuntimeFeatures runtime = {})
      : name_(name), runtime_(runtime) {}

  std::string_view Name() const override { return name_; }
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {std::string(name_)},
            .static_configuration = {},
            .runtime_features = runtime_};
  }

 private:
  std::string_view name_;
  RuntimeFeatures runtime_;
};

}  // namespace drakkar::features
