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
  bool avoiding = false;  // devices that failed for the pod were left out
  NodeSet unavailable;    // nodes on which an allocated claim cannot be used

  MonotonicTime pre_bind_started{};
  MonotonicTime wait_started{};
  bool needs_conditions = false;  // some device has them
  bool timed_out = false;
  bool cancelled = false;   // the pod is gone
  bool claim_gone = false;  // or is being deleted
  std::string node_lost;    // why the pod cannot go to its node any more
};

// While it lives, nobody gets the devices that failed for the pod in this round.
class DynamicResources::Avoiding {
 public:
  Avoiding(DynamicResources& plugin, const std::string& pod_uid)
      : allocated_(plugin.options_.devices.allocated()) {
    const auto found = plugin.avoided_.find(pod_uid);
    if (found == plugin.avoided_.end()) return;
    for (const auto& [id, failure] : found->second.failures) {
      if (failure < found->second.round_began) continue;
      allocated_.Bar(id);
      devices_.push_back(&id);
    }
  }
  ~Avoiding() {
    for (const device::DeviceId* id : devices_) allocated_.Unbar(*id);
  }
  Avoiding(const Avoiding&) = delete;
  Avoiding& operator=(const Avoiding&) = delete;
  bool any() const { return !devices_.empty(); }

 private:
  device::AllocatedState& allocated_;
  std::vector<const device::DeviceId*> devices_;
};

inline DynamicResources::PodDevices& DynamicResources::StateOf(Cycle& cycle) const {
  return static_cast<PodDevices&>(*cycle.states[id]);
}

}  // namespace drakkar::scheduler
