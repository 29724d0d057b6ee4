#include "apiserver/registry/resource_strategies.h"

#include "api/meta/time.h"
#include "apiserver/conversion/resource_defaults.h"
#include "apiserver/registry/resource_authorization.h"
#include "apiserver/registry/resource_fields.h"
#include "apiserver/validation/claim_template.h"
#include "apiserver/validation/declared_rules.h"
#include "apiserver/validation/device_class.h"
#include "apiserver/validation/device_taint_rule.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_slice.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldPath;
using api::Value;

api::FieldErrors Merged(const Findings& handwritten, const Findings& declared,
                        const StrategyContext& context) {
  return MergeFindings(handwritten, declared,
                       context.gates.Enabled(Gate::kDeclarativeValidationBeta), context.version);
}

}  // namespace

void ResourceStrategy::Default(Draft& object, const StrategyContext& context) const {
  SetResourceDefaults(object, context.version, context.clock.Now());
}

void DeviceClassStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  DropDisabledClassFields(object, Value(), context.gates);
}

void DeviceClassStrategy::PrepareForUpdate(Draft& object, Value before, std::string_view,
                                           const StrategyContext& context) const {
  DropDisabledClassFields(object, before, context.gates);
}

api::FieldErrors DeviceClassStrategy::Validate(Value object, const StrategyContext& context) const {
  return Merged(CheckDeviceClass(object, Value(), context.gates),
                DeclaredForDeviceClass(object, Value()), context);
}

api::FieldErrors DeviceClassStrategy::ValidateUpdate(Value object, Value before, std::string_view,
                                                     const StrategyContext& context) const {
  return Merged(CheckDeviceClass(object, before, context.gates),
                DeclaredForDeviceClass(object, before), context);
}

void ResourceClaimStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  object["status"] = Draft::Object();
  DropDisabledClaimSpecFields(object["spec"], Value(), context.gates);
}

void ResourceClaimStrategy::PrepareForUpdate(Draft& object, Value before,
                                             std::string_view subresource,
                                             const StrategyContext& context) const {
  if (subresource != "status") {
    DropDisabledClaimSpecFields(object["spec"], before["spec"], context.gates);
    return;
  }
  DropDisabledClaimStatusFields(object, before, context.gates);
  DropDeallocatedDevices(object, before, context.gates);
}

api::FieldErrors ResourceClaimStrategy::Validate(Value object,
                                                 const StrategyContext& context) const {
  Findings found;
  CheckAdminAccess(found, object["spec"]["devices"]["requests"],
                   object["metadata"]["namespace"].str(), context);
  found.Append(CheckResourceClaim(object, context.gates));
  return Merged(found, DeclaredForResourceClaim(object, Value()), context);
}

api::FieldErrors ResourceClaimStrategy::ValidateUpdate(Value object, Value before,
                                                       std::string_view subresource,
                                                       const StrategyContext& context) const {
  const Findings declared = DeclaredForResourceClaim(object, before);
  if (subresource != "status") {
    return Merged(CheckResourceClaimUpdate(object, before), declared, context);
  }
  Findings found;
  CheckAdminAccessStatus(found, object, before, context);
  if (context.gates.Enabled(Gate::kDRAResourceClaimGranularStatusAuthorization)) {
    CheckBindingPermission(found, FieldPath("status").Child("allocation"), object["status"],
                           before["status"], context);
    // With the allocation go the statuses of its devices: nobody needs to be asked.
    if (context.gates.Enabled(Gate::kDRAResourceClaimDeviceStatus) &&
        object["status"]["allocation"].has_value()) {
      CheckDriverPermission(found, FieldPath("status").Child("devices"), object["status"],
                            before["status"], object["metadata"]["namespace"].str(), context);
    }
  }
  found.Append(CheckResourceClaimStatus(object, before, context.gates));
  return Merged(found, declared, context);
}

void ResourceClaimTemplateStrategy::PrepareForCreate(Draft& object,
                                                     const StrategyContext& context) const {
  DropDisabledClaimSpecFields(object["spec"]["spec"], Value(), context.gates);
}

void ResourceClaimTemplateStrategy::PrepareForUpdate(Draft& object, Value before, std::string_view,
                                                     const StrategyContext& context) const {
  DropDisabledClaimSpecFields(object["spec"]["spec"], before["spec"]["spec"], context.gates);
}

api::FieldErrors ResourceClaimTemplateStrategy::Validate(Value object,
                                                         const StrategyContext& context) const {
  Findings found;
  CheckAdminAccess(found, object["spec"]["spec"]["devices"]["requests"],
                   object["metadata"]["namespace"].str(), context);
  found.Append(CheckClaimTemplate(object, context.gates));
  return Merged(found, DeclaredForClaimTemplate(object, Value()), context);
}

