#include "apiserver/admission/node_declared_feature_validator.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "device/from_api.h"
#include "device/node_selector.h"
#include "features/declared.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {

namespace {

constexpr std::string_view kNodeAllocatable = "DRANodeAllocatableResources";

bool IsPod(const api::KindSchema& kind) {
  return kind.group.empty() && kind.plural == "pods";
}
bool IsSlice(const api::KindSchema& kind) {
  return kind.group == "resource.k8s.io" && kind.plural == "resourceslices";
}

bool Declares(const api::Object& node, std::string_view wanted) {
  for (api::Value feature : node["status"]["declaredFeatures"].elements()) {
    if (feature.str() == wanted) return true;
  }
  return false;
}

Error NotSupportedBy(std::string_view node) {
  return FailedPrecondition(
      StrCat("node ", Quote(node), " does not support ", kNodeAllocatable, " feature"));
}

// Checks that every node selected by `where` may have such a device. `where` is a slice's spec or
// one of its devices; both select nodes with the same fields.
Result<void> CheckNodes(api::Value where, std::string_view device, const StrategyContext& context) {
  if (const std::string name(where["nodeName"].str()); !name.empty()) {
    const api::ObjectPtr node = context.lookup("", "nodes", name);
    if (node == nullptr) {
      return NotFound(StrCat("node ", Quote(name), " not found for device ", Quote(device)));
    }
    if (!Declares(*node, kNodeAllocatable)) return NotSupportedBy(name);
    return Ok();
  }
  const api::Value selector = where["nodeSelector"];
  if (!selector.has_value() && !where["allNodes"].boolean()) {
    return FailedPrecondition(
        StrCat("device ", Quote(device),
               " in ResourceSlice has NodeAllocatableResources but does not map to any nodes"));
  }
  device::NodeSelector wanted;
  if (selector.has_value()) {
    Result<device::NodeSelector> read = device::NodeSelectorFromApi(selector);
    if (!read.ok()) return read.error().Prefixed("failed to create node selector");
    wanted = std::move(*read);
  }
  if (!context.find_first) return Ok();
  const api::ObjectPtr without = context.find_first("", "nodes", [&](const api::Object& node) {
    if (Declares(node, kNodeAllocatable)) return false;
    if (!selector.has_value()) return true;
    const Result<bool> matches = device::Matches(wanted, node.root());
    return matches.ok() && *matches;
  });
  if (without == nullptr) return Ok();
  return NotSupportedBy(without->name());
}

std::optional<Failure> CheckSlice(const Request& request, api::Value slice,
                                  const StrategyContext& context) {
  if (!context.gates.Enabled(Gate::kDRANodeAllocatableResources)) return std::nullopt;
  const api::Value spec = slice["spec"];
  const bool per_device = spec["perDeviceNodeSelection"].boolean();
  bool is_slice_checked = false;  // all devices have the slice's nodes
  for (api::Value device : spec["devices"].elements()) {
    if (device["nodeAllocatableResources"].empty() || is_slice_checked) continue;
    const Result<void> checked =
        CheckNodes(per_device ? device : spec, device["name"].str(), context);
    if (!checked.ok()) {
      return ForbiddenFailure(*request.kind, request.name, checked.error().message);
    }
    is_slice_checked = !per_device;
  }
  return std::nullopt;
}

}  // namespace

bool NodeDeclaredFeatureValidator::Concerns(const Request& request) const {
  if (request.verb == Verb::kDelete) return false;
  if (IsSlice(*request.kind)) return true;
  return IsPod(*request.kind) && request.verb != Verb::kCreate &&
         (request.subresource.empty() || request.subresource == "resize");
}

std::optional<Failure> NodeDeclaredFeatureValidator::Check(const Request& request,
                                                           api::Value object, api::Value before,
                                                           const StrategyContext& context,
                                                           std::vector<std::string>&) {
  if (!context.gates.Enabled(Gate::kNodeDeclaredFeatures)) return std::nullopt;
  if (!object.has_value() || !Concerns(request)) return std::nullopt;
  if (IsSlice(*request.kind)) return CheckSlice(request, object, context);
  if (!before.has_value()) return std::nullopt;
  const std::string node_name(object["spec"]["nodeName"].str());
  if (node_name.empty()) return std::nullopt;
  // Unchanged parts need no features.
  if (api::Equal(object["spec"], before["spec"])) return std::nullopt;

  const auto refuse = [&](std::string_view why) {
    return ForbiddenFailure(*request.kind, request.name, why);
  };
  const Result<features::FeatureSet> required =
      framework_.InferForPodUpdate(features::PodInfoOf(before), features::PodInfoOf(object),
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
