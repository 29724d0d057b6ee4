#include "cmd/drakkar/resource_settings.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::cmd {
namespace {

constexpr Duration kLeastPeriod = std::chrono::milliseconds(1);
constexpr Duration kMostPeriod = std::chrono::seconds(1);

Result<node::NodeReservation> ReadReservation(api::Value root, api::FieldName list) {
  node::NodeReservation reserved;
  for (const api::MemberView each : root[list].members()) {
    const std::string where = StrCat(std::string_view(list), ".", each.name);
    const auto quantity = api::Quantity::Parse(each.value.str());
    if (!quantity.ok()) return quantity.error().Prefixed(where);
    if (quantity->MilliValue() < 0) {
      return InvalidArgument(StrCat(where, ": must not be negative"));
    }
    if (each.name == "cpu") {
      reserved.cpu_milli = quantity->MilliValue();
    } else if (each.name == "memory") {
      reserved.memory_bytes = quantity->Value();
    } else if (each.name == "ephemeral-storage") {
      reserved.ephemeral_storage_bytes = quantity->Value();
    } else if (each.name == "pid") {
      reserved.pids = quantity->Value();
    } else {
      return InvalidArgument(
          StrCat(where, ": only cpu, memory, ephemeral-storage and pid can be reserved"));
    }
  }
  return reserved;
}

Result<void> ReadEnforcement(api::Value root, ResourceSettings& settings) {
  const api::Value list = root["enforceNodeAllocatable"];
  if (list.has_value()) settings.enforce.clear();
  for (api::Value each : list.elements()) settings.enforce.emplace(each.str());
  // The cgroup around all pods exists only together with the cgroups by class.
  if (!list.has_value() && !settings.layout.per_qos) settings.enforce.clear();
  const auto has = [&](const char* name) { return settings.enforce.contains(name); };
  const auto fail = [](std::string why) {
    return InvalidArgument("enforceNodeAllocatable: " + std::move(why));
  };
  for (const std::string& each : settings.enforce) {
    if (each == "none") {
      if (settings.enforce.size() > 1) return fail("none excludes all others");
    } else if (each == "pods") {
      if (!settings.layout.per_qos) return fail("pods needs cgroupsPerQOS");
    } else if (each == "system-reserved" || each == "system-reserved-compressible") {
      if (settings.system_cgroup.empty()) return fail(each + " needs systemReservedCgroup");
    } else if (each == "kube-reserved" || each == "kube-reserved-compressible") {
      if (settings.kube_cgroup.empty()) return fail(each + " needs kubeReservedCgroup");
    } else {
      return fail(StrCat(Quote(each),
                         " is not one of pods, system-reserved, kube-reserved, "
                         "system-reserved-compressible, kube-reserved-compressible "
                         "and none"));
    }
  }
  if (has("system-reserved") && has("system-reserved-compressible")) {
    return fail("system-reserved excludes system-reserved-compressible");
  }
  if (has("kube-reserved") && has("kube-reserved-compressible")) {
    return fail("kube-reserved excludes kube-reserved-compressible");
  }
  return Ok();
}

Result<std::string> ReadCgroup(api::Value root, api::FieldName name) {
  std::string path(root[name].str());
  if (path.empty()) return path;
  for (const std::string_view part : Split(path, '/')) {
    if (part == "." || part == "..") {
      return InvalidArgument(StrCat(std::string_view(name), ": must be a plain path"));
    }
  }
  if (!path.starts_with('/')) path.insert(0, "/");
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<void> ReadCpuManager(api::Value root, ResourceSettings& settings) {
  const std::string_view policy = root["cpuManagerPolicy"].str();
  if (!policy.empty() && policy != "none" && policy != "static") {
    return InvalidArgument("cpuManagerPolicy: must be none or static");
  }
  settings.static_cpus = policy == "static";
  auto reserved = node::CpuSet::Parse(root["reservedSystemCPUs"].str());
  if (!reserved.ok()) return std::move(reserved).error().Prefixed("reservedSystemCPUs");
  settings.reserved_cpus = *std::move(reserved);
  if (!settings.reserved_cpus.empty()) {
    if (!settings.system_cgroup.empty() || !settings.kube_cgroup.empty()) {
      return InvalidArgument(
          "reservedSystemCPUs excludes systemReservedCgroup and kubeReservedCgroup");
    }
    // As in a kubelet, instead of what is reserved otherwise.
    settings.system_reserved.cpu_milli = settings.reserved_cpus.size() * std::int64_t{1000};
    settings.kube_reserved.cpu_milli = 0;
  }
  for (const api::MemberView option : root["cpuManagerPolicyOptions"].members()) {
    const std::string where = StrCat("cpuManagerPolicyOptions.", option.name);
    const std::string_view value = option.value.str();
    if (value != "true" && value != "false")
      return InvalidArgument(where + ": must be true or false");
    if (!settings.static_cpus) return InvalidArgument(where + ": needs cpuManagerPolicy static");
    const bool wanted = value == "true";
    if (option.name == "full-pcpus-only") {
      settings.full_cores_only = wanted;
    } else if (option.name == "strict-cpu-reservation") {
      settings.strict_cpu_reservation = wanted;
    } else if (wanted) {
      return InvalidArgument(where +
                             ": this node has only full-pcpus-only and "
                             "strict-cpu-reservation");
    }
  }
  if (const std::string_view every = root["cpuManagerReconcilePeriod"].str(); !every.empty()) {
    ASSIGN_OR_RETURN(const Duration period, api::ParseDuration(every));
    if (period > Duration::zero()) settings.cpu_reconcile_every = period;
  }
  return Ok();
}

// A node that ignored these policies would look as if it aligned resources.
Result<void> RefuseOtherPolicies(api::Value root) {
  const std::string_view memory = root["memoryManagerPolicy"].str();
  if (!memory.empty() && memory != "None") {
    return InvalidArgument(
        StrCat("memoryManagerPolicy: this node has only None, not ", Quote(memory)));
  }
  const std::string_view topology = root["topologyManagerPolicy"].str();
  if (!topology.empty() && topology != "none") {
    return InvalidArgument(
        StrCat("topologyManagerPolicy: this node has only none, not ", Quote(topology)));
  }
  const std::string_view scope = root["topologyManagerScope"].str();
  if (!scope.empty() && scope != "container" && scope != "pod") {
    return InvalidArgument("topologyManagerScope: must be container or pod");
  }
  return Ok();
}

node::CgroupShare ShareOf(const node::NodeReservation& reserved) {
  return {reserved.cpu_milli, reserved.memory_bytes, reserved.pids};
}

}  // namespace

node::NodeReservation ResourceSettings::reserved() const {
  return {.cpu_milli = system_reserved.cpu_milli + kube_reserved.cpu_milli,
          .memory_bytes = system_reserved.memory_bytes + kube_reserved.memory_bytes,
          .ephemeral_storage_bytes =
              system_reserved.ephemeral_storage_bytes + kube_reserved.ephemeral_storage_bytes,
          .pids = system_reserved.pids + kube_reserved.pids};
}

Result<ResourceSettings> ReadResourceSettings(api::Value root) {
  ResourceSettings settings;
  ASSIGN_OR_RETURN(settings.system_reserved, ReadReservation(root, "systemReserved"));
  ASSIGN_OR_RETURN(settings.kube_reserved, ReadReservation(root, "kubeReserved"));
  ASSIGN_OR_RETURN(settings.system_cgroup, ReadCgroup(root, "systemReservedCgroup"));
  ASSIGN_OR_RETURN(settings.kube_cgroup, ReadCgroup(root, "kubeReservedCgroup"));
  ASSIGN_OR_RETURN(const std::string cgroup_root, ReadCgroup(root, "cgroupRoot"));
  if (!cgroup_root.empty()) settings.layout.root = cgroup_root;
  settings.layout.per_qos = root["cgroupsPerQOS"].boolean(true);
  RETURN_IF_ERROR(ReadEnforcement(root, settings));
  const std::string_view swap = root["memorySwap"]["swapBehavior"].str();
  if (!swap.empty() && swap != "NoSwap" && swap != "LimitedSwap") {
    return InvalidArgument("memorySwap.swapBehavior: must be NoSwap or LimitedSwap");
  }
  settings.limited_swap = swap == "LimitedSwap";
  settings.cpu_quota = root["cpuCFSQuota"].boolean(true);
  if (const std::string_view period = root["cpuCFSQuotaPeriod"].str(); !period.empty()) {
    ASSIGN_OR_RETURN(const Duration value, api::ParseDuration(period));
    if (value < kLeastPeriod || value > kMostPeriod) {
      return InvalidArgument("cpuCFSQuotaPeriod: must be between 1ms and 1s");
    }
    settings.cpu_period_us = std::chrono::duration_cast<std::chrono::microseconds>(value).count();
  }
  settings.single_process_oom_kill = root["singleProcessOOMKill"].boolean();
  RETURN_IF_ERROR(ReadCpuManager(root, settings));
  RETURN_IF_ERROR(RefuseOtherPolicies(root));
  return settings;
}

node::NodeResources MakeNodeResources(const ResourceSettings& settings,
                                      const node::NodeFacts& facts, std::int64_t largest_pid,
                                      std::int64_t pids_per_pod,
                                      std::optional<node::Cgroups> cgroups) {
  node::NodeResources resources{
      .limits = {.machine_swap_bytes = facts.swap_bytes,
                 .limited_swap = settings.limited_swap,
                 .cpu_quota = settings.cpu_quota,
                 .cpu_period_us = settings.cpu_period_us,
                 .kill_all_on_oom = !settings.single_process_oom_kill,
                 .pids_per_pod = pids_per_pod},
      .layout = settings.layout,
      .cgroups = std::move(cgroups),
      .pods = {.cpu_milli = facts.cpu_count * 1000, .memory_bytes = facts.memory_bytes}};
  if (settings.enforce.contains("pods")) {
    const node::NodeReservation reserved = settings.reserved();
    const auto rest = [](std::int64_t all, std::int64_t kept) {
      return std::max<std::int64_t>(all - kept, 0);
    };
    resources.pods.cpu_milli = rest(resources.pods.cpu_milli, reserved.cpu_milli);
    resources.pods.memory_bytes = rest(resources.pods.memory_bytes, reserved.memory_bytes);
    if (reserved.pids > 0)
      resources.pods.pids = std::max<std::int64_t>(largest_pid - reserved.pids, 1);
  }
  for (const auto& [name, cgroup, reserved] :
       {std::tuple("system-reserved", settings.system_cgroup, settings.system_reserved),
        std::tuple("kube-reserved", settings.kube_cgroup, settings.kube_reserved)}) {
    const bool cpu_only = settings.enforce.contains(StrCat(name, "-compressible"));
    if (!cpu_only && !settings.enforce.contains(name)) continue;
    resources.reserved.push_back({cgroup, ShareOf(reserved), cpu_only});
  }
  return resources;
}

Result<std::optional<node::CpuManager>> MakeCpuManager(const ResourceSettings& settings,
                                                       FileSystem& files) {
  std::optional<node::CpuManager> manager;
  if (!settings.static_cpus) return manager;
  ASSIGN_OR_RETURN(node::CpuTopology topology, node::ReadCpuTopology(files));
  ASSIGN_OR_RETURN(manager,
                   node::CpuManager::Make({.topology = std::move(topology),
                                           .reserved = settings.reserved_cpus,
                                           .reserved_count = static_cast<int>(
                                               (settings.reserved().cpu_milli + 999) / 1000),
                                           .full_cores_only = settings.full_cores_only,
                                           .strict_reservation = settings.strict_cpu_reservation}));
  return manager;
}

}  // namespace drakkar::cmd
