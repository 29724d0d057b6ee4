#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

// Attributes that drivers of several vendors publish under the same name, so that a claim can ask
// for devices close to each other (matchAttribute). Read from sysfs; `root` is "/sys" except in
// tests.

inline constexpr char kPcieRootAttribute[] = "resource.kubernetes.io/pcieRoot";
inline constexpr char kPciBusIdAttribute[] = "resource.kubernetes.io/pciBusID";
inline constexpr char kNumaNodeAttribute[] = "resource.kubernetes.io/numaNode";

// The kernel's limit on NUMA nodes; larger numbers are rejected.
constexpr std::int64_t kMaxNumaNode = 1'023;

struct Sysfs {
  FileSystem& files;
  std::string root = "/sys";
};

// "0000:81:00.1": domain, bus, device and function in lower-case hex.
Result<void> CheckPciBusId(std::string_view bus_id);

// The PCIe root complex of a device, "pci0000:80".
Result<std::string> PcieRoot(const Sysfs& sysfs, const std::string& bus_id);

// The NUMA node of a PCI device. Fails if the machine does not report it (numa_node is -1); the
// attribute must then not be published.
Result<std::int64_t> NumaNodeOfPciDevice(const Sysfs& sysfs, const std::string& bus_id);
Result<std::int64_t> NumaNodeOfCpu(const Sysfs& sysfs, std::int64_t cpu);

// `node`, then the nodes closest to it, ascending, without those known to be on another socket.
// Only `node` if the machine reports no distances.
Result<std::vector<std::int64_t>> NumaNodesNear(const Sysfs& sysfs, std::int64_t node);

// Adds pciBusID, pcieRoot and numaNode to the device's attributes, as far as the machine reports
// them. Fails only if the bus id is malformed or the device does not exist.
Result<void> AddPciAttributes(const Sysfs& sysfs, const std::string& bus_id, Device& device);

}  // namespace drakkar::driver
