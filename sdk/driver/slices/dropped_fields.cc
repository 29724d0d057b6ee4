#include "sdk/driver/slices/dropped_fields.h"

#include <functional>
#include <string_view>

#include "base/text/text.h"
#include "sdk/driver/slices/pool_plan.h"

namespace drakkar::driver {
namespace {

using api::Value;

struct DeviceFields {
  std::string_view feature;
  std::vector<api::FieldName> fields;
};

const std::vector<DeviceFields>& FieldsByFeature() {
  static const std::vector<DeviceFields> table = {
      {"DRADeviceTaints", {"taints"}},
      {"DRAPartitionableDevices", {"consumesCounters", "nodeName", "nodeSelector", "allNodes"}},
      {"DRADeviceBindingConditions",
       {"bindsToNode", "bindingConditions", "bindingFailureConditions"}},
      {"DRAConsumableCapacity", {"allowMultipleAllocations"}},
  };
  return table;
}

bool Lost(Value sent, Value stored) {
  return sent.has_value() && !stored.has_value();
}

bool LostRequestPolicy(Value sent, Value stored) {
  for (const api::MemberView& capacity : sent["capacity"].members()) {
    if (Lost(capacity.value["requestPolicy"],
             stored["capacity"].Entry(capacity.name)["requestPolicy"])) {
      return true;
    }
  }
  return false;
}

bool LostCompatibilityGroups(Value sent, Value stored) {
  const Value kept = stored["consumesCounters"];
  std::size_t index = 0;
  for (const Value consumption : sent["consumesCounters"].elements()) {
    const Value other = kept.at(index++);
    if (other.exists() && Lost(consumption["compatibilityGroups"], other["compatibilityGroups"])) {
      return true;
    }
  }
  return false;
}

bool AnyDevice(Value sent, Value stored, const std::function<bool(Value, Value)>& lost) {
  std::size_t index = 0;
  for (const Value device : sent["devices"].elements()) {
    if (lost(device, stored["devices"].at(index++))) return true;
  }
  return false;
}

void FindDropped(const std::string& path, Value sent, Value stored,
                 std::vector<std::string>& paths) {
  if (paths.size() >= kMaxDroppedPaths) return;
  if (Lost(sent, stored)) {
    paths.push_back(path);
    return;
  }
  for (const api::MemberView& member : sent.members()) {
    FindDropped(StrCat(path, ".", member.name), member.value, stored.Entry(member.name), paths);
  }
  std::size_t index = 0;
  for (const Value element : sent.elements()) {
    FindDropped(StrCat(path, "[", index, "]"), element, stored.at(index), paths);
    ++index;
  }
}

}  // namespace

std::vector<std::string> DroppedPaths(Value sent, Value stored) {
  std::vector<std::string> paths;
  FindDropped("spec", sent, stored, paths);
  return paths;
}

std::vector<std::string> DroppedFeatures(Value sent, Value stored) {
  if (SameSliceContent(sent, stored)) return {};
  std::vector<std::string> features;
  for (const DeviceFields& entry : FieldsByFeature()) {
    bool lost = AnyDevice(sent, stored, [&](Value a, Value b) {
      for (const api::FieldName field : entry.fields) {
        if (Lost(a[field], b[field])) return true;
      }
      return entry.feature == "DRAConsumableCapacity" && LostRequestPolicy(a, b);
    });
    if (entry.feature == "DRAPartitionableDevices") {
      lost = lost || Lost(sent["sharedCounters"], stored["sharedCounters"]) ||
             Lost(sent["perDeviceNodeSelection"], stored["perDeviceNodeSelection"]);
    }
    if (lost) features.emplace_back(entry.feature);
  }
  if (Lost(sent["partitionTypeAttribute"], stored["partitionTypeAttribute"])) {
    features.emplace_back("DRAPartitionableDevicesType");
  }
  if (Lost(sent["skipNodeOperations"], stored["skipNodeOperations"])) {
    features.emplace_back("DRAOptionalNodeOperations");
  }
  if (AnyDevice(sent, stored, LostCompatibilityGroups)) {
    features.emplace_back("DRADeviceCompatibilityGroups");
  }
  if (features.empty()) features.emplace_back("unknown");
  return features;
}

}  // namespace drakkar::driver
