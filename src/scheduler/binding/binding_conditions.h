#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device_id.h"
#include "scheduler/cache/claim_cache.h"

namespace drakkar::scheduler {

// The state of an allocated claim with respect to its binding conditions (KEP-5007).
struct BindingState {
  enum class Kind : std::uint8_t {
    kNone,     // no device has conditions
    kReady,    // all are True
    kWaiting,  // some are not
    kFailed,   // a failure condition is True
  };
  Kind kind = Kind::kNone;
  // The device and condition that failed or is missing, with the reason and message of the driver.
  device::DeviceId device;
  std::string condition;
  std::string reason;
  std::string message;
};

// Failure conditions take precedence. A device is found in status.devices by driver, pool, name and
// share; a missing device or condition counts as not True.
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
