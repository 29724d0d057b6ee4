#include "node/runtime/runtime.h"

namespace drakkar::node {

void Merge(const CgroupChanges& later, CgroupChanges& changes) {
  const auto take = [](const auto& from, auto& to) {
    if (from) to = from;
  };
  take(later.memory_limit_bytes, changes.memory_limit_bytes);
  take(later.memory_reservation_bytes, changes.memory_reservation_bytes);
  take(later.memory_swap_bytes, changes.memory_swap_bytes);
  take(later.memory_swappiness, changes.memory_swappiness);
  take(later.disable_oom_killer, changes.disable_oom_killer);
  take(later.cpu_shares, changes.cpu_shares);
  take(later.cpu_quota_us, changes.cpu_quota_us);
  take(later.cpu_period_us, changes.cpu_period_us);
  take(later.realtime_runtime_us, changes.realtime_runtime_us);
  take(later.realtime_period_us, changes.realtime_period_us);
  take(later.pids_limit, changes.pids_limit);
  if (!later.cpuset_cpus.empty()) changes.cpuset_cpus = later.cpuset_cpus;
  if (!later.cpuset_mems.empty()) changes.cpuset_mems = later.cpuset_mems;
  for (const auto& [size, limit] : later.hugepage_limits_bytes) {
    changes.hugepage_limits_bytes[size] = limit;
  }
  for (const auto& [file, value] : later.unified) changes.unified[file] = value;
}

std::string_view ContainerStateName(ContainerState state) {
  switch (state) {
    case ContainerState::kCreated:
      return "created";
    case ContainerState::kRunning:
      return "running";
    case ContainerState::kExited:
      return "exited";
    case ContainerState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace drakkar::node
