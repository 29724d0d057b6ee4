#include "scheduler/binding/binding_conditions.h"

#include "base/text/text.h"
#include "claims/claim.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

Value FindConditions(const api::Object& claim, const device::DeviceResult& result) {
  return claims::FindDeviceStatus(claim.root(), result.id.driver, result.id.pool, result.id.device,
                                  result.share_id)["conditions"];
}

Value FindCondition(Value conditions, std::string_view type) {
  for (Value condition : conditions.elements()) {
    if (condition["type"].str() == type) return condition;
  }
  return Value();
}

}  // namespace

BindingState EvaluateBinding(const CachedClaim& claim) {
  if (claim.allocation == nullptr) return {};
  return EvaluateBinding(*claim.latest, *claim.allocation);
}

BindingState EvaluateBinding(const api::Object& claim, const device::AllocationResult& allocation) {
  BindingState state;
  for (const device::DeviceResult& result : allocation.results) {
    if (result.binding_conditions.empty() && result.binding_failure_conditions.empty()) continue;
    const Value conditions = FindConditions(claim, result);
    for (const std::string& type : result.binding_failure_conditions) {
      const Value condition = FindCondition(conditions, type);
      if (condition["status"].str() != "True") continue;
      return {BindingState::Kind::kFailed, result.id, type, std::string(condition["reason"].str()),
              std::string(condition["message"].str())};
    }
    if (state.kind == BindingState::Kind::kNone) state.kind = BindingState::Kind::kReady;
    if (state.kind == BindingState::Kind::kWaiting) continue;
    for (const std::string& type : result.binding_conditions) {
      const Value condition = FindCondition(conditions, type);
      if (condition["status"].str() == "True") continue;
      state = {BindingState::Kind::kWaiting, result.id, type,
               std::string(condition["reason"].str()), std::string(condition["message"].str())};
      break;
    }
  }
  return state;
}

std::vector<PendingCondition> PendingConditions(const CachedClaim& claim) {
  std::vector<PendingCondition> pending;
  if (claim.allocation == nullptr) return pending;
  for (const device::DeviceResult& result : claim.allocation->results) {
    const Value conditions = FindConditions(*claim.latest, result);
    for (const std::string& type : result.binding_conditions) {
      if (FindCondition(conditions, type)["status"].str() == "True") continue;
      pending.push_back({result.id, type});
    }
  }
  return pending;
}

std::string DescribeBindingFailure(const CachedClaim& claim, const BindingState& state) {
  return StrCat("device binding failed: claim=", claim.latest->name(),
                ", device=", state.device.ToString(), ", condition=", state.condition,
                ", reason=", state.reason, ", message=", Quote(state.message));
}

std::string DescribeBindingTimeout(const CachedClaim& claim, const BindingState& state) {
  return StrCat("device binding timeout: claim=", claim.latest->name(),
                ", device=", state.device.ToString(), ", condition=", state.condition);
}

}  // namespace drakkar::scheduler
