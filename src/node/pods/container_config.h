#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/env/device_node.h"
#include "base/env/file_system.h"
#include "cdi/cache.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// "Guaranteed", "Burstable" or "BestEffort" as the API server has put it into the status.
int OomScoreAdjust(api::Value pod, api::Value container, std::int64_t machine_memory_bytes);

CgroupResources ContainerResourcesOf(api::Value pod, api::Value container,
                                     std::int64_t machine_memory_bytes);

// {"limits":...,"requests":...} of a container's spec: equal texts are equal resources.
std::string ResourcesText(api::Value container);

// What all containers of a pod ask for together, as the scheduler counts it.
struct PodRequests {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
};
PodRequests RequestsOf(api::Value pod);

// `pids_limit` is of all containers together; 0: none.
PodSandboxConfig MakeSandboxConfig(api::Value pod, std::uint32_t attempt,
                                   const std::string& log_directory, std::int64_t pids_limit = 0);

struct ContainerConfigInput {
  api::Value pod;
  api::Value container;
  std::uint32_t attempt = 0;
  std::uint32_t pod_run = 0;  // see kPodRunAnnotation
  std::int64_t machine_memory_bytes = 0;
  std::string seccomp_directory;  // where the profiles of this node are
  bool seccomp_default = false;   // who names no profile gets the runtime's
  std::vector<EnvironmentVariable> environment;
  std::vector<Mount> mounts;
};
// All but CDI. Command and arguments have their $(VAR)s replaced.
Result<ContainerConfig> MakeContainerConfig(ContainerConfigInput input);

// Adds what the CDI devices ask for: variables, mounts, device nodes, hooks, groups.
Result<void> ApplyCdi(cdi::Cache& cache, DeviceNodeProbe& probe,
                      const std::vector<std::string>& ids, ContainerConfig& config);

// Why a pod cannot have the isolation it asks for here, in words for its status; nothing if it can.
// Such a pod must not run: it would be less confined than its author believes.
struct IsolationRefusal {
  std::string reason;
  std::string message;
};
std::optional<IsolationRefusal> CheckIsolation(api::Value pod);

// Fields of the pod this node does not act on, in words; empty if there are none.
std::vector<std::string> ListIgnoredFields(api::Value pod, bool probes_network);

// The name a pod's containers see as their host's, unless it shares the node's network.
std::string PodHostname(api::Value pod);

// A pod's /etc/hosts, as a kubelet writes it: `node_hosts` is the node's own, for pods in its
// network.
std::string HostsFileText(api::Value pod, const std::string& pod_ip, std::string_view node_hosts);
Result<void> WriteHostsFile(FileSystem& files, api::Value pod, const std::string& pod_ip,
                            const std::string& path);

// "/var/log/pods/<ns>_<pod>_<uid>" below `root`, and "<container>/<attempt>.log" in it.
std::string PodLogDirectory(const std::string& root, api::Value pod);
std::string ContainerLogPath(const std::string& container, std::uint32_t attempt);

}  // namespace drakkar::node
