#include "features/declared.h"

#include <array>
#include <utility>

#include "base/text/text.h"
#include "features/framework/feature_name.h"

namespace drakkar::features {

Declaration DeclareForNode(const Framework& framework, const NodeConfiguration& configuration,
                           std::span<const std::string_view> implemented) {
  const Registry& registry = framework.registry();
  Discovery discovery = framework.DiscoverNodeFeatures(configuration);
  Declaration declaration{.features = registry.NewSet(), .names = {}, .problems = {}};
  for (std::string_view name : implemented) {
    const std::optional<std::size_t> index = registry.FindIndex(name);
    if (!index) {
      declaration.problems.push_back(StrCat("unknown feature ", name));
    } else if (discovery.features.Get(*index)) {
      declaration.features.Set(*index);
    }
  }
  CleanNames clean = CleanFeatureNames(registry.DeclaredNames(declaration.features));
  declaration.names = std::move(clean.names);
  for (auto* problems : {&discovery.problems, &clean.dropped}) {
    for (std::string& problem : *problems) declaration.problems.push_back(std::move(problem));
  }
  return declaration;
}

std::span<const std::string_view> ImplementedByOurNode() {
  static constexpr std::array<std::string_view, 3> kNames = {
      "DraOptionalNodePreparation",
      "ExtendWebSocketsToKubelet",
      "RestartAllContainersOnContainerExits",
  };
  return kNames;
}

std::vector<std::string> DeclaredNames(const Framework& framework,
                                       const NodeConfiguration& configuration) {
  return framework.DiscoverNodeFeatures(configuration).names;
}

std::string UnmatchedNodeMessage(const std::vector<std::string>& missing) {
  return StrCat("node(s) did not match node declared features: ", Join(missing, ", "));
}

std::string PodRejectedMessage(const std::vector<std::string>& missing) {
  return StrCat("Pod requires node features that are not available: ", Join(missing, ", "));
}

std::string UpdateRefusedMessage(const std::vector<std::string>& missing, std::string_view node) {
  return StrCat("pod update requires features ", Join(missing, ", "),
                " which are not available on node ", Quote(node));
}

}  // namespace drakkar::features
