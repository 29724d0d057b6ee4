#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

// Attributes that drivers of several vendors publish under one name, so that a claim can ask for
// devices near each other (matchAttribute). Read from sysfs; `root` is "/sys" but in tests.

inline constexpr char kPcieRootAttribute[] = "resource.kubernetes.io/pcieRoot";
inline constexpr char kPciBusIdAttribute[] = "resource.kubernetes.io/pciBusID";
inline constexpr char kNumaNodeAttribute[] = "resource.kubernetes.io/numaNode";

// The kernel's own limit on NUMA nodes; larger numbers are refused.
constexpr std::int64_t kMaxNumaNode = 1'023;

struct Sysfs {
  FileSystem& files;
  std::string root = "/sys";
};

// "0000:81:00.1": domain, bus, device and function in lower-case hex.
Result<void> CheckPciBusId(std::string_view bus_id);

// The PCIe root complex a device hangs under, "pci0000:80".
Result<std::string> PcieRoot(const Sysfs& sysfs, const std::string& bus_id);

// The NUMA node of a PCI device. An error where the machine does not say (numa_node is -1): the
// attribute must then not be published.
Result<std::int64_t> NumaNodeOfPciDevice(const Sysfs& sysfs, const std::string& bus_id);
Result<std::int64_t> NumaNodeOfCpu(const Sysfs& sysfs, std::int64_t cpu);

// `node` first, then the nodes at the least distance from it, ascending, without those that are
// known to be on another socket. One element where the machine does not tell distances.
Result<std::vector<std::int64_t>> NumaNodesNear(const Sysfs& sysfs, std::int64_t node);

// Puts pciBusID, pcieRoot and numaNode into the device's attributes, each as far as the machine
// tells it; only a malformed bus id or a device that does not exist is an error.
Result<void> AddPciAttributes(const Sysfs& sysfs, const std::string& bus_id, Device& device);

}  // namespace drakkar::driver
