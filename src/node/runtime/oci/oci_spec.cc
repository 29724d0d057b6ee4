#include "node/runtime/oci/oci_spec.h"

#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "node/runtime/json.h"
#include "node/runtime/oci/seccomp.h"

namespace drakkar::node {
namespace {

// In the order of their bits (linux/capability.h).
constexpr std::string_view kCapabilityNames[] = {"CHOWN",
                                                 "DAC_OVERRIDE",
                                                 "DAC_READ_SEARCH",
                                                 "FOWNER",
                                                 "FSETID",
                                                 "KILL",
                                                 "SETGID",
                                                 "SETUID",
                                                 "SETPCAP",
                                                 "LINUX_IMMUTABLE",
                                                 "NET_BIND_SERVICE",
                                                 "NET_BROADCAST",
                                                 "NET_ADMIN",
                                                 "NET_RAW",
                                                 "IPC_LOCK",
                                                 "IPC_OWNER",
                                                 "SYS_MODULE",
                                                 "SYS_RAWIO",
                                                 "SYS_CHROOT",
                                                 "SYS_PTRACE",
                                                 "SYS_PACCT",
                                                 "SYS_ADMIN",
                                                 "SYS_BOOT",
                                                 "SYS_NICE",
                                                 "SYS_RESOURCE",
                                                 "SYS_TIME",
                                                 "SYS_TTY_CONFIG",
                                                 "MKNOD",
                                                 "LEASE",
                                                 "AUDIT_WRITE",
                                                 "AUDIT_CONTROL",
                                                 "SETFCAP",
                                                 "MAC_OVERRIDE",
                                                 "MAC_ADMIN",
                                                 "SYSLOG",
                                                 "WAKE_ALARM",
                                                 "BLOCK_SUSPEND",
                                                 "AUDIT_READ",
                                                 "PERFMON",
                                                 "BPF",
                                                 "CHECKPOINT_RESTORE"};
constexpr int kCapabilityCount = static_cast<int>(std::size(kCapabilityNames));

// The default capabilities of container runtimes.
constexpr std::string_view kDefaultCapabilities[] = {
    "CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",
    "MKNOD",   "NET_RAW",      "SETGID",           "SETUID",
    "SETFCAP", "SETPCAP",      "NET_BIND_SERVICE", "SYS_CHROOT",
    "KILL",    "AUDIT_WRITE"};

constexpr std::string_view kMaskedPaths[] = {"/proc/asound",
                                             "/proc/acpi",
                                             "/proc/kcore",
                                             "/proc/keys",
                                             "/proc/latency_stats",
                                             "/proc/timer_list",
                                             "/proc/timer_stats",
                                             "/proc/sched_debug",
                                             "/proc/scsi",
                                             "/sys/firmware",
                                             "/sys/devices/virtual/powercap"};
constexpr std::string_view kReadonlyPaths[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                               "/proc/sysrq-trigger"};
constexpr std::string_view kHookNames[] = {"prestart",       "createRuntime", "createContainer",
                                           "startContainer", "poststart",     "poststop"};

std::uint64_t AllCapabilities() {
  return (std::uint64_t{1} << kCapabilityCount) - 1;
}

Result<std::uint64_t> WantedCapabilities(const SecurityContext& security) {
  if (security.privileged) return AllCapabilities();
  std::uint64_t wanted = 0;
  for (std::string_view name : kDefaultCapabilities) {
    wanted |= std::uint64_t{1} << *CapabilityBit(name);
  }
  // As in CRI: ALL is applied first, in either list, then single names; drop overrides the
  // defaults, add overrides "drop ALL".
  auto is_all = [](const std::string& name) { return ToLower(name) == "all"; };
  const auto& add = security.add_capabilities;
  const auto& drop = security.drop_capabilities;
  if (std::any_of(add.begin(), add.end(), is_all)) wanted = AllCapabilities();
  if (std::any_of(drop.begin(), drop.end(), is_all)) wanted = 0;
  for (const std::string& name : add) {
    if (is_all(name)) continue;
    auto bit = CapabilityBit(name);
    if (!bit) return InvalidArgument("unknown capability " + Quote(name));
    wanted |= std::uint64_t{1} << *bit;
  }
  for (const std::string& name : drop) {
    if (is_all(name)) continue;
    auto bit = CapabilityBit(name);
    if (!bit) return InvalidArgument("unknown capability " + Quote(name));
    wanted &= ~(std::uint64_t{1} << *bit);
  }
  return wanted;
}

class SpecWriter {
 public:
  SpecWriter(const ContainerConfig& config, const OciSpecInput& input, const HostLimits& limits)
      : config_(config), input_(input), limits_(limits) {}

