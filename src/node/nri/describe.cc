#include "node/nri/describe.h"

#include <algorithm>
#include <utility>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

// Plugins in containers mount /var/run/netns, where containerd has it; their images may have no
// link from /run.
std::string AsPluginsMountIt(const std::string& path) {
  return path.starts_with("/run/netns/") ? "/var" + path : path;
}

using api::Value;
using Number = rpc::NriResources::Number;

std::int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Number Unless0(std::int64_t value) {
  return value == 0 ? Number() : Number(value);
}

rpc::NriDeviceRule DescribeRule(const CgroupDeviceRule& rule) {
  return {rule.allow, std::string(1, rule.type), rule.major, rule.minor, rule.access};
}

std::string_view PropagationOption(MountPropagation propagation) {
  switch (propagation) {
    case MountPropagation::kPrivate:
      return "rprivate";
    case MountPropagation::kHostToContainer:
      return "rslave";
    case MountPropagation::kBidirectional:
      return "rshared";
  }
  return "rprivate";
}

// A number of a bundle that may be missing.
Number NumberOf(Value value) {
  return value.has_value() ? Number(value.integer()) : Number();
}

void ReadResources(Value resources, rpc::NriResources& out) {
  const Value memory = resources["memory"];
  out.memory_limit = NumberOf(memory["limit"]);
  out.memory_reservation = NumberOf(memory["reservation"]);
  out.memory_swap = NumberOf(memory["swap"]);
  out.memory_swappiness = NumberOf(memory["swappiness"]);
  const Value cpu = resources["cpu"];
  out.cpu_shares = NumberOf(cpu["shares"]);
  out.cpu_quota = NumberOf(cpu["quota"]);
  out.cpu_period = NumberOf(cpu.Entry("period"));
  out.cpus = cpu["cpus"].str();
  out.mems = cpu["mems"].str();
  out.pids = NumberOf(resources.Entry("pids")["limit"]);
  for (const Value limit : resources["hugepageLimits"].elements()) {
    out.hugepage_limits[std::string(limit["pageSize"].str())] =
        static_cast<std::uint64_t>(limit["limit"].integer());
  }
  out.unified = StringMap(resources["unified"]);
}

void ReadSpec(Value spec, rpc::NriContainer& container) {
  const Value process = spec["process"];
  container.args = Strings(process["args"]);
  container.env = Strings(process["env"]);
  container.uid = static_cast<std::uint32_t>(process["user"]["uid"].integer());
  container.gid = static_cast<std::uint32_t>(process["user"]["gid"].integer());
  for (const Value gid : process["user"]["additionalGids"].elements()) {
    container.additional_gids.push_back(static_cast<std::uint32_t>(gid.integer()));
  }
  container.oom_score_adj = NumberOf(process["oomScoreAdj"]);
  for (const Value mount : spec["mounts"].elements()) {
    container.mounts.push_back({std::string(mount["destination"].str()),
                                std::string(mount["type"].str()),
                                std::string(mount["source"].str()), Strings(mount["options"])});
  }
  const Value linux_part = spec["linux"];
  container.cgroups_path = linux_part["cgroupsPath"].str();
  for (const Value space : linux_part["namespaces"].elements()) {
    container.namespaces.push_back(
        {std::string(space["type"].str()), std::string(space["path"].str())});
  }
  for (const Value device : linux_part["devices"].elements()) {
    container.devices.push_back({std::string(device["path"].str()),
                                 std::string(device["type"].str()),
                                 device["major"].integer(),
                                 device["minor"].integer(),
                                 {},
                                 {},
                                 {}});
  }
  container.sysctl = StringMap(linux_part["sysctl"]);
  ReadResources(linux_part["resources"], container.resources);
}

}  // namespace

