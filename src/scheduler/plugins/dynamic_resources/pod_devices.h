#pragma once

#include <string>
#include <vector>

#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

namespace drakkar::scheduler {

struct DynamicResources::PodDevices final : PluginState {
  struct Item {
    std::string key;
    std::string uid;
    bool to_allocate = false;
    bool unavailable = false;  // allocated, but not usable on some node
    AllocationPtr chosen;      // set by Reserve
  };
  std::vector<Item> items;

  allocator::Problem problem;  // of those to allocate, in their order
  bool has_problem = false;
  bool avoiding = false;       // devices that failed for the pod were left out
  NodeSet unavailable;         // nodes on which an allocated claim cannot be used

  MonotonicTime pre_bind_started{};
  MonotonicTime wait_started{};
  bool needs_conditions = false;  // some device has them
  bool timed_out = false;
};

// While it lives, the devices that failed for the pod count as taken.
class DynamicResources::Avoiding {
 public:
  Avoiding(DynamicResources& plugin, const std::string& pod_uid)
      : allocated_(plugin.options_.devices.allocated()) {
    const auto found = plugin.avoided_.find(pod_uid);
    if (found == plugin.avoided_.end() || found->second.in_this_round.empty()) return;
    devices_ = &found->second.in_this_round;
    for (const device::DeviceId& id : *devices_) allocated_.AddExclusive(id);
  }
  ~Avoiding() {
    if (devices_ == nullptr) return;
    for (const device::DeviceId& id : *devices_) allocated_.RemoveExclusive(id);
  }
  Avoiding(const Avoiding&) = delete;
  Avoiding& operator=(const Avoiding&) = delete;
  bool any() const { return devices_ != nullptr; }

 private:
  device::AllocatedState& allocated_;
  const std::set<device::DeviceId>* devices_ = nullptr;
};

inline DynamicResources::PodDevices& DynamicResources::StateOf(Cycle& cycle) const {
  return static_cast<PodDevices&>(*cycle.states[id]);
}

}  // namespace drakkar::scheduler