  Result<OciSpec> Write() {
    if (input_.arguments.empty()) {
      return InvalidArgument("no command: neither the container nor its image has one");
    }
    json_.BeginObject();
    json_.Member("ociVersion", "1.0.2");
    RETURN_IF_ERROR(Process());
    json_.Key("root").BeginObject();
    json_.Member("path", input_.rootfs);
    json_.Key("readonly").Bool(config_.security.readonly_rootfs);
    json_.EndObject();
    if (!input_.hostname.empty()) json_.Member("hostname", input_.hostname);
    RETURN_IF_ERROR(Mounts());
    RETURN_IF_ERROR(Hooks());
    json_.StringMap("annotations", config_.annotations);
    RETURN_IF_ERROR(Linux());
    json_.EndObject();
    return OciSpec{json_.Take(), std::move(warnings_)};
  }

 private:
  Result<void> Process() {
    json_.Key("process").BeginObject();
    json_.Key("terminal").Bool(config_.tty);
    json_.Key("user").BeginObject();
    json_.Key("uid").Unsigned(input_.uid);
    json_.Key("gid").Unsigned(input_.gid);
    if (!input_.additional_gids.empty()) {
      json_.Key("additionalGids").BeginArray();
      for (std::uint32_t gid : input_.additional_gids) json_.Unsigned(gid);
      json_.EndArray();
    }
    json_.EndObject();
    json_.Array("args", input_.arguments);
    json_.Array("env", input_.environment);
    json_.Member("cwd", input_.working_directory.empty() ? "/" : input_.working_directory);
    RETURN_IF_ERROR(Capabilities());
    Rlimits();
    json_.Key("noNewPrivileges").Bool(config_.security.no_new_privileges);
    if (auto score = config_.resources.oom_score_adjust) {
      if (*score >= limits_.lowest_oom_score) {
        json_.Key("oomScoreAdj").Integer(*score);
      } else {
        warnings_.push_back(StrCat("oom score ", *score,
                                   " not applied: the kernel allows no lower score than ",
                                   limits_.lowest_oom_score));
      }
    }
    json_.EndObject();
    return Ok();
  }

  Result<void> Capabilities() {
    ASSIGN_OR_RETURN(std::uint64_t wanted, WantedCapabilities(config_.security));
    const std::uint64_t missing = wanted & ~limits_.capabilities;
    std::vector<std::string> names;
    std::vector<std::string> refused;
    for (int bit = 0; bit < kCapabilityCount; ++bit) {
      const std::uint64_t mask = std::uint64_t{1} << bit;
      if (missing & mask) refused.emplace_back(kCapabilityNames[bit]);
      if (wanted & ~missing & mask) names.push_back(StrCat("CAP_", kCapabilityNames[bit]));
    }
    if (!refused.empty()) {
      warnings_.push_back("capabilities not granted because this host lacks them: " +
                          Join(refused, ", "));
    }
    json_.Key("capabilities").BeginObject();
    for (std::string_view set : {"bounding", "permitted"}) json_.Array(set, names);
    // A non-root user keeps no capabilities across exec unless the file has them.
    if (input_.uid == 0) {
      json_.Array("effective", names);
    } else {
      json_.Array("effective", std::vector<std::string>());
    }
    json_.EndObject();
    return Ok();
  }

