#include "apiserver/rest/scale.h"

#include "api/codec/yaml_reader.h"
#include "api/json/writer.h"
#include "api/meta/label_selector.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/custom/definition.h"
#include "apiserver/rest/decode.h"
#include "apiserver/validation/cause.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

const api::KindSchema& ScaleKind() {
  static const api::KindSchema* kind = api::FindKind("autoscaling", "v1", "Scale");
  return *kind;
}

// The selector as a string: ReplicationControllers have a plain map, the others a LabelSelector.
std::string SelectorText(Value selector) {
  std::vector<std::string> parts;
  const bool plain = !selector["matchLabels"].exists() && !selector["matchExpressions"].exists();
  for (const auto& [key, name, value] : (plain ? selector : selector["matchLabels"]).members()) {
    parts.push_back(StrCat(name, "=", value.str()));
  }
  for (Value each : selector["matchExpressions"].elements()) {
    const std::string_view op = each["operator"].str();
    if (op == "Exists" || op == "DoesNotExist") {
      parts.push_back(StrCat(op == "Exists" ? "" : "!", each["key"].str()));
      continue;
    }
    std::vector<std::string_view> values;
    for (Value value : each["values"].elements()) values.push_back(value.str());
    parts.push_back(
        StrCat(each["key"].str(), op == "In" ? " in (" : " notin (", Join(values, ","), ")"));
  }
  return Join(parts, ",");
}

// The value at "spec.replicas"; absent for an empty path.
Value ValueAt(Value root, std::string_view path) {
  if (path.empty()) return {};
  for (std::string_view part : Split(path, '.')) root = root.Entry(part);
  return root;
}

std::optional<Failure> CheckReplicas(const Request& request, std::int64_t replicas) {
  if (replicas >= 0) return std::nullopt;
  return InvalidFailure(ScaleKind(), request.name,
                        {Invalid("spec.replicas", replicas, "must be greater than or equal to 0")});
}

// Applying a scale applies the workload's replicas; the manager's entry names the subresource.
std::optional<Failure> BuildScaleApply(Request& request) {
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(request.text);
  if (!documents.ok()) {
    return api::StatusBadRequest(StrCat("error decoding YAML: ", documents.error().message));
  }
  if (documents->size() != 1 || !documents->front()->root().is_object()) {
    return api::StatusBadRequest("error decoding YAML: the body must be one object");
  }
  const Value applied = documents->front()->root();
  if (applied["apiVersion"].str() != "autoscaling/v1" || applied["kind"].str() != "Scale") {
    return api::StatusBadRequest(
        StrCat("Incorrect version specified in apply patch. Specified patch version: ",
               applied["apiVersion"].str(), ", expected: autoscaling/v1"));
  }
  const api::KindSchema& kind = *request.kind;
  Draft workload = {{"apiVersion", StrCat(kind.group, kind.group.empty() ? "" : "/", kind.version)},
                    {"kind", kind.kind}};
  workload["metadata"] =
      applied["metadata"].is_object() ? Draft(applied["metadata"]) : Draft::Object();
  const Value replicas = applied["spec"]["replicas"];
  if (replicas.has_value()) {
    if (replicas.kind() != api::ValueKind::kInt) {
      return api::StatusBadRequest("spec.replicas must be a number");
    }
    if (std::optional<Failure> failure = CheckReplicas(request, replicas.integer())) return failure;
    SetReplicas(kind, workload, replicas.integer());
  }
  request.text = api::WriteJson(workload.Freeze()->root());
  return std::nullopt;
}

}  // namespace

void SetReplicas(const api::KindSchema& kind, Draft& workload, std::int64_t replicas) {
  const CustomVersion* custom = FindCustomVersion(kind);
  if (custom == nullptr) {
    workload["spec"]["replicas"] = replicas;
    return;
  }
  Draft* at = &workload;
  for (std::string_view part : Split(custom->replicas_path(), '.')) at = &at->Entry(part);
  *at = replicas;
}

api::ObjectPtr ScaleOf(const api::KindSchema& kind, const api::Object& workload) {
  const CustomVersion* custom = FindCustomVersion(kind);
  Draft scale = {{"apiVersion", "autoscaling/v1"}, {"kind", "Scale"}};
  for (const api::FieldName field :
       api::FieldNames{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const Value value = workload["metadata"][field];
    if (value.has_value()) scale["metadata"][field] = value.str();
  }
  scale["spec"] = Draft::Object();
  if (custom != nullptr) {
    const Value root = workload.root();
    if (const std::int64_t wanted = ValueAt(root, custom->replicas_path()).integer(); wanted != 0) {
      scale["spec"]["replicas"] = wanted;
    }
    scale["status"]["replicas"] = ValueAt(root, custom->status_replicas_path()).integer();
    if (const Value selector = ValueAt(root, custom->selector_path()); !selector.str().empty()) {
      scale["status"]["selector"] = selector.str();
    }
    return std::make_shared<const api::Object>(scale.Freeze());
  }
  if (const std::int64_t wanted = workload["spec"]["replicas"].integer(1); wanted != 0) {
    scale["spec"]["replicas"] = wanted;
  }
  scale["status"]["replicas"] = workload["status"]["replicas"].integer();
  if (std::string selector = SelectorText(workload["spec"]["selector"]); !selector.empty()) {
    scale["status"]["selector"] = std::move(selector);
  }
  return std::make_shared<const api::Object>(scale.Freeze());
}

std::optional<Failure> BuildScaleUpdate(Request& request, const api::ObjectPtr& workload,
                                        std::vector<std::string>& warnings) {
  if (request.verb == Verb::kPatch && request.patch == PatchKind::kApply) {
    return BuildScaleApply(request);
  }
  api::TreePtr asked;
  if (std::optional<Failure> failure =
          BuildUpdate(ScaleKind(), request, ScaleOf(*request.kind, *workload), asked, warnings)) {
    return failure;
  }
  const Value scale = asked->root();
  const std::int64_t replicas = scale["spec"]["replicas"].integer();
  if (std::optional<Failure> failure = CheckReplicas(request, replicas)) return failure;
  Draft updated(workload->tree());
  SetReplicas(*request.kind, updated, replicas);
  // A version in the scale is the workload's own, and a precondition.
  if (request.verb == Verb::kUpdate && !scale["metadata"]["resourceVersion"].str().empty()) {
    updated["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].str();
  } else if (request.kind->family != nullptr) {
    // Custom resources are not updated without a version.
    updated["metadata"]["resourceVersion"] = std::to_string(workload->resource_version());
  } else {
    updated["metadata"].Remove("resourceVersion");
  }
  request.object = updated.Freeze();
  request.verb = Verb::kUpdate;
  request.subresource.clear();
  request.text.clear();
  request.encoding = Request::Encoding::kJson;
  return std::nullopt;
}

}  // namespace drakkar::apiserver
