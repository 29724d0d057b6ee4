#pragma once

#include <string>

#include "node/stats/usage_collector.h"

namespace drakkar::node {

// The answer of a kubelet's /stats/summary in JSON; with `cpu_and_memory_only`, the one to
// ?only_cpu_and_memory=true.
std::string WriteSummary(const NodeUsage& usage, const std::string& node_name,
                         bool cpu_and_memory_only);

// /metrics/resource, which metrics-server reads. Names, labels and timestamps are a kubelet's.
std::string WriteResourceMetrics(const NodeUsage& usage);

struct MachineIdentity {
  std::string machine_id;
  std::string system_uuid;
  std::string boot_id;
};
// /metrics/cadvisor: those of cAdvisor's metrics that the kernel counts per cgroup or that are in
// /proc, without block device counters.
std::string WriteCadvisorMetrics(const NodeUsage& usage, const MachineIdentity& identity);

}  // namespace drakkar::node
