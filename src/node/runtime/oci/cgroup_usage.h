#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/usage.h"

namespace drakkar::node {

struct CgroupUsage {
  CpuUsage cpu;
  MemoryUsage memory;
  std::optional<Pressure> io_pressure;
  Count processes;
};

// Reads the kernel's counters of a cgroup, in any layout: v2, v1, or v1 next to an empty v2
// hierarchy (hybrid). Values of absent files are not set. "/" is the machine; values that v2 does
// not count there come from /proc. Blocking but short.
CgroupUsage ReadCgroupUsage(FileSystem& files, const Cgroups& cgroups, const std::string& path,
                            WallTime now);

// The interfaces in the text of /proc/<pid>/net/dev, without loopback.
std::vector<InterfaceUsage> ParseInterfaces(std::string_view net_dev);
// The interface of the default route in the text of /proc/<pid>/net/route; empty: none.
std::string DefaultInterface(std::string_view net_route);
// Reads both for a process, the interface of the default route first.
std::vector<InterfaceUsage> ReadInterfaces(FileSystem& files, int pid);

// The text of cpu.pressure and the like.
std::optional<Pressure> ParsePressure(std::string_view text);

}  // namespace drakkar::node
