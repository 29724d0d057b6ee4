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

// Shared by the kinds. Each defines how an object is prepared and validated; on create `before` is
// absent and `subresource` is "".
class ResourceStrategy : public Strategy {
 public:
  bool StatusUpdateKeepsMetadata() const final { return false; }
  void Default(Draft& object, const StrategyContext& context) const final {
    SetResourceDefaults(object, context.version, context.clock.Now());
  }
  void PrepareForCreate(Draft& object, const StrategyContext& context) const final {
    Prepare(object, Value(), "", context);
  }
  void PrepareForUpdate(Draft& object, Value before, std::string_view subresource,
                        const StrategyContext& context) const final {
    Prepare(object, before, subresource, context);
  }
  api::FieldErrors Validate(Value object, const StrategyContext& context) const final {
    return ValidateUpdate(object, Value(), "", context);
  }
  api::FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                                  const StrategyContext& context) const final {
    return MergeFindings(Check(object, before, subresource, context),
                         Declared(object, before, context),
                         context.gates.Enabled(Gate::kDeclarativeValidationBeta), context.version);
  }
  bool ReturnsDeletedObject(std::string_view) const override { return true; }

 private:
  virtual void Prepare(Draft& object, Value before, std::string_view subresource,
                       const StrategyContext& context) const = 0;
  // Errors of hand-written rules.
  virtual Findings Check(Value object, Value before, std::string_view subresource,
                         const StrategyContext& context) const = 0;
  // Errors of declared rules.
  virtual Findings Declared(Value object, Value before, const StrategyContext& context) const = 0;
};

class DeviceClassStrategy final : public ResourceStrategy {
 public:
  bool NameIsDeclared() const override { return true; }

 private:
  void Prepare(Draft& object, Value before, std::string_view,
               const StrategyContext& context) const override {
    DropDisabledClassFields(object, before, context.gates);
  }
  Findings Check(Value object, Value before, std::string_view,
                 const StrategyContext& context) const override {
    return CheckDeviceClass(object, before, context.gates);
  }
  Findings Declared(Value object, Value before, const StrategyContext&) const override {
    return DeclaredForDeviceClass(object, before);
  }
};

class ResourceClaimStrategy final : public ResourceStrategy {
  void Prepare(Draft& object, Value before, std::string_view subresource,
               const StrategyContext& context) const override {
    if (subresource == "status") {
      DropDisabledClaimStatusFields(object, before, context.gates);
      DropDeallocatedDevices(object, before, context.gates);
      return;
    }
    if (!before.has_value()) object["status"] = Draft::Object();
    DropDisabledClaimSpecFields(object["spec"], before["spec"], context.gates);
  }
  Findings Check(Value object, Value before, std::string_view subresource,
                 const StrategyContext& context) const override {
    if (subresource == "status") return CheckStatus(object, before, context);
    if (before.has_value()) return CheckResourceClaimUpdate(object, before);
    Findings found;
    CheckAdminAccess(found, object["spec"]["devices"]["requests"],
                     object["metadata"]["namespace"].str(), context);
    found.Append(CheckResourceClaim(object, context.gates));
    return found;
  }
  Findings Declared(Value object, Value before, const StrategyContext&) const override {
    return DeclaredForResourceClaim(object, before);
  }

  static Findings CheckStatus(Value object, Value before, const StrategyContext& context) {
    Findings found;
    CheckAdminAccessStatus(found, object, before, context);
    if (context.gates.Enabled(Gate::kDRAResourceClaimGranularStatusAuthorization)) {
      CheckBindingPermission(found, FieldPath("status").Child("allocation"), object["status"],
                             before["status"], context);
      // The statuses of its devices are dropped with the allocation; that needs no permission.
      if (context.gates.Enabled(Gate::kDRAResourceClaimDeviceStatus) &&
          object["status"]["allocation"].has_value()) {
        CheckDriverPermission(found, FieldPath("status").Child("devices"), object["status"],
                              before["status"], object["metadata"]["namespace"].str(), context);
      }
    }
    found.Append(CheckResourceClaimStatus(object, before, context.gates));
    return found;
  }
};

class ResourceClaimTemplateStrategy final : public ResourceStrategy {
  void Prepare(Draft& object, Value before, std::string_view,
               const StrategyContext& context) const override {
    DropDisabledClaimSpecFields(object["spec"]["spec"], before["spec"]["spec"], context.gates);
  }
  Findings Check(Value object, Value before, std::string_view,
                 const StrategyContext& context) const override {
    Findings found;
    if (!before.has_value()) {
      CheckAdminAccess(found, object["spec"]["spec"]["devices"]["requests"],
                       object["metadata"]["namespace"].str(), context);
    }
    found.Append(CheckClaimTemplate(object, context.gates));
    if (before.has_value()) found.Append(CheckClaimTemplateUpdate(object, before));
    return found;
  }
  Findings Declared(Value object, Value before, const StrategyContext&) const override {
    return DeclaredForClaimTemplate(object, before);
  }
};

