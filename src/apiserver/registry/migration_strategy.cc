#include "apiserver/registry/migration_strategy.h"

#include <algorithm>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/findings.h"
#include "apiserver/validation/resource_rules.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

constexpr std::string_view kVersion = "status.resourceVersion";
constexpr std::string_view kConditions = "status.conditions";

// A version that a list can have: no zero, and no other way to write a number.
bool IsVersion(std::string_view text) {
  return !text.empty() && text.front() != '0' && std::ranges::all_of(text, IsDigit);
}

bool Holds(Value object, std::string_view type) {
  for (const Value condition : object["status"]["conditions"].elements()) {
    if (condition["type"].str() == type) return condition["status"].str() == "True";
  }
  return false;
}

FieldErrors ValidateStatus(Value object, Value before) {
  const Value conditions = object["status"]["conditions"];
  const std::string_view version = object["status"]["resourceVersion"].str();
  const std::string_view former = before["status"]["resourceVersion"].str();
  FieldErrors errors;
  if (!version.empty() && !IsVersion(version)) {
    errors.push_back(
        Invalid(kVersion, version, StrCat("resource version is not well formed: ", version)));
  }
  Findings found;
  CheckConditions(found, api::FieldPath("status").Child("conditions"), conditions);
  errors.Append(PlainErrors(found));
  if (!former.empty() && former != version) {
    errors.push_back(Invalid(kVersion, version, "field is immutable"));
  }
  const auto refuse = [&](std::string_view why) {
    errors.push_back(Invalid(kConditions, conditions, why));
  };
  if (Holds(object, "Succeeded") && Holds(object, "Failed")) {
    refuse("Both success and failed conditions cannot be true at the same time");
  }
  if (Holds(before, "Succeeded") && !Holds(object, "Succeeded")) {
    refuse("Success condition cannot be set to false once it is true");
  }
  if (Holds(before, "Failed") && !Holds(object, "Failed")) {
    refuse("Failed condition cannot be set to false once it is true");
  }
  return errors;
}

}  // namespace

FieldErrors StorageVersionMigrationStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  const std::string_view resource = object["spec"]["resource"]["resource"].str();
  if (resource.empty()) {
    errors.push_back(Required("spec.resource.resource", "resource is required to be set"));
  } else if (const api::Problems problems = api::CheckDns1035Label(resource); !problems.empty()) {
    errors.push_back(Invalid("spec.resource.resource", resource, Join(problems, ",")));
  }
  return errors;
}

FieldErrors StorageVersionMigrationStrategy::ValidateUpdate(Value object, Value before,
                                                            std::string_view subresource,
                                                            const StrategyContext& context) const {
  return subresource == "status" ? ValidateStatus(object, before) : Validate(object, context);
}

}  // namespace drakkar::apiserver
