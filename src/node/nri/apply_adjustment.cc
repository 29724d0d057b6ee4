#include "node/nri/apply_adjustment.h"

#include <algorithm>
#include <utility>

#include "api/json/json_writer.h"
#include "base/text/text.h"
#include "node/nri/adjustment.h"

namespace drakkar::node {
namespace {

struct PropagationName {
  std::string_view recursive, plain;
  MountPropagation propagation;
};
constexpr PropagationName kPropagations[] = {
    {"rprivate", "private", MountPropagation::kPrivate},
    {"rslave", "slave", MountPropagation::kHostToContainer},
    {"rshared", "shared", MountPropagation::kBidirectional},
};

constexpr std::string_view kNamespaces[] = {"pid",  "network", "ipc",   "uts",
                                            "user", "cgroup",  "mount", "time"};

Error Unsupported(std::string_view what) {
  return Error{ErrorCode::kUnimplemented, StrCat("this node does not support ", what)};
}

Mount FromPlugin(const rpc::NriMount& mount) {
  Mount out;
  out.host_path = mount.source;
  out.container_path = mount.destination;
  bool bind = mount.type == "bind" || mount.type.empty();
  for (const std::string& option : mount.options) {
    if (option == "bind" || option == "rbind") {
      bind = true;
      continue;
    }
    if (option == "ro" || option == "rw") {
      out.readonly = option == "ro";
      continue;
    }
    const auto named = std::ranges::find_if(kPropagations, [&](const PropagationName& each) {
      return option == each.recursive || option == each.plain;
    });
    if (named != std::end(kPropagations)) {
      out.propagation = named->propagation;
    } else {
      out.options.push_back(option);
    }
  }
  out.type = bind ? "bind" : mount.type;
  return out;
}

Result<DeviceNode> FromPlugin(const rpc::NriDevice& device) {
  DeviceNode out;
  out.container_path = device.path;
  if (device.type.size() != 1 || std::string_view("bcup").find(device.type) == std::string::npos) {
    return InvalidArgument(StrCat("device ", device.path, " has the unknown type ",
                                  Quote(device.type), "; it must be b, c, u or p"));
  }
  out.type = device.type[0];
  out.major = device.major;
  out.minor = device.minor;
  out.file_mode = device.file_mode;
  out.uid = device.uid;
  out.gid = device.gid;
  return out;
}

Result<CgroupDeviceRule> FromPlugin(const rpc::NriDeviceRule& rule) {
  CgroupDeviceRule out{rule.allow, 'a', rule.major, rule.minor, rule.access};
  if (rule.type.size() > 1 || std::string_view("abc").find(rule.type) == std::string::npos) {
    return InvalidArgument(
        StrCat("unknown type ", Quote(rule.type), " in a device rule; it must be a, b or c"));
  }
  if (!rule.type.empty()) out.type = rule.type[0];
  if (out.access.empty()) out.access = "rwm";
  return out;
}

// A policy in the form that the OCI specification defines.
std::string ProfileOf(const rpc::NriSeccomp& policy) {
  api::JsonWriter json;
  json.BeginObject().Member("defaultAction", policy.default_action);
  if (policy.default_errno) json.Key("defaultErrnoRet").Unsigned(*policy.default_errno);
  if (!policy.architectures.empty()) json.Array("architectures", policy.architectures);
  if (!policy.flags.empty()) json.Array("flags", policy.flags);
  if (!policy.listener_path.empty()) json.Member("listenerPath", policy.listener_path);
  if (!policy.listener_metadata.empty()) {
    json.Member("listenerMetadata", policy.listener_metadata);
  }
  json.Key("syscalls").BeginArray();
  for (const rpc::NriSyscalls& each : policy.syscalls) {
    json.BeginObject().Array("names", each.names).Member("action", each.action);
    if (each.errno_ret) json.Key("errnoRet").Unsigned(*each.errno_ret);
    json.Key("args").BeginArray();
    for (const rpc::NriSeccompArgument& argument : each.args) {
      json.BeginObject();
      json.Key("index").Unsigned(argument.index);
      json.Key("value").Unsigned(argument.value);
      json.Key("valueTwo").Unsigned(argument.value_two);
      json.Member("op", argument.op).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

Result<void> ApplyNamespaces(const std::vector<rpc::NriNamespace>& namespaces,
                             ContainerConfig& config) {
  for (const rpc::NriNamespace& space : namespaces) {
    const std::string type(WithoutNriRemoval(space.type));
    if (std::ranges::find(kNamespaces, type) == std::end(kNamespaces)) {
      return InvalidArgument("unknown namespace type " + Quote(space.type));
    }
    if (type == "mount") return Unsupported("changes of a container's mount namespace");
    if (type == "user") return Unsupported("user namespaces");
    config.namespaces[type] = IsNriRemoval(space.type) ? ""
                              : space.path.empty()     ? "new"
                                                       : space.path;
  }
  return Ok();
}

}  // namespace

Result<CgroupChanges> ChangesFrom(const rpc::NriResources& resources) {
  if (resources.blockio_class) return Unsupported("block I/O classes");
  if (resources.rdt_class) return Unsupported("RDT classes");
  if (resources.memory_kernel || resources.memory_kernel_tcp) {
    return Unsupported("limits of kernel memory");
  }
  if (resources.use_hierarchy && !*resources.use_hierarchy) {
    return Unsupported("cgroups without hierarchy");
  }
  CgroupChanges changes;
  changes.memory_limit_bytes = resources.memory_limit;
  changes.memory_reservation_bytes = resources.memory_reservation;
  changes.memory_swap_bytes = resources.memory_swap;
  changes.memory_swappiness = resources.memory_swappiness;
  changes.disable_oom_killer = resources.disable_oom_killer;
  changes.cpu_shares = resources.cpu_shares;
  changes.cpu_quota_us = resources.cpu_quota;
  changes.cpu_period_us = resources.cpu_period;
  changes.realtime_runtime_us = resources.realtime_runtime;
  changes.realtime_period_us = resources.realtime_period;
  changes.cpuset_cpus = resources.cpus;
  changes.cpuset_mems = resources.mems;
  changes.pids_limit = resources.pids;
  changes.hugepage_limits_bytes = resources.hugepage_limits;
  changes.unified = resources.unified;
  return changes;
}

Result<void> ApplyAdjustment(const rpc::NriContainerAdjustment& adjustment,
                             const CdiInjector& injector, ContainerConfig& config) {
  // CDI devices first: settings of the plugins themselves take precedence.
  if (!adjustment.cdi_devices.empty()) {
    if (!injector) return Unsupported("CDI devices of NRI plugins");
    RETURN_IF_ERROR(injector(adjustment.cdi_devices, config));
  }
  for (const auto& [name, value] : adjustment.env) {
    std::erase_if(config.environment,
                  [bare = WithoutNriRemoval(name)](const EnvironmentVariable& entry) {
                    return entry.name == bare;
                  });
    if (!IsNriRemoval(name)) config.environment.push_back({name, value});
  }
  for (const auto& [name, value] : adjustment.annotations) {
    config.annotations.erase(std::string(WithoutNriRemoval(name)));
    if (!IsNriRemoval(name)) config.annotations[name] = value;
  }
  for (const rpc::NriMount& mount : adjustment.mounts) {
    std::erase_if(config.mounts, [bare = WithoutNriRemoval(mount.destination)](const Mount& entry) {
      return entry.container_path == bare;
    });
    if (!IsNriRemoval(mount.destination)) config.mounts.push_back(FromPlugin(mount));
  }
  for (const rpc::NriDevice& device : adjustment.devices) {
    std::erase_if(config.devices, [bare = WithoutNriRemoval(device.path)](const DeviceNode& entry) {
      return (entry.container_path.empty() ? entry.host_path : entry.container_path) == bare;
    });
    if (IsNriRemoval(device.path)) continue;
    ASSIGN_OR_RETURN(DeviceNode made, FromPlugin(device));
    config.devices.push_back(std::move(made));
  }
  if (!adjustment.args.empty()) {
    config.command = adjustment.args;
    config.arguments.clear();
  }
  for (const rpc::NriHook& hook : adjustment.hooks) {
    if (!hook.path.starts_with('/')) {
      return InvalidArgument(StrCat("hook path ", Quote(hook.path), " is not an absolute path"));
    }
    config.hooks.push_back(
        {.name = hook.kind, .path = hook.path, .arguments = hook.args, .environment = hook.env});
    if (hook.timeout_seconds) {
      config.hooks.back().timeout_seconds = static_cast<int>(*hook.timeout_seconds);
    }
  }
  for (const rpc::NriRlimit& limit : adjustment.rlimits) {
    std::erase_if(config.rlimits,
                  [&](const Rlimit& existing) { return existing.type == limit.type; });
    config.rlimits.push_back({limit.type, limit.hard, limit.soft});
  }
  ASSIGN_OR_RETURN(const CgroupChanges changes, ChangesFrom(adjustment.resources));
  Merge(changes, config.cgroup_changes);
  for (const rpc::NriDeviceRule& rule : adjustment.resources.devices) {
    ASSIGN_OR_RETURN(CgroupDeviceRule made, FromPlugin(rule));
    config.device_rules.push_back(std::move(made));
  }
  if (!adjustment.cgroups_path.empty()) config.cgroup_path = adjustment.cgroups_path;
  if (adjustment.oom_score_adj) {
    config.resources.oom_score_adjust = static_cast<int>(*adjustment.oom_score_adj);
  }
  if (adjustment.seccomp) {
    config.security.seccomp = SeccompKind::kLocalhost;
    config.security.seccomp_path.clear();
    config.security.seccomp_profile = ProfileOf(*adjustment.seccomp);
  }
  for (const auto& [name, value] : adjustment.sysctl) {
    config.sysctls.erase(std::string(WithoutNriRemoval(name)));
    if (!IsNriRemoval(name)) config.sysctls[name] = value;
  }
  return ApplyNamespaces(adjustment.namespaces, config);
}

}  // namespace drakkar::node