api::FieldErrors ResourceClaimTemplateStrategy::ValidateUpdate(
    Value object, Value before, std::string_view, const StrategyContext& context) const {
  Findings found = CheckClaimTemplate(object, context.gates);
  found.Append(CheckClaimTemplateUpdate(object, before));
  return Merged(found, DeclaredForClaimTemplate(object, before), context);
}

void ResourceSliceStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  DropDisabledSliceFields(object, Value(), context.gates);
}

void ResourceSliceStrategy::PrepareForUpdate(Draft& object, Value before, std::string_view,
                                             const StrategyContext& context) const {
  // What was asked for counts as a change, even if a disabled gate takes it away again.
  const api::TreePtr asked = object.Freeze();
  if (!SemanticEqual(asked->root()["spec"], before["spec"], "ResourceSliceSpec")) {
    object["metadata"]["generation"] = before["metadata"]["generation"].integer() + 1;
  }
  DropDisabledSliceFields(object, before, context.gates);
}

api::FieldErrors ResourceSliceStrategy::Validate(Value object,
                                                 const StrategyContext& context) const {
  return Merged(CheckResourceSlice(object, Value(), context.gates),
                DeclaredForResourceSlice(object, Value(), context.gates), context);
}

api::FieldErrors ResourceSliceStrategy::ValidateUpdate(Value object, Value before, std::string_view,
                                                       const StrategyContext& context) const {
  return Merged(CheckResourceSlice(object, before, context.gates),
                DeclaredForResourceSlice(object, before, context.gates), context);
}

std::vector<std::string> ResourceSliceStrategy::Warnings(Value object,
                                                         const StrategyContext&) const {
  const std::string_view driver = object["spec"]["driver"].str();
  if (ToLower(driver) == driver) return {};
  return {StrCat("spec.driver: driver names should be lowercase; ", Quote(driver),
                 " contains uppercase characters")};
}

void DeviceTaintRuleStrategy::PrepareForCreate(Draft& object, const StrategyContext&) const {
  object["status"] = Draft::Object();
}

void DeviceTaintRuleStrategy::PrepareForUpdate(Draft& object, Value before,
                                               std::string_view subresource,
                                               const StrategyContext& context) const {
  if (subresource == "status") return;
  Draft* spec = object.Find("spec");
  Draft* taint = spec == nullptr || !spec->is_object() ? nullptr : spec->Find("taint");
  if (taint == nullptr || !taint->is_object()) return;
  // The time tells since when this effect holds, so that tolerations count from there.
  const Value old = before["spec"]["taint"];
  if ((*taint)["effect"].str() != old["effect"].str() &&
      (*taint)["timeAdded"].str() == old["timeAdded"].str()) {
    (*taint)["timeAdded"] = api::FormatTime(context.clock.Now());
  }
}

api::FieldErrors DeviceTaintRuleStrategy::Validate(Value object,
                                                   const StrategyContext& context) const {
  return Merged(CheckDeviceTaintRule(object, Value()), DeclaredForDeviceTaintRule(object, Value()),
                context);
}

api::FieldErrors DeviceTaintRuleStrategy::ValidateUpdate(Value object, Value before,
                                                         std::string_view subresource,
                                                         const StrategyContext& context) const {
  const Findings found = subresource == "status" ? CheckDeviceTaintRuleStatus(object)
                                                 : CheckDeviceTaintRule(object, before);
  return Merged(found, DeclaredForDeviceTaintRule(object, before), context);
}

void PoolStatusRequestStrategy::PrepareForCreate(Draft& object,
                                                 const StrategyContext& context) const {
  object.Remove("status");
  DropDisabledPoolRequestFields(object, Value(), context.gates);
}

void PoolStatusRequestStrategy::PrepareForUpdate(Draft& object, Value before,
                                                 std::string_view subresource,
                                                 const StrategyContext& context) const {
  if (subresource != "status") DropDisabledPoolRequestFields(object, before, context.gates);
}

api::FieldErrors PoolStatusRequestStrategy::Validate(Value object,
                                                     const StrategyContext& context) const {
  return Merged({}, DeclaredForPoolStatusRequest(object, Value(), context.gates), context);
}

api::FieldErrors PoolStatusRequestStrategy::ValidateUpdate(Value object, Value before,
                                                           std::string_view subresource,
                                                           const StrategyContext& context) const {
  Findings found;
  if (subresource == "status") found = CheckPoolStatusRequestStatus(object, before);
  return Merged(found, DeclaredForPoolStatusRequest(object, before, context.gates), context);
}

}  // namespace drakkar::apiserver
