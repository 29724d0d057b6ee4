#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

// The limits of the API that decide where a pool is split.
constexpr std::size_t kMaxDevicesPerSlice = 128;
// If any device of the slice has taints, counters or attributes with lists.
constexpr std::size_t kMaxComplexDevicesPerSlice = 64;
constexpr std::size_t kMaxCounterSetsPerSlice = 8;
// Ours: a pool of a million devices is a mistake. Larger ones are refused.
constexpr std::size_t kMaxSlicesPerPool = 8'192;

// A pool as it should be on the server: the spec of each ResourceSlice in canonical form, without
// driver, pool and nodeName, which depend on what is there already.
struct DesiredPool {
  std::int64_t generation = 0;
  std::vector<api::TreePtr> specs;  // at least one
};

// Splits, renders and checks. Refused: names that come twice in a pool, counters that no counter
// set of the pool has, fields the API does not know, values of a wrong form, and a selection of
// nodes that does not fit (`on_node` is whether the driver publishes for one node).
Result<std::map<std::string, DesiredPool>> MakeDesiredPools(const DriverResources& resources,
                                                            bool on_node);

}  // namespace drakkar::driver
