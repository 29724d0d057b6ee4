#include "apiserver/registry/resource_fields.h"

#include <initializer_list>
#include <set>
#include <string_view>

#include "apiserver/validation/resource_claim.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldName;
using api::Value;
using Names = api::FieldNames;

const Names kListAttributes = {"ints", "bools", "strings", "versions"};

// Whether a list has items, or anything else has a value.
bool IsUsed(Value field) {
  return field.is_array() ? !field.empty() : field.has_value();
}

bool UsesAny(Value owner, Names fields) {
  for (const FieldName field : fields) {
    if (IsUsed(owner[field])) return true;
  }
  return false;
}

bool AnyUses(Value list, Names fields) {
  for (const Value item : list.elements()) {
    if (UsesAny(item, fields)) return true;
  }
  return false;
}

void Remove(Draft& owner, Names fields) {
  for (const FieldName field : fields) {
    if (owner.is_object()) owner.Remove(field);
  }
}

// Calls `change` for each element of the list, or each value of the map.
template <typename Change>
void ForEach(Draft& owner, FieldName field, const Change& change) {
  Draft* list = owner.is_object() ? owner.Find(field) : nullptr;
  if (list == nullptr) return;
  if (list->is_array()) {
    for (Draft& item : list->MutableElements()) change(item);
  } else if (list->is_object()) {
    for (auto& [key, item] : list->MutableMembers()) change(item);
  }
}

void RemoveFromEach(Draft& owner, FieldName list, Names fields) {
  ForEach(owner, list, [&](Draft& item) { Remove(item, fields); });
}

Draft* FindObject(Draft& owner, FieldName field) {
  Draft* found = owner.is_object() ? owner.Find(field) : nullptr;
  return found != nullptr && found->is_object() ? found : nullptr;
}

template <typename Test>
bool AnyDevice(Value slice, const Test& test) {
  for (const Value device : slice["spec"]["devices"].elements()) {
    if (test(device)) return true;
  }
  return false;
}

bool UsesConsumableCapacity(Value device) {
  if (device["allowMultipleAllocations"].has_value()) return true;
  for (const auto& [key, name, capacity] : device["capacity"].members()) {
    if (capacity["requestPolicy"].has_value()) return true;
  }
  return false;
}

bool UsesListAttributes(Value device) {
  for (const auto& [key, name, attribute] : device["attributes"].members()) {
    if (UsesAny(attribute, kListAttributes)) return true;
  }
  return false;
}

// Exact requests and alternatives that use one of the fields.
bool AnyRequestUses(Value spec, Names fields) {
  for (const Value request : spec["devices"]["requests"].elements()) {
    if (UsesAny(request["exactly"], fields) || AnyUses(request["firstAvailable"], fields)) {
      return true;
    }
  }
  return false;
}

void RemoveFromRequests(Draft& devices, Names fields) {
  ForEach(devices, "requests", [&](Draft& request) {
    if (Draft* exactly = FindObject(request, "exactly")) Remove(*exactly, fields);
    RemoveFromEach(request, "firstAvailable", fields);
  });
}

bool SpecUsesAdminAccess(Value spec) {
  for (const Value request : spec["devices"]["requests"].elements()) {
    if (request["exactly"]["adminAccess"].has_value()) return true;
  }
  return false;
}

bool SpecUsesCapacity(Value spec) {
  return AnyUses(spec["devices"]["constraints"], {"distinctAttribute"}) ||
         AnyRequestUses(spec, {"capacity"});
}

Value ResultsOf(Value claim) {
  return claim["status"]["allocation"]["devices"]["results"];
}

}  // namespace

void DropDisabledSliceFields(Draft& slice, Value before, const FeatureGates& gates) {
  Draft* spec = FindObject(slice, "spec");
  if (spec == nullptr) return;
  const Value old = before["spec"];
  const Value devices = old["devices"];
  if (!gates.Enabled(Gate::kDRADeviceTaints) && !AnyUses(devices, {"taints"})) {
    RemoveFromEach(*spec, "devices", {"taints"});
  }
  const Names kPartitioned = {"consumesCounters", "nodeName", "nodeSelector", "allNodes"};
  if (!gates.Enabled(Gate::kDRAPartitionableDevices) &&
      !UsesAny(old, {"sharedCounters", "perDeviceNodeSelection"}) &&
      !AnyUses(devices, kPartitioned)) {
    Remove(*spec, {"sharedCounters", "perDeviceNodeSelection"});
    RemoveFromEach(*spec, "devices", kPartitioned);
  }
  const Names kBinding = {"bindingConditions", "bindingFailureConditions", "bindsToNode"};
  if (!gates.BindingConditions() && !AnyUses(devices, kBinding)) {
    RemoveFromEach(*spec, "devices", kBinding);
  }
  if (!gates.Enabled(Gate::kDRAConsumableCapacity) && !AnyDevice(before, UsesConsumableCapacity)) {
    ForEach(*spec, "devices", [](Draft& device) {
      Remove(device, {"allowMultipleAllocations"});
      RemoveFromEach(device, "capacity", {"requestPolicy"});
    });
  }
  auto uses_groups = [](Value device) {
    return AnyUses(device["consumesCounters"], {"compatibilityGroups"});
  };
  if (!gates.Enabled(Gate::kDRADeviceCompatibilityGroups) && !AnyDevice(before, uses_groups)) {
    ForEach(*spec, "devices", [](Draft& device) {
      RemoveFromEach(device, "consumesCounters", {"compatibilityGroups"});
    });
  }
  auto uses_allocatable = [](Value device) { return !device["nodeAllocatableResources"].empty(); };
  if (!gates.Enabled(Gate::kDRANodeAllocatableResources) && !AnyDevice(before, uses_allocatable)) {
    RemoveFromEach(*spec, "devices", {"nodeAllocatableResources"});
  }
  if (!gates.Enabled(Gate::kDRAListTypeAttributes) && !AnyDevice(before, UsesListAttributes)) {
    ForEach(*spec, "devices",
            [](Draft& device) { RemoveFromEach(device, "attributes", kListAttributes); });
  }
  if (!gates.Enabled(Gate::kDRAPartitionableDevicesType) &&
      !old["partitionTypeAttribute"].has_value()) {
    Remove(*spec, {"partitionTypeAttribute"});
  }
}

