#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device_id.h"
#include "scheduler/cache/claim_cache.h"

namespace drakkar::scheduler {

// Where an allocated claim stands with the conditions of its devices (KEP-5007).
struct BindingState {
  enum class Kind : std::uint8_t {
    kNone,     // no device has conditions
    kReady,    // all are True
    kWaiting,  // some are not
    kFailed,   // a failure condition is True
  };
  Kind kind = Kind::kNone;
  // The device and condition at fault or waited for, and what its driver says about it.
  device::DeviceId device;
  std::string condition;
  std::string reason;
  std::string message;
};

// Failure conditions are looked at first and win. A device is found in status.devices by driver,
// pool, name and share; one that is not there, or a condition that is not, counts as not True.
BindingState EvaluateBinding(const CachedClaim& claim);
BindingState EvaluateBinding(const api::Object& claim, const device::AllocationResult& allocation);

// The conditions of a claim that are not True yet.
struct PendingCondition {
  device::DeviceId device;
  std::string condition;
};
std::vector<PendingCondition> PendingConditions(const CachedClaim& claim);

// "device binding failed: claim=..., device=..., condition=..., reason=..., message=..."
std::string DescribeBindingFailure(const CachedClaim& claim, const BindingState& state);
// "device binding timeout: claim=..., device=..., condition=..."
std::string DescribeBindingTimeout(const CachedClaim& claim, const BindingState& state);

}  // namespace drakkar::scheduler
