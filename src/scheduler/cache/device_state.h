#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/allocator.h"
#include "api/meta/object.h"
#include "base/env/random.h"
#include "base/result/result.h"
#include "device/allocated_state.h"
#include "device/claim.h"
#include "device/expression.h"
#include "device/extended_resources.h"
#include "device/inventory.h"
#include "scheduler/cache/node_set.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

// The devices of the cluster, who holds them, and the allocator over both; updated one object at a
// time. Objects that cannot be read are left out and logged. Loop-bound.
class DeviceState {
 public:
  DeviceState(const FeatureGates& gates, device::ExpressionCompiler& compiler, Random& random);

  void SetSlice(const api::ObjectPtr& slice);
  void RemoveSlice(const api::ObjectPtr& slice);
  void SetClass(const api::ObjectPtr& device_class);
  void RemoveClass(const api::ObjectPtr& device_class);
  void SetTaintRule(const api::ObjectPtr& rule);
  void RemoveTaintRule(const api::ObjectPtr& rule);
  // `index` is the node's index in the NodeTable.
  void SetNode(NodeIndex index, const api::ObjectPtr& node);
  void RemoveNode(NodeIndex index, std::string_view name);

  bool HasClass(std::string_view name) const { return classes_.contains(name); }
  // The device class that provides the extended resource (KEP-5004); null if there is none.
  const std::string* FindClassOf(std::string_view resource) const;
  Result<std::shared_ptr<const device::DeviceClass>> FindClass(std::string_view name) const;
  // Valid for nodes that are known here.
  allocator::NodeNumber NumberOf(NodeIndex index) const { return numbers_[index]; }
  const device::Node& NodeAt(NodeIndex index) const { return nodes_[index]; }

  device::AllocatedState& allocated() { return allocated_; }
  allocator::Allocator& allocator() { return allocator_; }

 private:
  // False when emulating a release before KEP-5007, which does not know its fields.
  const bool sees_binding_conditions_;
  const bool has_extended_resources_;
  device::Inventory inventory_;
  device::AllocatedState allocated_;
  std::map<std::string, std::shared_ptr<const device::DeviceClass>, std::less<>> classes_;
  device::ResourceClasses resource_classes_;
  allocator::Allocator allocator_;
  std::vector<allocator::NodeNumber> numbers_;
  std::vector<device::Node> nodes_;
};

allocator::Features AllocatorFeatures(const FeatureGates& gates);

}  // namespace drakkar::scheduler
