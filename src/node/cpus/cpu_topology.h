#pragma once

#include <map>

#include "base/env/file_system.h"
#include "node/cpus/cpu_set.h"

namespace drakkar::node {

// Which logical CPUs share a core, a socket and a NUMA node. Cores and sockets have numbers of
// their own: the kernel numbers the cores of each socket from 0.
struct CpuTopology {
  struct Place {
    int core = 0;
    int socket = 0;
    int numa_node = 0;

    bool operator==(const Place&) const = default;
  };
  std::map<int, Place> cpus;

  CpuSet All() const;
  // All CPUs of the cores that these are in.
  CpuSet WholeCores(const CpuSet& cpus) const;
  // Logical CPUs per core, at most.
  int CpusPerCore() const;
};

// The CPUs that are online, from /sys/devices/system.
Result<CpuTopology> ReadCpuTopology(FileSystem& files);

// Chooses `count` of the `available` CPUs, close to each other: whole NUMA nodes and sockets, then
// whole cores, then single CPUs, each from the unit with the fewest free ones, so that larger units
// stay free for others. Fails only if there are too few.
Result<CpuSet> TakeCpus(const CpuTopology& topology, const CpuSet& available, int count);

}  // namespace drakkar::node
