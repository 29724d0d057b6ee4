#include "scheduler/cache/device_state.h"

#include "base/text/text.h"
#include "device/from_api.h"
#include "features/gates/feature_gates.h"
#include "telemetry/log/log.h"

namespace drakkar::scheduler {
namespace {

constexpr Logger kLog("scheduler");

template <typename Read>
bool IsReadable(const Read& read, const api::ObjectPtr& object) {
  if (read.ok()) return true;
  kLog.Error("ignored an object that cannot be read", {{"kind", object->kind()},
                                                       {"name", object->qualified_name()},
                                                       {"reason", read.error().message}});
  return false;
}

}  // namespace

allocator::Features AllocatorFeatures(const FeatureGates& gates) {
  allocator::Features features;
  features.admin_access = gates.Enabled(Gate::kDRAAdminAccess);
  features.compatibility_groups = gates.Enabled(Gate::kDRADeviceCompatibilityGroups);
  features.consumable_capacity = gates.Enabled(Gate::kDRAConsumableCapacity);
  features.derived_attributes = gates.Enabled(Gate::kDRADerivedAttributes);
  features.device_binding_and_status = gates.BindingConditions();
  features.device_taints = gates.Enabled(Gate::kDRADeviceTaints);
  features.fractional_capacity_range = gates.Enabled(Gate::kDRAFractionalCapacityRange);
  features.list_type_attributes = gates.Enabled(Gate::kDRAListTypeAttributes);
  features.optional_node_operations = gates.Enabled(Gate::kDRAOptionalNodePreparation);
  features.ignores_declared_features = !gates.Enabled(Gate::kNodeDeclaredFeatures);
  features.partitionable_devices = gates.Enabled(Gate::kDRAPartitionableDevices);
  features.prioritized_list = gates.Enabled(Gate::kDRAPrioritizedList);
  return features;
}

DeviceState::DeviceState(const FeatureGates& gates, device::ExpressionCompiler& compiler,
                         Random& random)
    : sees_binding_conditions_(gates.Known(Gate::kDRADeviceBindingConditions)),
      has_extended_resources_(gates.Enabled(Gate::kDRAExtendedResource)),
      allocator_({.inventory = inventory_,
                  .allocated = allocated_,
                  .compiler = compiler,
                  .random = random,
                  .features = AllocatorFeatures(gates)}) {}

void DeviceState::SetSlice(const api::ObjectPtr& slice) {
  auto read = device::SliceFromApi(slice->root());
  if (!IsReadable(read, slice)) {
    inventory_.RemoveSlice(slice->name());
    return;
  }
  if (!sees_binding_conditions_) {
    for (device::Device& device : read->devices) {
      device.binds_to_node = false;
      device.binding_conditions.clear();
    }
  }
  inventory_.SetSlice(std::make_shared<const device::Slice>(std::move(*read)));
}

void DeviceState::RemoveSlice(const api::ObjectPtr& slice) {
  inventory_.RemoveSlice(slice->name());
}

void DeviceState::SetClass(const api::ObjectPtr& device_class) {
  auto read = device::DeviceClassFromApi(device_class->root());
  if (!IsReadable(read, device_class)) {
    RemoveClass(device_class);
    return;
  }
  std::string name(device_class->name());
  resource_classes_.Set(name, std::string((*device_class)["metadata"]["creationTimestamp"].str()),
                        read->extended_resource_name.value_or(""));
  classes_[std::move(name)] = std::make_shared<const device::DeviceClass>(std::move(*read));
}

void DeviceState::RemoveClass(const api::ObjectPtr& device_class) {
  classes_.erase(std::string(device_class->name()));
  resource_classes_.Remove(device_class->name());
}

void DeviceState::SetTaintRule(const api::ObjectPtr& rule) {
  auto read = device::TaintRuleFromApi(rule->root());
  if (!IsReadable(read, rule)) {
    inventory_.RemoveTaintRule(rule->name());
    return;
  }
  inventory_.SetTaintRule(std::move(*read));
}

void DeviceState::RemoveTaintRule(const api::ObjectPtr& rule) {
  inventory_.RemoveTaintRule(rule->name());
}

void DeviceState::SetNode(NodeIndex index, const api::ObjectPtr& object) {
  device::Node node = device::NodeFromApi(object->root());
  if (index >= nodes_.size()) {
    nodes_.resize(index + 1);
    numbers_.resize(index + 1);
  }
  // Most updates of a node (heartbeats, conditions) do not affect devices.
  if (nodes_[index] == node) return;
  nodes_[index] = node;
  numbers_[index] = allocator_.SetNode(std::move(node));
}

void DeviceState::RemoveNode(NodeIndex index, std::string_view name) {
  allocator_.RemoveNode(name);
  nodes_[index] = {};
}

const std::string* DeviceState::FindClassOf(std::string_view resource) const {
  return has_extended_resources_ ? resource_classes_.Find(resource) : nullptr;
}

Result<std::shared_ptr<const device::DeviceClass>> DeviceState::FindClass(
    std::string_view name) const {
  const auto found = classes_.find(name);
  if (found == classes_.end()) {
    return NotFound(StrCat("deviceclass.resource.k8s.io ", Quote(name), " not found"));
  }
  return found->second;
}

}  // namespace drakkar::scheduler
