#include "rpc/nri/nri_objects.h"

#include <type_traits>

#include "rpc/internal/codec.h"

namespace drakkar::rpc::nri {
namespace {

namespace wire = nri_wire;
using internal::ValidUtf8;

void FillTexts(const std::map<std::string, std::string>& texts,
               google::protobuf::Map<std::string, std::string>& message) {
  for (const auto& [name, value] : texts) message[ValidUtf8(name)] = ValidUtf8(value);
}

std::map<std::string, std::string> ReadTexts(
    const google::protobuf::Map<std::string, std::string>& message) {
  return {message.begin(), message.end()};
}

// An optional value has a message around it on the wire.
#define FILL_OPTIONAL(message, field, given) \
  if (given)                                 \
  (message).mutable_##field()->set_value(    \
      static_cast<std::remove_cvref_t<decltype((message).field().value())>>(*(given)))
#define READ_OPTIONAL(message, field, taken) \
  if ((message).has_##field())               \
  (taken) = static_cast<std::remove_cvref_t<decltype(taken)>::value_type>((message).field().value())

template <typename Repeated>
void FillMounts(const std::vector<NriMount>& mounts, Repeated& message) {
  for (const NriMount& mount : mounts) {
    wire::Mount& each = *message.Add();
    each.set_destination(ValidUtf8(mount.destination));
    each.set_type(ValidUtf8(mount.type));
    each.set_source(ValidUtf8(mount.source));
    internal::AddStrings(mount.options, each.mutable_options());
  }
}

template <typename Repeated>
std::vector<NriMount> ReadMounts(const Repeated& message) {
  std::vector<NriMount> mounts;
  for (const wire::Mount& each : message) {
    mounts.push_back(
        {each.destination(), each.type(), each.source(), internal::Strings(each.options())});
  }
  return mounts;
}

google::protobuf::RepeatedPtrField<wire::Hook>* HooksOf(std::string_view kind,
                                                        wire::Hooks& message) {
  if (kind == "prestart") return message.mutable_prestart();
  if (kind == "createRuntime") return message.mutable_create_runtime();
  if (kind == "createContainer") return message.mutable_create_container();
  if (kind == "startContainer") return message.mutable_start_container();
  if (kind == "poststart") return message.mutable_poststart();
  return message.mutable_poststop();
}

void FillHooks(const std::vector<NriHook>& hooks, wire::Hooks& message) {
  for (const NriHook& hook : hooks) {
    wire::Hook& each = *HooksOf(hook.kind, message)->Add();
    each.set_path(ValidUtf8(hook.path));
    internal::AddStrings(hook.args, each.mutable_args());
    internal::AddStrings(hook.env, each.mutable_env());
    FILL_OPTIONAL(each, timeout, hook.timeout_seconds);
  }
}

std::vector<NriHook> ReadHooks(const wire::Hooks& message) {
  std::vector<NriHook> hooks;
  wire::Hooks copy = message;
  for (const std::string_view kind : kNriHookKinds) {
    for (const wire::Hook& each : *HooksOf(kind, copy)) {
      NriHook hook{std::string(kind), each.path(), internal::Strings(each.args()),
                   internal::Strings(each.env()), std::nullopt};
      READ_OPTIONAL(each, timeout, hook.timeout_seconds);
      hooks.push_back(std::move(hook));
    }
  }
  return hooks;
}

template <typename Repeated>
void FillRlimits(const std::vector<NriRlimit>& limits, Repeated& message) {
  for (const NriRlimit& limit : limits) {
    wire::POSIXRlimit& each = *message.Add();
    each.set_type(ValidUtf8(limit.type));
    each.set_hard(limit.hard);
    each.set_soft(limit.soft);
  }
}

template <typename Repeated>
std::vector<NriRlimit> ReadRlimits(const Repeated& message) {
  std::vector<NriRlimit> limits;
  for (const wire::POSIXRlimit& each : message) {
    limits.push_back({each.type(), each.hard(), each.soft()});
  }
  return limits;
}

template <typename Repeated>
void FillDevices(const std::vector<NriDevice>& devices, Repeated& message) {
  for (const NriDevice& device : devices) {
    wire::LinuxDevice& each = *message.Add();
    each.set_path(ValidUtf8(device.path));
    each.set_type(ValidUtf8(device.type));
    each.set_major(device.major);
    each.set_minor(device.minor);
    FILL_OPTIONAL(each, file_mode, device.file_mode);
    FILL_OPTIONAL(each, uid, device.uid);
    FILL_OPTIONAL(each, gid, device.gid);
  }
}

template <typename Repeated>
std::vector<NriDevice> ReadDevices(const Repeated& message) {
  std::vector<NriDevice> devices;
  for (const wire::LinuxDevice& each : message) {
    NriDevice device{each.path(), each.type(), each.major(), each.minor(), {}, {}, {}};
    READ_OPTIONAL(each, file_mode, device.file_mode);
    READ_OPTIONAL(each, uid, device.uid);
    READ_OPTIONAL(each, gid, device.gid);
    devices.push_back(std::move(device));
  }
  return devices;
}

template <typename Repeated>
void FillNamespaces(const std::vector<NriNamespace>& namespaces, Repeated& message) {
  for (const NriNamespace& space : namespaces) {
    wire::LinuxNamespace& each = *message.Add();
    each.set_type(ValidUtf8(space.type));
    each.set_path(ValidUtf8(space.path));
  }
}

template <typename Repeated>
std::vector<NriNamespace> ReadNamespaces(const Repeated& message) {
  std::vector<NriNamespace> namespaces;
  for (const wire::LinuxNamespace& each : message) namespaces.push_back({each.type(), each.path()});
  return namespaces;
}

template <typename Repeated>
void FillCdi(const std::vector<std::string>& names, Repeated& message) {
  for (const std::string& name : names) message.Add()->set_name(ValidUtf8(name));
}

template <typename Repeated>
std::vector<std::string> ReadCdi(const Repeated& message) {
  std::vector<std::string> names;
  for (const wire::CDIDevice& each : message) names.push_back(each.name());
  return names;
}

void FillSeccomp(const NriSeccomp& seccomp, wire::LinuxSeccomp& message) {
  message.set_default_action(ValidUtf8(seccomp.default_action));
  FILL_OPTIONAL(message, default_errno, seccomp.default_errno);
  internal::AddStrings(seccomp.architectures, message.mutable_architectures());
  internal::AddStrings(seccomp.flags, message.mutable_flags());
  message.set_listener_path(ValidUtf8(seccomp.listener_path));
  message.set_listener_metadata(ValidUtf8(seccomp.listener_metadata));
  for (const NriSyscalls& syscalls : seccomp.syscalls) {
    wire::LinuxSyscall& each = *message.add_syscalls();
    internal::AddStrings(syscalls.names, each.mutable_names());
    each.set_action(ValidUtf8(syscalls.action));
    FILL_OPTIONAL(each, errno_ret, syscalls.errno_ret);
    for (const NriSeccompArgument& argument : syscalls.args) {
      wire::LinuxSeccompArg& one = *each.add_args();
      one.set_index(argument.index);
      one.set_value(argument.value);
      one.set_value_two(argument.value_two);
      one.set_op(ValidUtf8(argument.op));
    }
  }
}

NriSeccomp ReadSeccomp(const wire::LinuxSeccomp& message) {
  NriSeccomp seccomp;
  seccomp.default_action = message.default_action();
  READ_OPTIONAL(message, default_errno, seccomp.default_errno);
  seccomp.architectures = internal::Strings(message.architectures());
  seccomp.flags = internal::Strings(message.flags());
  seccomp.listener_path = message.listener_path();
  seccomp.listener_metadata = message.listener_metadata();
  for (const wire::LinuxSyscall& each : message.syscalls()) {
    NriSyscalls syscalls{internal::Strings(each.names()), each.action(), {}, {}};
    READ_OPTIONAL(each, errno_ret, syscalls.errno_ret);
    for (const wire::LinuxSeccompArg& one : each.args()) {
      syscalls.args.push_back({one.index(), one.value(), one.value_two(), one.op()});
    }
    seccomp.syscalls.push_back(std::move(syscalls));
  }
  return seccomp;
}

}  // namespace

void Fill(const NriResources& resources, wire::LinuxResources& message) {
  // Plugins read these two without checking whether they are set.
  wire::LinuxMemory& memory = *message.mutable_memory();
  FILL_OPTIONAL(memory, limit, resources.memory_limit);
  FILL_OPTIONAL(memory, reservation, resources.memory_reservation);
  FILL_OPTIONAL(memory, swap, resources.memory_swap);
  FILL_OPTIONAL(memory, kernel, resources.memory_kernel);
  FILL_OPTIONAL(memory, kernel_tcp, resources.memory_kernel_tcp);
  FILL_OPTIONAL(memory, swappiness, resources.memory_swappiness);
  FILL_OPTIONAL(memory, disable_oom_killer, resources.disable_oom_killer);
  FILL_OPTIONAL(memory, use_hierarchy, resources.use_hierarchy);
  wire::LinuxCPU& cpu = *message.mutable_cpu();
  FILL_OPTIONAL(cpu, shares, resources.cpu_shares);
  FILL_OPTIONAL(cpu, quota, resources.cpu_quota);
  FILL_OPTIONAL(cpu, period, resources.cpu_period);
  FILL_OPTIONAL(cpu, realtime_runtime, resources.realtime_runtime);
  FILL_OPTIONAL(cpu, realtime_period, resources.realtime_period);
  cpu.set_cpus(ValidUtf8(resources.cpus));
  cpu.set_mems(ValidUtf8(resources.mems));
  for (const auto& [size, limit] : resources.hugepage_limits) {
    wire::HugepageLimit& each = *message.add_hugepage_limits();
    each.set_page_size(ValidUtf8(size));
    each.set_limit(limit);
  }
  FILL_OPTIONAL(message, blockio_class, resources.blockio_class);
  FILL_OPTIONAL(message, rdt_class, resources.rdt_class);
  FillTexts(resources.unified, *message.mutable_unified());
  for (const NriDeviceRule& rule : resources.devices) {
    wire::LinuxDeviceCgroup& each = *message.add_devices();
    each.set_allow(rule.allow);
    each.set_type(ValidUtf8(rule.type));
    FILL_OPTIONAL(each, major, rule.major);
    FILL_OPTIONAL(each, minor, rule.minor);
    each.set_access(ValidUtf8(rule.access));
  }
  if (resources.pids) message.mutable_pids()->set_limit(*resources.pids);
}

NriResources Read(const wire::LinuxResources& message) {
  NriResources resources;
  const wire::LinuxMemory& memory = message.memory();
  READ_OPTIONAL(memory, limit, resources.memory_limit);
  READ_OPTIONAL(memory, reservation, resources.memory_reservation);
  READ_OPTIONAL(memory, swap, resources.memory_swap);
  READ_OPTIONAL(memory, kernel, resources.memory_kernel);
  READ_OPTIONAL(memory, kernel_tcp, resources.memory_kernel_tcp);
  READ_OPTIONAL(memory, swappiness, resources.memory_swappiness);
  READ_OPTIONAL(memory, disable_oom_killer, resources.disable_oom_killer);
  READ_OPTIONAL(memory, use_hierarchy, resources.use_hierarchy);
  const wire::LinuxCPU& cpu = message.cpu();
  READ_OPTIONAL(cpu, shares, resources.cpu_shares);
  READ_OPTIONAL(cpu, quota, resources.cpu_quota);
  READ_OPTIONAL(cpu, period, resources.cpu_period);
  READ_OPTIONAL(cpu, realtime_runtime, resources.realtime_runtime);
  READ_OPTIONAL(cpu, realtime_period, resources.realtime_period);
  resources.cpus = cpu.cpus();
  resources.mems = cpu.mems();
  for (const wire::HugepageLimit& each : message.hugepage_limits()) {
    resources.hugepage_limits[each.page_size()] = each.limit();
  }
  READ_OPTIONAL(message, blockio_class, resources.blockio_class);
  READ_OPTIONAL(message, rdt_class, resources.rdt_class);
  resources.unified = ReadTexts(message.unified());
  for (const wire::LinuxDeviceCgroup& each : message.devices()) {
    NriDeviceRule rule{each.allow(), each.type(), {}, {}, each.access()};
    READ_OPTIONAL(each, major, rule.major);
    READ_OPTIONAL(each, minor, rule.minor);
    resources.devices.push_back(std::move(rule));
  }
  if (message.has_pids()) resources.pids = message.pids().limit();
  return resources;
}

void Fill(const NriPodSandbox& pod, wire::PodSandbox& message) {
  message.set_id(pod.id);
  message.set_name(pod.name);
  message.set_uid(pod.uid);
  message.set_namespace_(pod.namespace_name);
  FillTexts(pod.labels, *message.mutable_labels());
  FillTexts(pod.annotations, *message.mutable_annotations());
  message.set_runtime_handler(pod.runtime_handler);
  message.set_pid(pod.pid);
  internal::AddStrings(pod.ips, message.mutable_ips());
  wire::LinuxPodSandbox& linux_part = *message.mutable_linux();
  for (const auto& [type, path] : pod.linux_namespaces) {
    wire::LinuxNamespace* each = linux_part.add_namespaces();
    each->set_type(type);
    each->set_path(path);
  }
  linux_part.set_cgroup_parent(pod.cgroup_parent);
  linux_part.set_cgroups_path(pod.cgroups_path);
  Fill(pod.resources, *linux_part.mutable_resources());
  Fill(pod.pod_resources, *linux_part.mutable_pod_resources());
  Fill(pod.pod_overhead, *linux_part.mutable_pod_overhead());
}

NriPodSandbox Read(const wire::PodSandbox& message) {
  NriPodSandbox pod;
  pod.id = message.id();
  pod.name = message.name();
  pod.uid = message.uid();
  pod.namespace_name = message.namespace_();
  pod.labels = ReadTexts(message.labels());
  pod.annotations = ReadTexts(message.annotations());
  pod.runtime_handler = message.runtime_handler();
  pod.pid = message.pid();
  pod.ips = internal::Strings(message.ips());
  const wire::LinuxPodSandbox& linux_part = message.linux();
  for (const wire::LinuxNamespace& each : linux_part.namespaces()) {
    pod.linux_namespaces[each.type()] = each.path();
  }
  pod.cgroup_parent = linux_part.cgroup_parent();
  pod.cgroups_path = linux_part.cgroups_path();
  pod.resources = Read(linux_part.resources());
  pod.pod_resources = Read(linux_part.pod_resources());
  pod.pod_overhead = Read(linux_part.pod_overhead());
  return pod;
}

void Fill(const NriContainer& container, wire::Container& message) {
  message.set_id(container.id);
  message.set_pod_sandbox_id(container.pod_sandbox_id);
  message.set_name(container.name);
  message.set_state(static_cast<std::int32_t>(container.state));
  FillTexts(container.labels, *message.mutable_labels());
  FillTexts(container.annotations, *message.mutable_annotations());
  internal::AddStrings(container.args, message.mutable_args());
  internal::AddStrings(container.env, message.mutable_env());
  FillMounts(container.mounts, *message.mutable_mounts());
  FillHooks(container.hooks, *message.mutable_hooks());
  FillRlimits(container.rlimits, *message.mutable_rlimits());
  FillCdi(container.cdi_devices, *message.mutable_cdi_devices());
  wire::LinuxContainer& linux_part = *message.mutable_linux();
  FillNamespaces(container.namespaces, *linux_part.mutable_namespaces());
  FillDevices(container.devices, *linux_part.mutable_devices());
  Fill(container.resources, *linux_part.mutable_resources());
  FILL_OPTIONAL(linux_part, oom_score_adj, container.oom_score_adj);
  linux_part.set_cgroups_path(container.cgroups_path);
  if (container.seccomp_profile) {
    wire::SecurityProfile& profile = *linux_part.mutable_seccomp_profile();
    profile.set_profile_type(static_cast<std::int32_t>(*container.seccomp_profile));
    profile.set_localhost_ref(ValidUtf8(container.seccomp_file));
  }
  FillTexts(container.sysctl, *linux_part.mutable_sysctl());
  wire::User& user = *message.mutable_user();
  user.set_uid(container.uid);
  user.set_gid(container.gid);
  for (const std::uint32_t gid : container.additional_gids) user.add_additional_gids(gid);
  message.mutable_image()->set_name(ValidUtf8(container.image));
  message.mutable_image()->set_config_digest(ValidUtf8(container.image_digest));
  message.set_pid(container.pid);
  message.set_created_at(container.created_at);
  message.set_started_at(container.started_at);
  message.set_finished_at(container.finished_at);
  message.set_exit_code(container.exit_code);
  message.set_status_reason(ValidUtf8(container.status_reason));
  message.set_status_message(ValidUtf8(container.status_message));
}

NriContainer Read(const wire::Container& message) {
  NriContainer container;
  container.id = message.id();
  container.pod_sandbox_id = message.pod_sandbox_id();
  container.name = message.name();
  if (message.state() >= 0 && message.state() <= static_cast<int>(NriContainerState::kStopped)) {
    container.state = static_cast<NriContainerState>(message.state());
  }
  container.labels = ReadTexts(message.labels());
  container.annotations = ReadTexts(message.annotations());
  container.args = internal::Strings(message.args());
  container.env = internal::Strings(message.env());
  container.mounts = ReadMounts(message.mounts());
  container.hooks = ReadHooks(message.hooks());
  container.rlimits = ReadRlimits(message.rlimits());
  container.cdi_devices = ReadCdi(message.cdi_devices());
  const wire::LinuxContainer& linux_part = message.linux();
  container.namespaces = ReadNamespaces(linux_part.namespaces());
  container.devices = ReadDevices(linux_part.devices());
  container.resources = Read(linux_part.resources());
  READ_OPTIONAL(linux_part, oom_score_adj, container.oom_score_adj);
  container.cgroups_path = linux_part.cgroups_path();
  if (linux_part.has_seccomp_profile()) {
    const std::int32_t type = linux_part.seccomp_profile().profile_type();
    if (type >= 0 && type <= static_cast<std::int32_t>(NriSeccompProfile::kLocalhost)) {
      container.seccomp_profile = static_cast<NriSeccompProfile>(type);
    }
    container.seccomp_file = linux_part.seccomp_profile().localhost_ref();
  }
  container.sysctl = ReadTexts(linux_part.sysctl());
  container.uid = message.user().uid();
  container.gid = message.user().gid();
  for (const std::uint32_t gid : message.user().additional_gids()) {
    container.additional_gids.push_back(gid);
  }
  container.image = message.image().name();
  container.image_digest = message.image().config_digest();
  container.pid = message.pid();
  container.created_at = message.created_at();
  container.started_at = message.started_at();
  container.finished_at = message.finished_at();
  container.exit_code = message.exit_code();
  container.status_reason = message.status_reason();
  container.status_message = message.status_message();
  return container;
}

void Fill(const NriContainerAdjustment& adjustment, wire::ContainerAdjustment& message) {
  FillTexts(adjustment.annotations, *message.mutable_annotations());
  FillMounts(adjustment.mounts, *message.mutable_mounts());
  for (const auto& [name, value] : adjustment.env) {
    wire::KeyValue& each = *message.add_env();
    each.set_key(ValidUtf8(name));
    each.set_value(ValidUtf8(value));
  }
  FillHooks(adjustment.hooks, *message.mutable_hooks());
  FillRlimits(adjustment.rlimits, *message.mutable_rlimits());
  FillCdi(adjustment.cdi_devices, *message.mutable_cdi_devices());
  internal::AddStrings(adjustment.args, message.mutable_args());
  wire::LinuxContainerAdjustment& linux_part = *message.mutable_linux();
  FillDevices(adjustment.devices, *linux_part.mutable_devices());
  Fill(adjustment.resources, *linux_part.mutable_resources());
  linux_part.set_cgroups_path(ValidUtf8(adjustment.cgroups_path));
  FILL_OPTIONAL(linux_part, oom_score_adj, adjustment.oom_score_adj);
  if (adjustment.seccomp) FillSeccomp(*adjustment.seccomp, *linux_part.mutable_seccomp_policy());
  FillNamespaces(adjustment.namespaces, *linux_part.mutable_namespaces());
  FillTexts(adjustment.sysctl, *linux_part.mutable_sysctl());
}

NriContainerAdjustment Read(const wire::ContainerAdjustment& message) {
  NriContainerAdjustment adjustment;
  adjustment.annotations = ReadTexts(message.annotations());
  adjustment.mounts = ReadMounts(message.mounts());
  for (const wire::KeyValue& each : message.env()) {
    adjustment.env.emplace_back(each.key(), each.value());
  }
  adjustment.hooks = ReadHooks(message.hooks());
  adjustment.rlimits = ReadRlimits(message.rlimits());
  adjustment.cdi_devices = ReadCdi(message.cdi_devices());
  adjustment.args = internal::Strings(message.args());
  const wire::LinuxContainerAdjustment& linux_part = message.linux();
  adjustment.devices = ReadDevices(linux_part.devices());
  adjustment.resources = Read(linux_part.resources());
  adjustment.cgroups_path = linux_part.cgroups_path();
  READ_OPTIONAL(linux_part, oom_score_adj, adjustment.oom_score_adj);
  if (linux_part.has_seccomp_policy())
    adjustment.seccomp = ReadSeccomp(linux_part.seccomp_policy());
  adjustment.namespaces = ReadNamespaces(linux_part.namespaces());
  adjustment.sysctl = ReadTexts(linux_part.sysctl());
  const auto note = [&](const char* name, bool present) {
    if (present) adjustment.unsupported.emplace_back(name);
  };
  note("I/O priority", linux_part.has_io_priority());
  note("network devices", !linux_part.net_devices().empty());
  note("scheduler", linux_part.has_scheduler());
  note("RDT", linux_part.has_rdt());
  note("memory policy", linux_part.has_memory_policy());
  return adjustment;
}

void Fill(const NriContainerUpdate& update, wire::ContainerUpdate& message) {
  message.set_container_id(ValidUtf8(update.container_id));
  Fill(update.resources, *message.mutable_linux()->mutable_resources());
  message.set_ignore_failure(update.ignore_failure);
}

NriContainerUpdate Read(const wire::ContainerUpdate& message) {
  return {message.container_id(), Read(message.linux().resources()), message.ignore_failure()};
}

#undef FILL_OPTIONAL
#undef READ_OPTIONAL

}  // namespace drakkar::rpc::nri
