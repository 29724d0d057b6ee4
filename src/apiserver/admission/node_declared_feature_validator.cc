#include "apiserver/admission/node_declared_feature_validator.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "features/declared.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {

bool NodeDeclaredFeatureValidator::Concerns(const Request& request) const {
  return request.kind->group.empty() && request.kind->plural == "pods";
}

std::optional<Failure> NodeDeclaredFeatureValidator::Admit(const Request& request,
                                                           api::Draft* object, api::Value before,
                                                           const StrategyContext& context) {
  if (!context.gates.Enabled(Gate::kNodeDeclaredFeatures)) return std::nullopt;
  if (object == nullptr || !before.has_value()) return std::nullopt;
  if (!request.kind->group.empty() || request.kind->plural != "pods") return std::nullopt;
  if (!request.subresource.empty() && request.subresource != "resize") return std::nullopt;
  const api::TreePtr after = object->Freeze();
  const std::string node_name(after->root()["spec"]["nodeName"].str());
  if (node_name.empty()) return std::nullopt;
  // What did not change needs nothing.
  if (api::Equal(after->root()["spec"], before["spec"])) return std::nullopt;

  const auto refuse = [&](std::string_view why) {
    return ForbiddenFailure(*request.kind, request.name, why);
  };
  const Result<features::FeatureSet> required =
      framework_.InferForPodUpdate(features::PodInfoOf(before), features::PodInfoOf(after->root()),
                                   features::VersionOf(context.gates.emulated()));
  if (!required.ok()) {
    return refuse(
        StrCat("failed to infer pod capability requirements: ", required.error().message));
  }
  if (required->IsEmpty()) return std::nullopt;
  const api::ObjectPtr node = context.lookup("", "nodes", node_name);
  if (node == nullptr) return refuse(StrCat("node ", Quote(node_name), " not found"));
  const Result<features::MatchResult> match = framework_.MatchNode(*required, node->root());
  if (!match.ok()) {
    return refuse(StrCat("failed to match pod requirements against node ", Quote(node_name), ": ",
                         match.error().message));
  }
  if (match->is_match) return std::nullopt;
  return refuse(features::UpdateRefusedMessage(match->unsatisfied, node_name));
}

}  // namespace drakkar::apiserver
