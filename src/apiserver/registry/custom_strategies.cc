#include "apiserver/registry/custom_strategies.h"

#include <optional>
#include <utility>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "apiserver/custom/definition_rules.h"
#include "apiserver/custom/json_values.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// A name that another definition of the group already uses.
struct Conflict {
  std::string_view reason;
  std::string name;
  int rank = 0;  // the first kind of name that conflicts is reported
};

bool HasResourceName(Value names, std::string_view wanted) {
  if (names["plural"].str() == wanted || names["singular"].str() == wanted) return true;
  for (Value each : names["shortNames"].elements()) {
    if (each.str() == wanted) return true;
  }
  return false;
}

bool HasKindName(Value names, std::string_view wanted) {
  return names["kind"].str() == wanted || names["listKind"].str() == wanted;
}

std::optional<Conflict> FindConflict(Value definition, const StrategyContext& context) {
  std::optional<Conflict> found;
  const auto report = [&](int rank, std::string_view reason, std::string_view name) {
    if (!found || rank < found->rank) found = Conflict{reason, std::string(name), rank};
  };
  const std::string_view group = definition["spec"]["group"].str();
  const std::string_view own_name = definition["metadata"]["name"].str();
  const Value names = definition["spec"]["names"];
  context.visit(kExtensionsGroup, kDefinitionsPlural, "", [&](const api::ObjectPtr& other) {
    if (other->name() == own_name || other->root()["spec"]["group"].str() != group) return;
    const Value taken = other->root()["status"]["acceptedNames"];
    int rank = 0;
    for (const auto& [field, reason] :
         {std::pair(api::FieldName("plural"), "PluralConflict"),
          std::pair(api::FieldName("singular"), "SingularConflict")}) {
      const std::string_view name = names[field].str();
      if (HasResourceName(taken, name)) report(rank, reason, name);
      ++rank;
    }
    for (Value each : names["shortNames"].elements()) {
      if (HasResourceName(taken, each.str())) report(rank, "ShortNamesConflict", each.str());
    }
    ++rank;
    for (const auto& [field, reason] :
         {std::pair(api::FieldName("kind"), "KindConflict"),
          std::pair(api::FieldName("listKind"), "ListKindConflict")}) {
      const std::string_view name = names[field].str();
      if (HasKindName(taken, name)) report(rank, reason, name);
      ++rank;
    }
  });
  return found;
}

void SetCondition(Draft& conditions, std::string_view type, bool is_true, std::string_view reason,
                  std::string_view message, std::string_view now) {
  const std::string_view status = is_true ? "True" : "False";
  Draft* found = nullptr;
  if (!conditions.is_array()) conditions = Draft::Array();
  for (Draft& each : conditions.MutableElements()) {
    if (each["type"].str() == type) found = &each;
  }
  if (found == nullptr) found = &conditions.Append(Draft({{"type", type}}));
  if ((*found)["status"].str() != status) (*found)["lastTransitionTime"] = now;
  (*found)["status"] = status;
  (*found)["reason"] = reason;
  (*found)["message"] = message;
}

