#pragma once

#include <memory>
#include <string>
#include <vector>

#include "allocator/request/problem.h"
#include "base/text/text.h"
#include "device/claim.h"
#include "device/slice.h"

// Builders of devices, slices and claims for tests and benchmarks.
namespace drakkar::allocator {

inline constexpr char kTestDriver[] = "test-driver.cdi.k8s.io";

inline api::Quantity Amount(std::string_view text) {
  return *api::Quantity::Parse(text);
}

inline std::string NodeName(int node) {
  return StrCat("scheduler-perf-dra-", node);
}

// A node of Kubernetes' scheduler_perf: ten devices with thirteen attributes each.
inline std::shared_ptr<device::Slice> PerfSlice(int node, int device_count = 10) {
  auto slice = std::make_shared<device::Slice>();
  slice->name = StrCat("resourceslice-", node);
  slice->driver = kTestDriver;
  slice->pool = NodeName(node);
  slice->generation = 1;
  slice->slice_count = 1;
  slice->target.node_name = NodeName(node);
  for (int i = 0; i < device_count; ++i) {
    device::Device& device = slice->devices.emplace_back();
    device.name = StrCat("basic-device-", i);
    const std::string bus = StrCat("0000:0", i, ":00.0");
    const std::string root = StrCat("pci0000:0", i % 2);
    device.attributes = {
        {"driver", std::string("xe")},
        {"driverVersion", device::VersionText{"1.2.3"}},
        {"family", std::string("Arc Pro B-Series")},
        {"health", std::string("Healthy")},
        {"model", std::string("B60")},
        {"pciAddress", bus},
        {"pciId", std::string("0xe211")},
        {"pciRoot", root},
        {"resource.k8s.io/pciRoot", root},
        {"resource.kubernetes.io/pciBusID", bus},
        {"resource.kubernetes.io/pciRoot", root},
        {"sriov", true},
        {"type", std::string("gpu")},
    };
    device.capacity.push_back({"memory", Amount("24480Mi"), {}});
    device.capacity.push_back({"millicores", Amount("1k"), {}});
  }
  return slice;
}

inline std::shared_ptr<const device::DeviceClass> PerfClass() {
  auto device_class = std::make_shared<device::DeviceClass>();
  device_class->name = "test-class";
  device_class->selectors.push_back({StrCat("device.driver == \"", kTestDriver, "\"")});
  return device_class;
}

inline ClassLookup OneClass(std::shared_ptr<const device::DeviceClass> device_class) {
  return
      [device_class](std::string_view name) -> Result<std::shared_ptr<const device::DeviceClass>> {
        if (name != device_class->name) return NotFound(StrCat("no class ", name));
        return device_class;
      };
}

inline device::Request ExactRequest(std::string name, std::int64_t count,
                                    std::string_view selector = "") {
  device::Request request;
  request.name = name;
  request.exactly.emplace();
  request.exactly->name = std::move(name);
  request.exactly->device_class = "test-class";
  request.exactly->allocation_mode = "ExactCount";
  request.exactly->count = count;
  if (!selector.empty()) request.exactly->selectors.push_back({std::string(selector)});
  return request;
}

inline std::shared_ptr<device::Claim> MakeClaim(std::vector<device::Request> requests) {
  auto claim = std::make_shared<device::Claim>();
  claim->ns = "default";
  claim->name = "claim";
  claim->requests = std::move(requests);
  return claim;
}

}  // namespace drakkar::allocator
