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

// A container's requests and limits as JSON, {"limits":...,"requests":...}. Equal texts mean equal
// resources.
std::string ResourcesText(api::Value container);

// Without the pod's limits and its cgroup.
PodSandboxConfig MakeSandboxConfig(api::Value pod, std::uint32_t attempt,
                                   const std::string& log_directory);

// The hostname as the kernel has it: PodHostname, or the full name if the pod asks for that. An
// error if that is too long for the kernel.
Result<std::string> KernelHostname(api::Value pod, std::string_view cluster_domain);

struct ContainerConfigInput {
  api::Value pod;
  api::Value container;
  std::uint32_t attempt = 0;
  std::uint32_t pod_run = 0;  // see kPodRunAnnotation
  CgroupResources limits;
  std::string seccomp_directory;  // holds this node's profiles
  bool seccomp_default = false;   // containers without a profile get RuntimeDefault
  std::vector<EnvironmentVariable> environment;
  std::vector<Mount> mounts;
};
// Everything except CDI. $(VAR) references in command and arguments are expanded.
Result<ContainerConfig> MakeContainerConfig(ContainerConfigInput input);

// Adds the edits of the CDI devices: variables, mounts, device nodes, hooks, groups. Devices whose
// spec is in one of `runtime_directories` are left to the runtime.
Result<void> ApplyCdi(cdi::Cache& cache, DeviceNodeProbe& probe, std::vector<std::string> ids,
                      ContainerConfig& config,
                      const std::vector<std::string>& runtime_directories = {});

// Why this node cannot isolate the pod as its spec asks, for the pod's status; nothing if it can.
// Such a pod must not run: it would be less confined than its author believes.
struct IsolationRefusal {
  std::string reason;
  std::string message;
};
std::optional<IsolationRefusal> CheckIsolation(api::Value pod);

// Descriptions of the fields of the pod that this node ignores.
std::vector<std::string> ListIgnoredFields(api::Value pod, bool probes_network);

// The hostname inside the pod's containers, unless the pod uses the host network.
std::string PodHostname(api::Value pod);

// A pod's /etc/hosts in the form a kubelet writes it. `node_hosts` is the node's own file, used for
// pods on the host network.
struct HostsFileInput {
  api::Value pod;
  std::vector<std::string> pod_ips;
  std::string cluster_domain = "cluster.local";
};
std::string HostsFileText(const HostsFileInput& input, std::string_view node_hosts);
Result<void> WriteHostsFile(FileSystem& files, const HostsFileInput& input,
                            const std::string& path);

// "/var/log/pods/<ns>_<pod>_<uid>" below `root`, and "<container>/<attempt>.log" in it.
std::string PodLogDirectory(const std::string& root, api::Value pod);
std::string ContainerLogPath(const std::string& container, std::uint32_t attempt);

}  // namespace drakkar::node