  void Rlimits() {
    if (config_.rlimits.empty()) return;
    json_.Key("rlimits").BeginArray();
    for (Rlimit limit : config_.rlimits) {
      if (!limits_.may_raise_rlimits) {
        for (const Rlimit& ours : limits_.rlimits) {
          if (ours.type != limit.type || limit.hard <= ours.hard) continue;
          warnings_.push_back(StrCat(limit.type, " not raised to ", limit.hard,
                                     ": the kernel allows at most ", ours.hard));
          limit.hard = ours.hard;
          limit.soft = std::min(limit.soft, ours.hard);
        }
      }
      json_.BeginObject().Member("type", limit.type);
      json_.Key("hard").Unsigned(limit.hard).Key("soft").Unsigned(limit.soft);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void PlainMount(std::string_view destination, std::string_view type, std::string_view source,
                  const std::vector<std::string>& options) {
    if (IsCovered(destination)) return;
    json_.BeginObject();
    json_.Member("destination", destination).Member("type", type).Member("source", source);
    json_.Array("options", options);
    json_.EndObject();
  }
  bool IsCovered(std::string_view destination) const {
    return std::any_of(config_.mounts.begin(), config_.mounts.end(),
                       [&](const Mount& mount) { return mount.container_path == destination; });
  }

  Result<void> Mounts() {
    json_.Key("mounts").BeginArray();
    PlainMount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"});
    PlainMount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"});
    PlainMount("/dev/pts", "devpts", "devpts",
               {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"});
    PlainMount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"});
    const std::string access = config_.security.privileged ? "rw" : "ro";
    PlainMount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", access});
    PlainMount("/sys/fs/cgroup", "cgroup", "cgroup",
               {"nosuid", "noexec", "nodev", "relatime", access});
    for (const Mount& mount : input_.sandbox_mounts) {
      if (!IsCovered(mount.container_path)) RETURN_IF_ERROR(ConfigMount(mount));
    }
    std::vector<const Mount*> mounts;
    for (const Mount& mount : config_.mounts) mounts.push_back(&mount);
    // Parents first: a parent mounted later would hide the mounts below it.
    auto depth = [](const Mount* mount) {
      return std::count(mount->container_path.begin(), mount->container_path.end(), '/');
    };
    std::stable_sort(mounts.begin(), mounts.end(),
                     [&](const Mount* a, const Mount* b) { return depth(a) < depth(b); });
    for (const Mount* mount : mounts) RETURN_IF_ERROR(ConfigMount(*mount));
    json_.EndArray();
    return Ok();
  }

  Result<void> ConfigMount(const Mount& mount) {
    if (mount.container_path.empty() || mount.container_path[0] != '/') {
      return InvalidArgument("mount path " + Quote(mount.container_path) + " is not absolute");
    }
    std::vector<std::string> options = mount.options;
    auto has = [&](std::string_view option) {
      return std::find(options.begin(), options.end(), option) != options.end();
    };
    const bool is_bind = mount.type.empty() || mount.type == "bind" || has("bind") || has("rbind");
    if (is_bind && !has("bind") && !has("rbind")) options.push_back("rbind");
    if (is_bind) {
      static constexpr std::string_view kPropagation[] = {"private",    "rprivate",   "slave",
                                                          "rslave",     "shared",     "rshared",
                                                          "unbindable", "runbindable"};
      const bool given = std::any_of(std::begin(kPropagation), std::end(kPropagation), has);
      const std::string wanted = PropagationOption(mount.propagation);
      if (!given) options.push_back(wanted);
      if (has("rshared") || has("shared")) {
        rootfs_propagation_ = "rshared";
      } else if ((has("rslave") || has("slave")) && rootfs_propagation_.empty()) {
        rootfs_propagation_ = "rslave";
      }
    }
    if (!has("ro") && !has("rw")) options.push_back(mount.readonly ? "ro" : "rw");
    json_.BeginObject();
    json_.Member("destination", mount.container_path);
    json_.Member("type", is_bind ? "bind" : mount.type);
    json_.Member("source", mount.host_path);
    json_.Array("options", options);
    json_.EndObject();
    return Ok();
  }
  static std::string PropagationOption(MountPropagation propagation) {
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

  Result<void> Hooks() {
    if (config_.hooks.empty()) return Ok();
    for (const Hook& hook : config_.hooks) {
      if (std::find(std::begin(kHookNames), std::end(kHookNames), hook.name) ==
          std::end(kHookNames)) {
        return InvalidArgument("unknown hook name " + Quote(hook.name));
      }
    }
    json_.Key("hooks").BeginObject();
    for (std::string_view name : kHookNames) {
      bool any = false;
      for (const Hook& hook : config_.hooks) {
        if (hook.name != name) continue;
        if (!any) json_.Key(name).BeginArray();
        any = true;
        json_.BeginObject().Member("path", hook.path);
        if (!hook.arguments.empty()) json_.Array("args", hook.arguments);
        if (!hook.environment.empty()) json_.Array("env", hook.environment);
        if (hook.timeout_seconds) json_.Key("timeout").Integer(*hook.timeout_seconds);
        json_.EndObject();
      }
      if (any) json_.EndArray();
    }
    json_.EndObject();
    return Ok();
  }

  Result<void> Linux() {
    json_.Key("linux").BeginObject();
    json_.Member("cgroupsPath", input_.cgroups_path);
    json_.Key("namespaces").BeginArray();
    for (const NamespacePath& entry : input_.namespaces) {
      json_.BeginObject().Member("type", entry.type);
      if (!entry.path.empty()) json_.Member("path", entry.path);
      json_.EndObject();
    }
    json_.EndArray();
    if (!rootfs_propagation_.empty()) json_.Member("rootfsPropagation", rootfs_propagation_);
    if (!input_.sysctls.empty()) json_.StringMap("sysctl", input_.sysctls);
    if (!config_.security.privileged) {
      const auto& security = config_.security;
      if (security.masked_paths.empty()) {
        json_.Array("maskedPaths", kMaskedPaths);
      } else {
        json_.Array("maskedPaths", security.masked_paths);
      }
      if (security.readonly_paths.empty()) {
        json_.Array("readonlyPaths", kReadonlyPaths);
      } else {
        json_.Array("readonlyPaths", security.readonly_paths);
      }
    }
    RETURN_IF_ERROR(Seccomp());
    RETURN_IF_ERROR(Devices());
    RETURN_IF_ERROR(Resources());
    json_.EndObject();
    return Ok();
  }

  // A privileged container is unconfined regardless of its profile.
  Result<void> Seccomp() {
    if (config_.security.privileged) return Ok();
    switch (config_.security.seccomp) {
      case SeccompKind::kUnconfined:
        return Ok();
      case SeccompKind::kRuntimeDefault: {
        ASSIGN_OR_RETURN(const std::uint64_t wanted, WantedCapabilities(config_.security));
        WriteDefaultSeccomp(wanted & limits_.capabilities, json_.Key("seccomp"));
        return Ok();
      }
      case SeccompKind::kLocalhost: {
        auto written = WriteSeccompProfile(input_.seccomp_profile, json_.Key("seccomp"));
        if (written.ok()) return Ok();
        return std::move(written).error().Prefixed("seccomp profile " +
                                                   Quote(config_.security.seccomp_path));
      }
    }
    return Ok();
  }

  Result<void> Devices() {
    if (input_.devices.empty()) return Ok();
    json_.Key("devices").BeginArray();
    for (const DeviceNode& device : input_.devices) {
      const std::string& path =
          device.container_path.empty() ? device.host_path : device.container_path;
      if (path.empty() || path[0] != '/') {
        return InvalidArgument("device path " + Quote(path) + " is not absolute");
      }
      json_.BeginObject();
      json_.Member("path", path).Member("type", std::string_view(&device.type, 1));
      if (device.type != 'p') {
        json_.Key("major").Integer(device.major).Key("minor").Integer(device.minor);
      }
      if (device.file_mode) json_.Key("fileMode").Unsigned(*device.file_mode);
      json_.Key("uid").Unsigned(device.uid.value_or(0));
      json_.Key("gid").Unsigned(device.gid.value_or(0));
      json_.EndObject();
    }
    json_.EndArray();
    return Ok();
  }

  void DeviceRule(bool allow, char type, std::optional<std::int64_t> major,
                  std::optional<std::int64_t> minor, std::string_view access) {
    json_.BeginObject();
    json_.Key("allow").Bool(allow);
    json_.Member("type", std::string_view(&type, 1));
    if (major) json_.Key("major").Integer(*major);
    if (minor) json_.Key("minor").Integer(*minor);
    json_.Member("access", access);
    json_.EndObject();
  }

  Result<void> Resources() {
    const CgroupResources& resources = config_.resources;
    const CgroupChanges& changes = config_.cgroup_changes;
    json_.Key("resources").BeginObject();
    json_.Key("devices").BeginArray();
    DeviceRule(config_.security.privileged, 'a', std::nullopt, std::nullopt, "rwm");
    if (!config_.security.privileged) {
      for (const DeviceNode& device : input_.devices) {
        if (device.type == 'p') continue;
        DeviceRule(true, device.type == 'u' ? 'c' : device.type, device.major, device.minor,
                   device.permissions.empty() ? "rwm" : device.permissions);
      }
      for (const CgroupDeviceRule& rule : config_.device_rules) {
        DeviceRule(rule.allow, rule.type, rule.major, rule.minor, rule.access);
      }
    }
    json_.EndArray();
    Memory(resources, changes);
    Cpu(resources, changes);
    const auto pids = changes.pids_limit.value_or(resources.pids_limit);
    if (pids != 0) json_.Key("pids").BeginObject().Key("limit").Integer(pids).EndObject();
    std::map<std::string, std::uint64_t> pages = changes.hugepage_limits_bytes;
    for (const auto& [size, limit] : resources.hugepage_limits_bytes) {
      pages.emplace(size, static_cast<std::uint64_t>(limit));
    }
    if (!pages.empty()) {
      json_.Key("hugepageLimits").BeginArray();
      for (const auto& [size, limit] : pages) {
        json_.BeginObject().Member("pageSize", size).Key("limit").Unsigned(limit).EndObject();
      }
      json_.EndArray();
    }
    std::map<std::string, std::string> unified = changes.unified;
    unified.insert(resources.unified.begin(), resources.unified.end());
    if (!unified.empty()) json_.StringMap("unified", unified);
    json_.EndObject();
    return Ok();
  }

  // Only what is set.
  void Number(std::string_view name, std::optional<std::int64_t> value) {
    if (value) json_.Key(name).Integer(*value);
  }

  void Memory(const CgroupResources& resources, const CgroupChanges& changes) {
    auto limit = changes.memory_limit_bytes;
    if (!limit && resources.memory_limit_bytes > 0) limit = resources.memory_limit_bytes;
    auto swap = changes.memory_swap_bytes;
    // A plugin that changes the limit alone would otherwise leave a smaller one for both together.
    if (!swap && limit && resources.memory_swap_limit_bytes > 0) {
      swap = std::max(*limit, resources.memory_swap_limit_bytes);
    }
    if (!limit && !changes.memory_reservation_bytes && !changes.memory_swap_bytes &&
        !changes.memory_swappiness && !changes.disable_oom_killer) {
      return;
    }
    json_.Key("memory").BeginObject();
    Number("limit", limit);
    Number("reservation", changes.memory_reservation_bytes);
    Number("swap", swap);
    Number("swappiness", changes.memory_swappiness);
    if (changes.disable_oom_killer) {
      json_.Key("disableOOMKiller").Bool(*changes.disable_oom_killer);
    }
    json_.EndObject();
  }

  void Cpu(const CgroupResources& resources, const CgroupChanges& changes) {
    const auto of = [](std::optional<std::int64_t> change, std::int64_t value) {
      if (!change && value != 0) change = value;
      return change;
    };
    const auto shares = of(changes.cpu_shares, std::max<std::int64_t>(resources.cpu_shares, 0));
    const auto quota = of(changes.cpu_quota_us, resources.cpu_quota_us);
    const auto period =
        of(changes.cpu_period_us, std::max<std::int64_t>(resources.cpu_period_us, 0));
    const std::string& cpus =
        changes.cpuset_cpus.empty() ? resources.cpuset_cpus : changes.cpuset_cpus;
    const std::string& mems =
        changes.cpuset_mems.empty() ? resources.cpuset_mems : changes.cpuset_mems;
    if (!shares && !quota && cpus.empty() && mems.empty() && !changes.cpu_period_us &&
        !changes.realtime_runtime_us && !changes.realtime_period_us) {
      return;
    }
    json_.Key("cpu").BeginObject();
    Number("shares", shares);
    Number("quota", quota);
    Number("period", period);
    Number("realtimeRuntime", changes.realtime_runtime_us);
    Number("realtimePeriod", changes.realtime_period_us);
    if (!cpus.empty()) json_.Member("cpus", cpus);
    if (!mems.empty()) json_.Member("mems", mems);
    json_.EndObject();
  }

  const ContainerConfig& config_;
  const OciSpecInput& input_;
  const HostLimits& limits_;
  api::JsonWriter json_;
  std::string rootfs_propagation_;
  std::vector<std::string> warnings_;
};

// Copies a value from a config.json that we wrote.
void Copy(api::Value value, api::JsonWriter& out) {
  switch (value.kind()) {
    case api::ValueKind::kArray:
      out.BeginArray();
      for (const api::Value item : value.elements()) Copy(item, out);
      out.EndArray();
      return;
    case api::ValueKind::kObject:
      out.BeginObject();
      for (const api::MemberView member : value.members()) {
        Copy(member.value, out.Key(member.name));
      }
      out.EndObject();
      return;
    // The only numbers here that exceed 63 bits are "unlimited" limits.
    case api::ValueKind::kDouble:
      out.Unsigned(UINT64_MAX);
      return;
    default:
      out.Raw(api::WriteJson(value));
      return;
  }
}

}  // namespace

std::optional<int> CapabilityBit(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string_view wanted = upper;
  if (wanted.starts_with("CAP_")) wanted.remove_prefix(4);
  for (int bit = 0; bit < kCapabilityCount; ++bit) {
    if (kCapabilityNames[bit] == wanted) return bit;
  }
  return std::nullopt;
}

Result<OciSpec> WriteOciSpec(const ContainerConfig& config, const OciSpecInput& input,
                             const HostLimits& limits) {
  return SpecWriter(config, input, limits).Write();
}

Result<std::string> WriteExecProcess(std::string_view spec_json,
                                     const std::vector<std::string>& arguments, bool terminal) {
  ASSIGN_OR_RETURN(const api::TreePtr spec, ParseJson(spec_json));
  const api::Value process = spec->root()["process"];
  if (!process.has_value()) return Error{ErrorCode::kDataLoss, "config.json has no process"};
  api::JsonWriter out;
  out.BeginObject();
  for (const api::MemberView member : process.members()) {
    if (member.name == "args" || member.name == "terminal") continue;
    Copy(member.value, out.Key(member.name));
  }
  out.Array("args", arguments);
  out.Key("terminal").Bool(terminal);
  out.EndObject();
  return out.Take();
}

}  // namespace drakkar::node
