#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/usage.h"

namespace drakkar::node {

// A file system as a whole.
struct DiskSpace {
  Count capacity_bytes;
  Count available_bytes;
  Count used_bytes;
  Count inodes;
  Count inodes_free;
};

// Asks the kernel about the file system that holds a path.
using DiskProbe = std::function<Result<DiskSpace>(const std::string& path)>;
Result<DiskSpace> ReadDiskSpace(const std::string& path);

// Resource usage of the whole machine.
struct MachineUsage {
  WallTime time{};
  CpuUsage cpu;
  MemoryUsage memory;
  std::optional<Pressure> io_pressure;
  std::vector<InterfaceUsage> interfaces;  // of the default route first
  Count max_processes;
  Count processes;  // and threads
};

// Reads cgroups and /proc; what cannot be read is not set. Without cgroups the memory is that of
// /proc/meminfo. Blocking but short.
MachineUsage ReadMachineUsage(FileSystem& files, const Cgroups* cgroups, WallTime now);

}  // namespace drakkar::node
