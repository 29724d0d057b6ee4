#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/claim.h"
#include "device/slice.h"

namespace drakkar::allocator {

// What a request consumes of a device's capacities.
struct CapacityNeed {
  enum class Kind {
    kFits,     // `amounts` are within the policies and, on an unused device, within the values
    kTooBig,   // within the policies, but more than the device has
    kRefused,  // a capacity the device lacks, or an amount its policy does not allow
    kFatal,    // an amount that cannot be computed: ends the attempt
  };
  Kind kind = Kind::kFits;
  std::vector<api::Quantity> amounts;  // parallel to the device's capacities
  std::string error;                   // if kFatal: `capacity "x": ...`
};

// `requests` sorted by name, or null for none. `fractional` allows ranges in milli units.
CapacityNeed ComputeCapacityNeed(const std::vector<device::Capacity>& capacities,
                                 const std::vector<device::CapacityRequest>* requests,
                                 bool fractional);

}  // namespace drakkar::allocator
