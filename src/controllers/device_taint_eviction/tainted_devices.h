#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "device/device_id.h"
#include "device/taint_rule.h"
#include "device/toleration.h"

namespace drakkar::controllers {

// When a pod must be evicted, and the DeviceTaintRules that demand it by then or later.
struct DeviceEviction {
  WallTime at{};
  std::set<std::string> rules;  // by name; empty if only taints in ResourceSlices demand it

  bool operator==(const DeviceEviction&) const = default;
};

// The NoExecute taints of all devices: those in the ResourceSlices of each pool's newest generation
// and those that DeviceTaintRules add. Pure. Grows with the tainted devices and the rules; of other
// slices only pool and generation are kept.
class TaintedDevices {
 public:
  // Each returns whether an allocated device may have gained or lost a taint.
  bool SetSlice(const api::Object& slice);
  bool RemoveSlice(std::string_view name);
  bool SetRule(const api::Object& rule);
  bool RemoveRule(std::string_view name);

  // False: no claim is affected, so there is no need to look at any.
  bool any() const { return tainted_slices_ > 0 || !rules_.empty(); }

  // When a pod that uses the claim must be evicted. nullopt: it may stay.
  std::optional<DeviceEviction> EvictionOf(api::Value claim) const;

  // How many of the claim's devices a rule selects.
  static std::size_t CountSelected(const device::TaintRule& rule, api::Value claim);

 private:
  struct Slice {
    device::PoolId pool;
    std::int64_t generation = 0;
    std::map<std::string, std::vector<device::Taint>, std::less<>> taints;  // by device
  };
  void Unlink(const std::string& name, const Slice& slice);
  void AddTaintsOf(const device::DeviceId& id, const std::vector<device::Toleration>& tolerations,
                   std::optional<DeviceEviction>& eviction) const;

  std::map<std::string, Slice, std::less<>> slices_;  // by name
  // The names of each pool's slices, by generation.
  std::map<device::PoolId, std::map<std::int64_t, std::set<std::string>>> pools_;
  std::map<std::string, device::TaintRule, std::less<>> rules_;  // NoExecute only
  std::size_t tainted_slices_ = 0;
};

}  // namespace drakkar::controllers