void DropDisabledClaimSpecFields(Draft& spec, Value before, const FeatureGates& gates) {
  Draft* devices = FindObject(spec, "devices");
  if (devices == nullptr) return;
  if (!gates.Enabled(Gate::kDRAPrioritizedList) &&
      !AnyUses(before["devices"]["requests"], {"firstAvailable"})) {
    RemoveFromEach(*devices, "requests", {"firstAvailable"});
  }
  if (!gates.Enabled(Gate::kDRADeviceTaints) && !AnyRequestUses(before, {"tolerations"})) {
    RemoveFromRequests(*devices, {"tolerations"});
  }
  if (!gates.Enabled(Gate::kDRAAdminAccess) && !SpecUsesAdminAccess(before)) {
    ForEach(*devices, "requests", [](Draft& request) {
      if (Draft* exactly = FindObject(request, "exactly")) Remove(*exactly, {"adminAccess"});
    });
  }
  if (!gates.Enabled(Gate::kDRAConsumableCapacity) && !SpecUsesCapacity(before)) {
    RemoveFromEach(*devices, "constraints", {"distinctAttribute"});
    RemoveFromRequests(*devices, {"capacity"});
  }
  if (!gates.Enabled(Gate::kDRADerivedAttributes) &&
      !AnyRequestUses(before, {"derivedAttributes"})) {
    RemoveFromRequests(*devices, {"derivedAttributes"});
  }
}

void DropDisabledClaimStatusFields(Draft& claim, Value before, const FeatureGates& gates) {
  Draft* status = FindObject(claim, "status");
  if (status == nullptr) return;
  const Value old_results = ResultsOf(before);
  auto remove_from_results = [&](Names fields) {
    Draft* allocation = FindObject(*status, "allocation");
    Draft* devices = allocation == nullptr ? nullptr : FindObject(*allocation, "devices");
    if (devices != nullptr) RemoveFromEach(*devices, "results", fields);
  };
  if (!gates.Enabled(Gate::kDRAResourceClaimDeviceStatus) && before["status"]["devices"].empty()) {
    Remove(*status, {"devices"});
  }
  if (!gates.Enabled(Gate::kDRAAdminAccess) && !SpecUsesAdminAccess(before["spec"]) &&
      !AnyUses(old_results, {"adminAccess"})) {
    remove_from_results({"adminAccess"});
  }
  if (!gates.Enabled(Gate::kDRAConsumableCapacity) && !SpecUsesCapacity(before["spec"]) &&
      !AnyUses(old_results, {"shareID", "consumedCapacity"}) &&
      !AnyUses(before["status"]["devices"], {"shareID"})) {
    remove_from_results({"shareID", "consumedCapacity"});
    RemoveFromEach(*status, "devices", {"shareID"});
  }
  const Names kBinding = {"bindingConditions", "bindingFailureConditions"};
  if (!gates.Enabled(Gate::kDRADeviceBindingConditions) && !AnyUses(old_results, kBinding)) {
    remove_from_results(kBinding);
  }
}

void DropDisabledClassFields(Draft& object, Value before, const FeatureGates& gates) {
  Draft* spec = FindObject(object, "spec");
  if (spec == nullptr || gates.Enabled(Gate::kDRAExtendedResource)) return;
  if (!before["spec"]["extendedResourceName"].has_value()) Remove(*spec, {"extendedResourceName"});
}

void DropDisabledPoolRequestFields(Draft& object, Value before, const FeatureGates& gates) {
  Draft* spec = FindObject(object, "spec");
  if (spec == nullptr || gates.Enabled(Gate::kDRAPartitionableDevicesType)) return;
  if (!before["spec"]["defaultPartitionTypeAttribute"].has_value()) {
    Remove(*spec, {"defaultPartitionTypeAttribute"});
  }
}

void DropDeallocatedDevices(Draft& claim, Value before, const FeatureGates& gates) {
  if (!gates.Enabled(Gate::kDRAResourceClaimDeviceStatus) && before["status"]["devices"].empty()) {
    return;
  }
  Draft* status = FindObject(claim, "status");
  Draft* devices = status == nullptr ? nullptr : status->Find("devices");
  if (devices == nullptr || !devices->is_array()) return;
  const api::TreePtr now = claim.Freeze();
  std::set<DeviceKey> gone;
  for (const Value result : ResultsOf(before).elements()) gone.insert(DeviceKeyOf(result));
  for (const Value result : ResultsOf(now->root()).elements()) gone.erase(DeviceKeyOf(result));
  const Value reported = now->root()["status"]["devices"];
  for (std::size_t i = reported.size(); i-- > 0;) {
    if (gone.contains(DeviceKeyOf(reported.at(i)))) devices->RemoveAt(i);
  }
  if (devices->size() == 0) status->Remove("devices");
}

}  // namespace drakkar::apiserver