rpc::NriMount DescribeMount(const Mount& mount) {
  rpc::NriMount out{mount.container_path, mount.type, mount.host_path, {}};
  if (mount.type == "bind") out.options.emplace_back("rbind");
  out.options.emplace_back(PropagationOption(mount.propagation));
  out.options.emplace_back(mount.readonly ? "ro" : "rw");
  out.options.insert(out.options.end(), mount.options.begin(), mount.options.end());
  return out;
}

rpc::NriResources DescribeResources(const CgroupResources& resources) {
  rpc::NriResources out;
  out.memory_limit = Unless0(resources.memory_limit_bytes);
  out.cpu_shares = Unless0(resources.cpu_shares);
  out.cpu_quota = Unless0(resources.cpu_quota_us);
  out.cpu_period = Unless0(resources.cpu_period_us);
  out.cpus = resources.cpuset_cpus;
  out.mems = resources.cpuset_mems;
  out.pids = Unless0(resources.pids_limit);
  for (const auto& [size, limit] : resources.hugepage_limits_bytes) {
    out.hugepage_limits[size] = static_cast<std::uint64_t>(limit);
  }
  return out;
}

void MergeResources(const rpc::NriResources& changes, rpc::NriResources& resources) {
  const auto take = [](const auto& from, auto& to) {
    if (from) to = from;
  };
  take(changes.memory_limit, resources.memory_limit);
  take(changes.memory_reservation, resources.memory_reservation);
  take(changes.memory_swap, resources.memory_swap);
  take(changes.memory_kernel, resources.memory_kernel);
  take(changes.memory_kernel_tcp, resources.memory_kernel_tcp);
  take(changes.memory_swappiness, resources.memory_swappiness);
  take(changes.disable_oom_killer, resources.disable_oom_killer);
  take(changes.use_hierarchy, resources.use_hierarchy);
  take(changes.cpu_shares, resources.cpu_shares);
  take(changes.cpu_quota, resources.cpu_quota);
  take(changes.cpu_period, resources.cpu_period);
  take(changes.realtime_runtime, resources.realtime_runtime);
  take(changes.realtime_period, resources.realtime_period);
  take(changes.blockio_class, resources.blockio_class);
  take(changes.rdt_class, resources.rdt_class);
  take(changes.pids, resources.pids);
  if (!changes.cpus.empty()) resources.cpus = changes.cpus;
  if (!changes.mems.empty()) resources.mems = changes.mems;
  for (const auto& [size, limit] : changes.hugepage_limits) resources.hugepage_limits[size] = limit;
  for (const auto& [file, value] : changes.unified) resources.unified[file] = value;
  resources.devices.insert(resources.devices.end(), changes.devices.begin(), changes.devices.end());
}

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox) {
  rpc::NriPodSandbox pod{.id = sandbox.id,
                         .name = sandbox.name,
                         .uid = sandbox.uid,
                         .namespace_name = sandbox.namespace_name,
                         .labels = sandbox.labels,
                         .annotations = sandbox.annotations,
                         .ips = sandbox.ips,
                         .linux_namespaces = sandbox.namespaces,
                         .cgroup_parent = sandbox.cgroup_parent};
  if (!sandbox.network_namespace.empty()) {
    pod.linux_namespaces["network"] = AsPluginsMountIt(sandbox.network_namespace);
  }
  pod.runtime_handler = sandbox.runtime_handler;
  pod.pod_resources = DescribeResources(sandbox.resources);
  return pod;
}

