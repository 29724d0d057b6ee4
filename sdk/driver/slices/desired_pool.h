#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

// The API limits that determine where a pool is split.
constexpr std::size_t kMaxDevicesPerSlice = 128;
// If any device in the slice has taints, counters or list attributes.
constexpr std::size_t kMaxComplexDevicesPerSlice = 64;
constexpr std::size_t kMaxCounterSetsPerSlice = 8;
// Our own limit: a pool of a million devices is a mistake. Larger ones are rejected.
constexpr std::size_t kMaxSlicesPerPool = 8'192;

// The desired state of a pool: the spec of each ResourceSlice in canonical form, without driver,
// pool and nodeName, which depend on the existing slices.
struct DesiredPool {
  std::int64_t generation = 0;
  std::vector<api::TreePtr> specs;  // at least one
};

// Splits, renders and checks the pools. Rejects duplicate names in a pool, counters that the pool's
// counter sets lack, unknown fields, malformed values, and a node selection that does not fit
// (`on_node`: the driver publishes for one node).
Result<std::map<std::string, DesiredPool>> MakeDesiredPools(const DriverResources& resources,
                                                            bool on_node);

}  // namespace drakkar::driver
