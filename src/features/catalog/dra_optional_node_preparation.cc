#include "features/catalog/internal/container_fields.h"
#include "features/catalog/internal/gated_feature.h"

namespace drakkar::features {
namespace {

constexpr std::string_view kKepName = "DraOptionalNodePreparation";
constexpr std::string_view kKubernetesName = "DRAOptionalNodeOperations";
constexpr char kKepGate[] = "DRAOptionalNodePreparation";
constexpr char kKubernetesGate[] = "DRAOptionalNodeOperations";

// True for `true` and for a non-empty list.
bool Skips(api::Value skip_node_operations) {
  return skip_node_operations.boolean() || skip_node_operations.size() > 0;
}

// KEP-5945: the node may skip the driver's prepare and unprepare calls. A pod requires it if a
// result of one of its allocated claims skips calls: a node that does not know the field would call
// the driver, which may not exist. A pod's claims do not change, so updates never require it.
class DraOptionalNodePreparation : public Feature {
 public:
  explicit DraOptionalNodePreparation(CatalogSetting setting)
      : kubernetes_(setting == CatalogSetting::kKubernetes) {}

  std::string_view Name() const override { return kubernetes_ ? kKubernetesName : kKepName; }

  std::vector<std::string> Aliases() const override {
    if (kubernetes_) return {};
    return {std::string(kKubernetesName)};
  }

  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {kubernetes_ ? kKubernetesGate : kKepGate},
            .static_configuration = {},
            .runtime_features = {}};
  }

  NeededBecauseOf InferForScheduling(const PodInfo& pod) const override {
    if (kubernetes_) return std::nullopt;
    for (api::Value claim : pod.claims) {
      const auto skips = [](api::Value result) -> std::optional<std::string> {
        if (!Skips(result["skipNodeOperations"])) return std::nullopt;
        return ".skipNodeOperations";
      };
      if (NeededBecauseOf field = FindInList(claim["status"]["allocation"]["devices"]["results"],
                                             "status.allocation.devices.results", skips)) {
        const api::Value metadata = claim["metadata"];
        const std::string_view space = metadata["namespace"].str();
        return StrCat("claim ", space, space.empty() ? "" : "/", metadata["name"].str(), ": ",
                      *field);
      }
    }
    return std::nullopt;
  }

 private:
  bool kubernetes_;
};

}  // namespace

std::unique_ptr<const Feature> MakeDraOptionalNodePreparation(CatalogSetting setting) {
  return std::make_unique<DraOptionalNodePreparation>(setting);
}

}  // namespace drakkar::features