rpc::NriContainer DescribeContainer(const PodSandbox& sandbox, const ContainerConfig& config) {
  rpc::NriContainer container{.id = config.id,
                              .pod_sandbox_id = sandbox.id,
                              .name = config.name,
                              .state = rpc::NriContainerState::kCreated,
                              .labels = config.labels,
                              .annotations = config.annotations,
                              .args = config.command,
                              .cdi_devices = config.cdi_devices,
                              .sysctl = config.sysctls,
                              .image = config.image};
  container.args.insert(container.args.end(), config.arguments.begin(), config.arguments.end());
  for (const EnvironmentVariable& each : config.environment) {
    container.env.push_back(StrCat(each.name, "=", each.value));
  }
  for (const Mount& mount : config.mounts) container.mounts.push_back(DescribeMount(mount));
  for (const Hook& hook : config.hooks) {
    container.hooks.push_back({hook.name, hook.path, hook.arguments, hook.environment, {}});
    if (hook.timeout_seconds) container.hooks.back().timeout_seconds = *hook.timeout_seconds;
  }
  for (const Rlimit& limit : config.rlimits) {
    container.rlimits.push_back({limit.type, limit.hard, limit.soft});
  }
  for (const DeviceNode& device : config.devices) {
    const std::string& path =
        device.container_path.empty() ? device.host_path : device.container_path;
    container.devices.push_back({path, device.type == 0 ? "" : std::string(1, device.type),
                                 std::max<std::int64_t>(device.major, 0),
                                 std::max<std::int64_t>(device.minor, 0), device.file_mode,
                                 device.uid, device.gid});
  }
  container.resources = DescribeResources(config.resources);
  for (const CgroupDeviceRule& rule : config.device_rules) {
    container.resources.devices.push_back(DescribeRule(rule));
  }
  if (config.resources.oom_score_adjust) {
    container.oom_score_adj = *config.resources.oom_score_adjust;
  }
  if (!config.cgroup_path.empty()) {
    container.cgroups_path = config.cgroup_path;
  } else if (!sandbox.cgroup_parent.empty()) {
    container.cgroups_path = JoinPath(sandbox.cgroup_parent, config.id);
  }
  std::map<std::string, std::string> spaces = sandbox.namespaces;
  if (!sandbox.network_namespace.empty())
    spaces["network"] = AsPluginsMountIt(sandbox.network_namespace);
  spaces["mount"] = "";
  for (auto& [type, path] : spaces) container.namespaces.push_back({type, path});
  if (config.security.privileged || config.security.seccomp == SeccompKind::kUnconfined) {
    container.seccomp_profile = rpc::NriSeccompProfile::kUnconfined;
  } else if (config.security.seccomp == SeccompKind::kRuntimeDefault) {
    container.seccomp_profile = rpc::NriSeccompProfile::kRuntimeDefault;
  } else {
    container.seccomp_profile = rpc::NriSeccompProfile::kLocalhost;
    container.seccomp_file = config.security.seccomp_path;
  }
  if (const auto uid = ParseInt64(config.security.user)) {
    container.uid = static_cast<std::uint32_t>(*uid);
  }
  container.gid = static_cast<std::uint32_t>(config.security.group.value_or(0));
  for (const std::int64_t gid : config.security.supplemental_groups) {
    container.additional_gids.push_back(static_cast<std::uint32_t>(gid));
  }
  return container;
}

void UpdateDescription(const ContainerStatus& status, rpc::NriContainer& container) {
  using State = rpc::NriContainerState;
  container.state = status.state == ContainerState::kCreated   ? State::kCreated
                    : status.state == ContainerState::kRunning ? State::kRunning
                    : status.state == ContainerState::kExited  ? State::kStopped
                                                               : State::kUnknown;
  container.pid = static_cast<std::uint32_t>(std::max(status.pid, 0));
  container.created_at = Nanoseconds(status.created_at);
  container.started_at = Nanoseconds(status.started_at);
  container.finished_at = Nanoseconds(status.finished_at);
  container.exit_code = status.exit_code;
  container.status_reason = status.reason;
  container.status_message = status.message;
  container.image = status.image;
  container.image_digest = status.image_id;
}

rpc::NriContainer DescribeContainer(const ContainerStatus& status, std::string_view spec) {
  rpc::NriContainer container{.id = status.id,
                              .pod_sandbox_id = status.sandbox_id,
                              .name = status.name,
                              .labels = status.labels,
                              .annotations = status.annotations};
  if (const auto tree = ParseJson(spec); tree.ok()) ReadSpec((*tree)->root(), container);
  UpdateDescription(status, container);
  return container;
}

}  // namespace drakkar::node