void UpdateStatus(Draft& object, const StrategyContext& context) {
  const std::string now = api::FormatTime(context.clock.Now());
  const api::TreePtr frozen = object.Freeze();
  const Value definition = frozen->root();
  const Value names = definition["spec"]["names"];
  const std::optional<Conflict> conflict = FindConflict(definition, context);
  const bool was_established = IsEstablished(definition);
  Draft& status = object["status"];
  Draft& conditions = status["conditions"];
  if (conflict) {
    SetCondition(conditions, "NamesAccepted", false, conflict->reason,
                 StrCat(Quote(conflict->name), " is already in use"), now);
    if (!was_established) {
      SetCondition(conditions, "Established", false, "NotAccepted", "not all names are accepted",
                   now);
    }
  } else {
    SetCondition(conditions, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
    if (!was_established) {
      SetCondition(conditions, "Established", true, "InitialNamesAccepted",
                   "the initial names have been accepted", now);
    }
    status["acceptedNames"] = Draft(api::CopyTree(names));
  }
  if (!status["acceptedNames"].is_object()) {
    status["acceptedNames"] = {{"plural", ""}, {"kind", ""}};
  }
  for (Value version : definition["spec"]["versions"].elements()) {
    if (!version["storage"].boolean()) continue;
    const std::string_view name = version["name"].str();
    Draft& stored = status["storedVersions"];
    if (!stored.is_array()) stored = Draft::Array();
    bool is_there = false;
    for (Draft& each : stored.MutableElements()) is_there = is_there || each.str() == name;
    if (!is_there) stored.Append(name);
  }
}

void AddFinalizer(Draft& object) {
  Draft& metadata = object["metadata"];
  if (metadata.Has("deletionTimestamp")) return;
  Draft& finalizers = metadata["finalizers"];
  if (finalizers.is_array()) {
    for (Draft& each : finalizers.MutableElements()) {
      if (each.str() == kCleanupFinalizer) return;
    }
  }
  finalizers.Append(kCleanupFinalizer);
}

const CustomVersion* VersionOf(const api::KindFamily& family, std::string_view version) {
  for (const auto& each : static_cast<const CustomDefinition&>(family).custom_versions()) {
    if (each->kind().version == version) return each.get();
  }
  return nullptr;
}

}  // namespace

bool IsEstablished(Value definition) {
  for (Value condition : definition["status"]["conditions"].elements()) {
    if (condition["type"].str() == "Established") return condition["status"].str() == "True";
  }
  return false;
}

void DefinitionStrategy::Default(Draft& object, const StrategyContext&) const {
  Draft& names = object["spec"]["names"];
  const std::string kind(names["kind"].str());
  if (names["singular"].str().empty()) names["singular"] = Lower(kind);
  if (names["listKind"].str().empty() && !kind.empty()) names["listKind"] = StrCat(kind, "List");
}

void DefinitionStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  object["status"] = Draft::Object();
  UpdateStatus(object, context);
  AddFinalizer(object);
}

void DefinitionStrategy::PrepareForUpdate(Draft& object, Value, std::string_view subresource,
                                          const StrategyContext& context) const {
  if (!subresource.empty()) return;
  UpdateStatus(object, context);
  AddFinalizer(object);
}

FieldErrors DefinitionStrategy::Validate(Value object, const StrategyContext&) const {
  return ValidateDefinition(object, Value());
}

FieldErrors DefinitionStrategy::ValidateUpdate(Value object, Value before,
                                               std::string_view subresource,
                                               const StrategyContext&) const {
  if (subresource == "status") return {};
  return ValidateDefinition(object, before);
}

std::vector<std::string> DefinitionStrategy::Warnings(Value object, const StrategyContext&) const {
  std::vector<std::string> warnings;
  if (object["spec"]["conversion"]["strategy"].str() == "Webhook") {
    warnings.emplace_back(
        "spec.conversion: the webhook is not called, because there is only one version");
  }
  return warnings;
}

void CustomStrategy::Default(Draft& object, const StrategyContext& context) const {
  if (const CustomVersion* version = VersionOf(family_, context.version)) {
    ApplyJsonDefaults(object, version->schema());
  }
}

FieldErrors CustomStrategy::Validate(Value object, const StrategyContext& context) const {
  FieldErrors errors;
  const CustomVersion* version = VersionOf(family_, context.version);
  if (version == nullptr) return errors;
  CheckJsonValue(errors, api::FieldPath(), object, Value(), version->schema());
  // Rules are evaluated only on values of the right types.
  if (errors.empty()) version->rules().Check(errors, object, Value());
  return errors;
}

FieldErrors CustomStrategy::ValidateUpdate(Value object, Value before, std::string_view,
                                           const StrategyContext& context) const {
  FieldErrors errors;
  const CustomVersion* version = VersionOf(family_, context.version);
  if (version == nullptr) return errors;
  CheckJsonValue(errors, api::FieldPath(), object, before, version->schema());
  if (errors.empty()) version->rules().Check(errors, object, before);
  return errors;
}

std::vector<std::string> CustomStrategy::Warnings(Value, const StrategyContext& context) const {
  const CustomVersion* version = VersionOf(family_, context.version);
  if (version == nullptr || version->deprecation().empty()) return {};
  return {version->deprecation()};
}

}  // namespace drakkar::apiserver
