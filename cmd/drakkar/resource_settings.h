#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "api/tree/value.h"
#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "node/cpus/cpu_manager.h"
#include "node/resources/pod_cgroups.h"
#include "node/status/node_facts.h"

namespace drakkar::cmd {

// A KubeletConfiguration's settings for cgroups and reserved resources; without one, a kubelet's
// defaults below the cgroup /drakkar.
struct ResourceSettings {
  node::CgroupLayout layout;
  node::NodeReservation system_reserved;
  node::NodeReservation kube_reserved;
  std::string system_cgroup;
  std::string kube_cgroup;
  std::set<std::string> enforce = {"pods"};  // enforceNodeAllocatable
  bool limited_swap = false;
  bool cpu_quota = true;
  std::int64_t cpu_period_us = 100'000;
  bool single_process_oom_kill = false;
  bool static_cpus = false;  // cpuManagerPolicy: static
  node::CpuSet reserved_cpus;
  bool full_cores_only = false;
  bool strict_cpu_reservation = false;
  Duration cpu_reconcile_every = std::chrono::seconds(10);

  // Both together.
  node::NodeReservation reserved() const;
};

Result<ResourceSettings> ReadResourceSettings(api::Value root);

// `cgroups`: none if this machine has none. `largest_pid` limits how many processes there can be.
node::NodeResources MakeNodeResources(const ResourceSettings& settings,
                                      const node::NodeFacts& facts, std::int64_t largest_pid,
                                      std::int64_t pids_per_pod,
                                      std::optional<node::Cgroups> cgroups);

// Not set: containers share all CPUs.
Result<std::optional<node::CpuManager>> MakeCpuManager(const ResourceSettings& settings,
                                                       FileSystem& files);

}  // namespace drakkar::cmd
