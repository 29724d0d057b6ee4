#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// The settings for turning a pod's requests and limits into cgroup limits.
struct LimitRules {
  std::int64_t machine_memory_bytes = 0;  // 0: not known
  std::int64_t machine_swap_bytes = 0;
  bool is_unified = false;    // cgroup v2
  bool counts_swap = false;   // the kernel can limit swap
  bool limited_swap = false;  // memorySwap.swapBehavior: LimitedSwap; only with cgroup v2
  bool cpu_quota = true;      // whether CPU limits are enforced
  std::int64_t cpu_period_us = 100'000;
  bool kill_all_on_oom = true;    // all processes of a container; only with cgroup v2
  std::int64_t pids_per_pod = 0;  // 0: no limit
  // Sizes of this machine's huge pages, "2Mi". Who has no limit for them cannot use them.
  std::vector<std::string> page_sizes = {};
};

// oom_score_adj: the kernel kills processes with higher scores first.
int OomScoreAdjust(api::Value pod, api::Value container, std::int64_t machine_memory_bytes);

// Computed as by a kubelet. `exclusive_cpus`: the container owns CPUs, which makes a CPU limit
// pointless.
CgroupResources ContainerLimits(const LimitRules& rules, api::Value pod, api::Value container,
                                bool exclusive_cpus = false);
// For the cgroup of the whole pod.
CgroupResources PodLimits(const LimitRules& rules, api::Value pod, bool exclusive_cpus = false);

// The kernel's unit for a CPU request.
std::int64_t SharesOf(std::int64_t cpu_milli);

}  // namespace drakkar::node
