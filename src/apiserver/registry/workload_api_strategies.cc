#include "apiserver/registry/workload_api_strategies.h"

#include <set>

#include "apiserver/validation/cause.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

// Exactly one of two members.
void CheckUnion(Value value, const std::string& path, api::FieldName first, api::FieldName second,
                FieldErrors& errors) {
  const auto is_set = [](Value member) {
    return member.has_value() && !(member.is_array() && member.empty());
  };
  const bool has_first = is_set(value[first]);
  const bool has_second = is_set(value[second]);
  if (has_first != has_second) return;
  if (has_first) {
    errors.push_back(Invalid(path, StrCat("{", first, ", ", second, "}"),
                             StrCat("must specify exactly one of: `", first, "`, `", second, "`")));
  } else {
    errors.push_back(
        Invalid(path, "", StrCat("must specify one of: `", first, "`, `", second, "`")));
  }
}

// What a PodGroup's spec and a template have in common.
void CheckGroup(Value group, const std::string& path, FieldErrors& errors) {
  CheckUnion(group["schedulingPolicy"], path + ".schedulingPolicy", "basic", "gang", errors);
  if (group["disruptionMode"].has_value()) {
    CheckUnion(group["disruptionMode"], path + ".disruptionMode", "single", "all", errors);
  }
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value claim : group["resourceClaims"].elements()) {
    const std::string at = StrCat(path, ".resourceClaims[", index++, "]");
    if (!names.insert(claim["name"].str()).second) {
      errors.push_back(Duplicate(at, claim["name"].str()));
    }
    CheckUnion(claim, at, "resourceClaimName", "resourceClaimTemplateName", errors);
  }
}

// A gang stays one, and other groups do not become one; the size of a gang may change.
void CheckPolicyChange(Value group, Value before, const std::string& path, FieldErrors& errors) {
  const Value now = group["schedulingPolicy"];
  const Value then = before["schedulingPolicy"];
  for (const api::FieldName field : api::FieldNames{"basic", "gang"}) {
    if (now[field].has_value() == then[field].has_value()) continue;
    errors.push_back(
        Invalid(StrCat(path, ".schedulingPolicy.", field), now[field], "field is immutable"));
  }
}

bool UsesClaims(Value group) {
  return !group["resourceClaims"].empty();
}

void DropClaims(api::Draft& group, Value before, const StrategyContext& context) {
  if (context.gates.Enabled(Gate::kDRAWorkloadResourceClaims) || UsesClaims(before)) return;
  if (group.is_object()) group.Remove("resourceClaims");
}

void DropFromTemplates(api::Draft& object, Value before, const StrategyContext& context) {
  api::Draft* spec = object.Find("spec");
  api::Draft* templates = spec == nullptr ? nullptr : spec->Find("podGroupTemplates");
  if (templates == nullptr || !templates->is_array()) return;
  std::size_t index = 0;
  for (api::Draft& each : templates->MutableElements()) {
    DropClaims(each, before["spec"]["podGroupTemplates"].at(index++), context);
  }
}

}  // namespace

void PodGroupStrategy::Default(api::Draft& object, const StrategyContext&) const {
  if (api::Draft* spec = object.Find("spec"); spec != nullptr && spec->is_object()) {
    api::Draft& mode = (*spec)["disruptionMode"];
    if (!mode.has_value()) mode = api::Draft({{"single", api::Draft::Object()}});
  }
}

void PodGroupStrategy::PrepareForCreate(api::Draft& object, const StrategyContext& context) const {
  if (api::Draft* spec = object.Find("spec")) DropClaims(*spec, Value(), context);
}

void PodGroupStrategy::PrepareForUpdate(api::Draft& object, Value before,
                                        std::string_view subresource,
                                        const StrategyContext& context) const {
  if (!subresource.empty()) return;
  if (api::Draft* spec = object.Find("spec")) DropClaims(*spec, before["spec"], context);
}

FieldErrors PodGroupStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  const Value spec = object["spec"];
  CheckGroup(spec, "spec", errors);
  if (!spec["parentCompositePodGroupName"].str().empty() && !spec["workloadRef"].has_value()) {
    errors.push_back(
        Required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"));
  }
  return errors;
}

FieldErrors PodGroupStrategy::ValidateUpdate(Value object, Value before,
                                             std::string_view subresource,
                                             const StrategyContext& context) const {
  FieldErrors errors;
  if (subresource.empty()) {
    errors = Validate(object, context);
    CheckPolicyChange(object["spec"], before["spec"], "spec", errors);
    return errors;
  }
  std::size_t index = 0;
  for (const Value status : object["status"]["resourceClaimStatuses"].elements()) {
    const std::string path = StrCat("status.resourceClaimStatuses[", index++, "].name");
    bool known = false;
    for (const Value claim : object["spec"]["resourceClaims"].elements()) {
      known = known || claim["name"].str() == status["name"].str();
    }
    if (!known) {
      errors.push_back(Invalid(path, status["name"].str(),
                               "must match the name of an entry in `spec.resourceClaims`"));
    }
  }
  return errors;
}

void WorkloadStrategy::PrepareForCreate(api::Draft& object, const StrategyContext& context) const {
  DropFromTemplates(object, Value(), context);
}

void WorkloadStrategy::PrepareForUpdate(api::Draft& object, Value before, std::string_view,
                                        const StrategyContext& context) const {
  DropFromTemplates(object, before, context);
}

FieldErrors WorkloadStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  const Value spec = object["spec"];
  CheckUnion(spec, "spec", "podGroupTemplates", "compositePodGroupTemplates", errors);
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value each : spec["podGroupTemplates"].elements()) {
    const std::string path = StrCat("spec.podGroupTemplates[", index++, "]");
    if (!names.insert(each["name"].str()).second) {
      errors.push_back(Duplicate(path, each["name"].str()));
    }
    CheckGroup(each, path, errors);
  }
  if (!spec["compositePodGroupTemplates"].empty()) {
    errors.push_back(Forbidden("spec.compositePodGroupTemplates",
                               "requires the feature gate CompositePodGroup, which this server "
                               "does not have"));
  }
  return errors;
}

FieldErrors WorkloadStrategy::ValidateUpdate(Value object, Value before, std::string_view,
                                             const StrategyContext& context) const {
  FieldErrors errors = Validate(object, context);
  const Value now = object["spec"]["podGroupTemplates"];
  const Value then = before["spec"]["podGroupTemplates"];
  if (now.size() != then.size()) {
    errors.push_back(Forbidden("spec.podGroupTemplates", "items may not be added or removed"));
    return errors;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string path = StrCat("spec.podGroupTemplates[", i, "]");
    if (now.at(i)["name"].str() != then.at(i)["name"].str()) {
      errors.push_back(Forbidden("spec.podGroupTemplates", "items may not be added or removed"));
    }
    CheckPolicyChange(now.at(i), then.at(i), path, errors);
  }
  return errors;
}

}  // namespace drakkar::apiserver
