#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/env/clock.h"

namespace drakkar::node {

// Resource usage of pods and their containers, as counted by the kernel or a CRI runtime. A value
// that is not counted is not set.

using Count = std::optional<std::uint64_t>;

// Time that tasks waited for a resource (PSI). Averages are percentages.
struct Pressure {
  struct Line {
    double avg10 = 0, avg60 = 0, avg300 = 0;
    std::uint64_t total_us = 0;
  };
  Line some;
  Line full;
};

struct CpuUsage {
  WallTime time{};
  Count total_ns;    // since the start
  Count nano_cores;  // now, from two samples
  Count user_ns;
  Count system_ns;
  Count periods;  // of the quota
  Count throttled_periods;
  Count throttled_ns;
  Count quota_us;  // not set: unlimited
  Count period_us;
  Count shares;
  std::optional<Pressure> pressure;
};

struct MemoryUsage {
  WallTime time{};
  Count usage_bytes;
  Count working_set_bytes;  // without inactive page cache
  Count rss_bytes;
  Count cache_bytes;
  Count mapped_bytes;
  Count max_usage_bytes;
  Count limit_bytes;      // not set: unlimited
  Count available_bytes;  // limit minus working set
  Count page_faults;
  Count major_page_faults;
  Count limit_hits;
  Count oom_kills;
  Count swap_bytes;
  Count swap_available_bytes;
  std::optional<Pressure> pressure;
};

struct InterfaceUsage {
  std::string name;
  Count rx_bytes, rx_packets, rx_errors, rx_dropped;
  Count tx_bytes, tx_packets, tx_errors, tx_dropped;
};

// A part of a file system.
struct FileUsage {
  Count used_bytes;
  Count inodes_used;
};

struct ContainerUsage {
  std::string id;
  std::string name;
  std::string image;
  std::string cgroup;  // "/drakkar/pod<uid>/<id>"; empty: not known
  WallTime started_at{};
  CpuUsage cpu;
  MemoryUsage memory;
  std::optional<Pressure> io_pressure;
  Count processes;  // and threads
  FileUsage root_fs;
  FileUsage log;
};

struct PodUsage {
  std::string sandbox_id;
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::string cgroup;
  WallTime started_at{};
  CpuUsage cpu;
  MemoryUsage memory;
  std::optional<Pressure> io_pressure;
  Count processes;
  std::vector<InterfaceUsage> interfaces;  // the default one first; none on the host's network
  std::vector<ContainerUsage> containers;  // that run
};

// What the runtime uses for images, or for the writable layers of containers.
struct StoreUsage {
  std::string path;  // in the file system that holds it; empty: not known
  FileUsage files;
};

struct RuntimeUsage {
  std::vector<PodUsage> pods;
  StoreUsage images;
  StoreUsage containers;
};

}  // namespace drakkar::node
