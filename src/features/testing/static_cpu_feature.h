#pragma once

#include "features/framework/feature.h"

namespace drakkar::features {

// A made-up feature for tests, with all that a feature may have: a gate, a static setting, an alias,
// rules for scheduling and updates, and a last version. A pod needs it when its scheduler is called
// "exclusive", an update when that name changes.
class StaticCpuFeature : public Feature {
 public:
  explicit StaticCpuFeature(std::optional<Version> last = std::nullopt) : last_(std::move(last)) {}

  std::string_view Name() const override { return "TestStaticCpu"; }
  std::vector<std::string> Aliases() const override { return {"TestStaticCpu/old"}; }
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"TestStaticCpuGate"},
            .static_configuration = {{"CPUManagerPolicy", "static"}},
            .runtime_features = {}};
  }
  NeededBecauseOf InferForScheduling(const PodInfo& pod) const override {
    if (pod.spec["schedulerName"].str() != "exclusive") return std::nullopt;
    return "spec.schedulerName";
  }
  NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const override {
    if (old_pod.spec["schedulerName"].str() == new_pod.spec["schedulerName"].str()) {
      return std::nullopt;
    }
    return "spec.schedulerName";
  }
  std::optional<Version> MaxVersion() const override { return last_; }

 private:
  std::optional<Version> last_;
};

}  // namespace drakkar::features
