#include "features/features_c.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "features/catalog/catalog.h"
#include "features/input_shape.h"
#include "features/report.h"

struct drakkar_features {
  drakkar::features::Framework framework;
};

namespace drakkar::features {
namespace {

// Allocated with malloc, because C frees it; null if out of memory.
char* CopyForC(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

char* Answer(const Result<api::TreePtr>& result, char** error) {
  if (error != nullptr) *error = nullptr;
  if (result.ok()) return CopyForC(api::WriteJson((*result)->root(), {.escape_html = false}));
  if (error != nullptr) *error = CopyForC(result.error().message);
  return nullptr;
}

Result<api::TreePtr> ReadObject(const char* json) {
  if (json == nullptr) return InvalidArgument("the input must not be null");
  ASSIGN_OR_RETURN(api::TreePtr tree, api::ParseJson(json));
  if (!tree->root().is_object()) return InvalidArgument("the input must be a JSON object");
  return tree;
}

// An object with only these keys.
Result<api::TreePtr> ReadInput(const char* json, std::span<const std::string_view> keys) {
  ASSIGN_OR_RETURN(api::TreePtr tree, ReadObject(json));
  RETURN_IF_ERROR(CheckKeys(tree->root(), keys));
  return tree;
}

Result<std::vector<std::string>> Strings(api::Value list, std::string_view what) {
  const std::string wanted = std::string(what) + " must be a list of strings";
  if (!list.is_array()) return InvalidArgument(wanted);
  std::vector<std::string> texts;
  for (api::Value element : list.elements()) {
    if (!element.is_string()) return InvalidArgument(wanted);
    texts.emplace_back(element.str());
  }
  return texts;
}

Result<Version> VersionIn(api::Value input) {
  ASSIGN_OR_RETURN(const std::string_view text, OptionalText(input, "version"));
  if (text.empty()) return VersionOf(kOurVersion);
  return ParseVersion(text);
}

Result<api::TreePtr> Discover(const Framework& framework, const char* json) {
  static constexpr std::string_view kKeys[] = {"version", "featureGates", "runtimeFeatures",
                                               "kubeletConfiguration", "agent"};
  ASSIGN_OR_RETURN(const api::TreePtr input, ReadInput(json, kKeys));
  const api::Value node = input->root();
  const api::Value kubelet = node["kubeletConfiguration"];
  if (kubelet.has_value() && !kubelet.is_object()) {
    return InvalidArgument("kubeletConfiguration must be an object");
  }
  ASSIGN_OR_RETURN(const std::string_view gates, OptionalText(node, "featureGates"));
  ASSIGN_OR_RETURN(const std::string_view runtime, OptionalText(node, "runtimeFeatures"));
  ASSIGN_OR_RETURN(const std::string_view version, OptionalText(node, "version"));
  ASSIGN_OR_RETURN(const std::string_view agent, OptionalText(node, "agent"));
  ASSIGN_OR_RETURN(const DiscoverReport report,
                   ReportDiscover(framework, {.kubelet_configuration = kubelet,
                                              .feature_gates = std::string(gates),
                                              .runtime_features = std::string(runtime),
                                              .version = std::string(version),
                                              .agent = std::string(agent)}));
  return ToTree(report);
}

Result<api::TreePtr> Require(const Framework& framework, const char* json) {
  static constexpr std::string_view kKeys[] = {"pod", "claims", "version"};
  ASSIGN_OR_RETURN(const api::TreePtr input, ReadInput(json, kKeys));
  const api::Value root = input->root();
  RETURN_IF_ERROR(CheckPodShape(root["pod"], "pod"));
  if (root["claims"].has_value() && !root["claims"].is_array()) {
    return InvalidArgument("claims must be a list");
  }
  std::vector<api::Value> claims;
  for (api::Value claim : root["claims"].elements()) {
    RETURN_IF_ERROR(CheckClaimShape(claim, "claims[" + std::to_string(claims.size()) + "]"));
    claims.push_back(claim);
  }
  ASSIGN_OR_RETURN(const std::string_view version, OptionalText(root, "version"));
  ASSIGN_OR_RETURN(const RequireReport report,
                   ReportRequire(framework, root["pod"], claims, version));
  return ToTree(report);
}

Result<api::TreePtr> RequireUpdate(const Framework& framework, const char* json) {
  static constexpr std::string_view kKeys[] = {"oldPod", "pod", "version"};
  ASSIGN_OR_RETURN(const api::TreePtr input, ReadInput(json, kKeys));
  const api::Value root = input->root();
  RETURN_IF_ERROR(CheckPodShape(root["oldPod"], "oldPod"));
  RETURN_IF_ERROR(CheckPodShape(root["pod"], "pod"));
  ASSIGN_OR_RETURN(const Version target, VersionIn(root));
  ASSIGN_OR_RETURN(
      const FeatureSet required,
      framework.InferForPodUpdate(PodInfoOf(root["oldPod"]), PodInfoOf(root["pod"]), target));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, framework.registry().Names(required));
  api::Draft list = api::Draft::Array();
  for (const std::string& name : names) {
    api::Draft entry = api::Draft::Object();
    entry["name"] = name;
    list.Append(std::move(entry));
  }
  api::Draft tree = api::Draft::Object();
  tree["requiredFeatures"] = std::move(list);
  return tree.Freeze();
}

Result<api::TreePtr> Match(const Framework& framework, const char* json) {
  static constexpr std::string_view kKeys[] = {"required", "node"};
  ASSIGN_OR_RETURN(const api::TreePtr input, ReadInput(json, kKeys));
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   Strings(input->root()["required"], "required"));
  RETURN_IF_ERROR(CheckNodeShape(input->root()["node"], "node"));
  ASSIGN_OR_RETURN(const FeatureSet required, framework.registry().Map(names));
  ASSIGN_OR_RETURN(const MatchResult result, framework.MatchNode(required, input->root()["node"]));
  api::Draft tree = api::Draft::Object();
  tree["match"] = result.is_match;
  api::Draft list = api::Draft::Array();
  for (const std::string& name : result.unsatisfied) list.Append(name);
  tree["unsatisfied"] = std::move(list);
  return tree.Freeze();
}

Result<api::TreePtr> Needs(const Framework& framework, const char* name) {
  if (name == nullptr) return InvalidArgument("`name` must not be null");
  ASSIGN_OR_RETURN(const NeedsReport report, ReportNeeds(framework, name));
  return ToTree(report);
}

}  // namespace
}  // namespace drakkar::features

