#pragma once

#include <string>

#include "features/framework/feature.h"

namespace drakkar::features {

// An artificial feature for tests that uses everything a feature may have: a gate, a static
// setting, an alias, rules for scheduling and updates, and a last version. A pod requires it if it
// tolerates the taint key "exclusive-cpus"; an update requires it if it adds the first such
// toleration.
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
    const api::Value tolerations = pod.spec["tolerations"];
    for (std::size_t i = 0; i < tolerations.size(); ++i) {
      if (tolerations.at(i)["key"].str() == "exclusive-cpus") {
        return "spec.tolerations[" + std::to_string(i) + "].key";
      }
    }
    return std::nullopt;
  }
  NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const override {
    if (InferForScheduling(old_pod)) return std::nullopt;
    return InferForScheduling(new_pod);
  }
  std::optional<Version> MaxVersion() const override { return last_; }

 private:
  std::optional<Version> last_;
};

}  // namespace drakkar::features
