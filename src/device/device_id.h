#pragma once

#include <compare>
#include <string>

namespace drakkar::device {

// A pool is named by its driver and is unique only under it.
struct PoolId {
  std::string driver;
  std::string pool;

  std::string ToString() const;  // "driver/pool"
  auto operator<=>(const PoolId&) const = default;
};

struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;

  PoolId pool_id() const { return {driver, pool}; }
  std::string ToString() const;  // "driver/pool/device"
  auto operator<=>(const DeviceId&) const = default;
};

}  // namespace drakkar::device