namespace features = drakkar::features;

extern "C" {

drakkar_features* drakkar_features_new(int setting) {
  if (setting != DRAKKAR_FEATURES_KEP && setting != DRAKKAR_FEATURES_KUBERNETES) return nullptr;
  return new drakkar_features{features::DefaultFramework(
      setting == DRAKKAR_FEATURES_KEP ? features::CatalogSetting::kKep
                                      : features::CatalogSetting::kKubernetes)};
}

void drakkar_features_free(drakkar_features* handle) {
  delete handle;
}

void drakkar_features_free_string(char* text) {
  std::free(text);
}

char* drakkar_features_discover(const drakkar_features* handle, const char* node_json,
                                char** error) {
  return features::Answer(features::Discover(handle->framework, node_json), error);
}

char* drakkar_features_require(const drakkar_features* handle, const char* pod_json, char** error) {
  return features::Answer(features::Require(handle->framework, pod_json), error);
}

char* drakkar_features_require_update(const drakkar_features* handle, const char* update_json,
                                      char** error) {
  return features::Answer(features::RequireUpdate(handle->framework, update_json), error);
}

char* drakkar_features_match(const drakkar_features* handle, const char* match_json, char** error) {
  return features::Answer(features::Match(handle->framework, match_json), error);
}

char* drakkar_features_needs(const drakkar_features* handle, const char* name, char** error) {
  return features::Answer(features::Needs(handle->framework, name), error);
}

}  // extern "C"