class ResourceSliceStrategy final : public ResourceStrategy {
 public:
  std::vector<std::string> Warnings(Value object, const StrategyContext&) const override {
    const std::string_view driver = object["spec"]["driver"].str();
    if (ToLower(driver) == driver) return {};
    return {StrCat("spec.driver: driver names should be lowercase; ", Quote(driver),
                   " contains uppercase characters")};
  }

 private:
  void Prepare(Draft& object, Value before, std::string_view,
               const StrategyContext& context) const override {
    if (before.has_value()) {
      // A requested change counts, even if a disabled gate drops it again.
      const api::TreePtr asked = object.Freeze();
      if (!SemanticEqual(asked->root()["spec"], before["spec"], "ResourceSliceSpec")) {
        object["metadata"]["generation"] = before["metadata"]["generation"].integer() + 1;
      }
    }
    DropDisabledSliceFields(object, before, context.gates);
  }
  Findings Check(Value object, Value before, std::string_view,
                 const StrategyContext& context) const override {
    return CheckResourceSlice(object, before, context.gates);
  }
  Findings Declared(Value object, Value before, const StrategyContext& context) const override {
    return DeclaredForResourceSlice(object, before, context.gates);
  }
};

class DeviceTaintRuleStrategy final : public ResourceStrategy {
 public:
  // v1 dropped both of these older behaviours.
  bool AllowsUnconditionalUpdate(std::string_view version) const override {
    return version != "v1";
  }
  bool ReturnsDeletedObject(std::string_view version) const override { return version != "v1"; }

 private:
  void Prepare(Draft& object, Value before, std::string_view subresource,
               const StrategyContext& context) const override {
    if (!before.has_value()) {
      object["status"] = Draft::Object();
      return;
    }
    if (subresource == "status") return;
    Draft* spec = object.Find("spec");
    Draft* taint = spec == nullptr || !spec->is_object() ? nullptr : spec->Find("taint");
    if (taint == nullptr || !taint->is_object()) return;
    // If the effect changes, timeAdded is set again, because tolerationSeconds counts from it.
    const Value old = before["spec"]["taint"];
    if ((*taint)["effect"].str() != old["effect"].str() &&
        (*taint)["timeAdded"].str() == old["timeAdded"].str()) {
      (*taint)["timeAdded"] = api::FormatTime(context.clock.Now());
    }
  }
  Findings Check(Value object, Value before, std::string_view subresource,
                 const StrategyContext&) const override {
    return subresource == "status" ? CheckDeviceTaintRuleStatus(object)
                                   : CheckDeviceTaintRule(object, before);
  }
  Findings Declared(Value object, Value before, const StrategyContext&) const override {
    return DeclaredForDeviceTaintRule(object, before);
  }
};

class PoolStatusRequestStrategy final : public ResourceStrategy {
 public:
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }

 private:
  void Prepare(Draft& object, Value before, std::string_view subresource,
               const StrategyContext& context) const override {
    if (!before.has_value()) object.Remove("status");
    if (subresource != "status") DropDisabledPoolRequestFields(object, before, context.gates);
  }
  Findings Check(Value object, Value before, std::string_view subresource,
                 const StrategyContext&) const override {
    return subresource == "status" ? CheckPoolStatusRequestStatus(object, before) : Findings();
  }
  Findings Declared(Value object, Value before, const StrategyContext& context) const override {
    return DeclaredForPoolStatusRequest(object, before, context.gates);
  }
};

}  // namespace

const Strategy* ResourceStrategyFor(std::string_view kind) {
  static const DeviceClassStrategy device_class;
  static const ResourceClaimStrategy claim;
  static const ResourceClaimTemplateStrategy claim_template;
  static const ResourceSliceStrategy slice;
  static const DeviceTaintRuleStrategy taint_rule;
  static const PoolStatusRequestStrategy pool_request;
  if (kind == "DeviceClass") return &device_class;
  if (kind == "ResourceClaim") return &claim;
  if (kind == "ResourceClaimTemplate") return &claim_template;
  if (kind == "ResourceSlice") return &slice;
  if (kind == "DeviceTaintRule") return &taint_rule;
  if (kind == "ResourcePoolStatusRequest") return &pool_request;
  return nullptr;
}

}  // namespace drakkar::apiserver
