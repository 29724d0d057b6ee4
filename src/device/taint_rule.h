#pragma once

#include <optional>
#include <string>

#include "device/slice.h"

namespace drakkar::device {

// A DeviceTaintRule: adds its taint to every device that matches all criteria that are set.
struct TaintRule {
  struct DeviceSelector {
    std::optional<std::string> driver;
    std::optional<std::string> pool;
    std::optional<std::string> device;
  };

  std::string name;
  // Absent matches nothing, as the API says (the slice tracker of Kubernetes 1.37 matches
  // everything instead); present but empty matches everything.
  std::optional<DeviceSelector> selector;
  Taint taint;
  std::vector<std::string> unknown_fields;

  bool MatchesPool(const PoolId& pool) const {
    return selector && (!selector->driver || *selector->driver == pool.driver) &&
           (!selector->pool || *selector->pool == pool.pool);
  }
  bool MatchesDevice(const std::string& device) const {
    return !selector->device || *selector->device == device;
  }
};

}  // namespace drakkar::device
