#pragma once

#include <utility>
#include <vector>

#include "device/allocated_state.h"

namespace drakkar::scheduler {

// Prevents the allocator from allocating these devices during its lifetime. The devices must
// outlive it.
class BarredDevices {
 public:
  BarredDevices(device::AllocatedState& allocated, std::vector<const device::DeviceId*> devices)
      : allocated_(allocated), devices_(std::move(devices)) {
    for (const device::DeviceId* id : devices_) allocated_.Bar(*id);
  }
  ~BarredDevices() {
    for (const device::DeviceId* id : devices_) allocated_.Unbar(*id);
  }
  BarredDevices(const BarredDevices&) = delete;
  BarredDevices& operator=(const BarredDevices&) = delete;

 private:
  device::AllocatedState& allocated_;
  const std::vector<const device::DeviceId*> devices_;
};

}  // namespace drakkar::scheduler
