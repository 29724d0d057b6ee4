#include "node/runtime/cri/cri_messages.h"

#include <rpc_proto/cri.pb.h>

#include <algorithm>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node::cri {
namespace {

namespace wire = rpc::cri_wire;

constexpr char kConfigAnnotation[] = "node.drakkar.io/cri-sandbox-config";
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

template <typename Message>
Result<Message> Parse(const std::string& bytes, std::string_view name) {
  Message message;
  if (!message.ParseFromString(bytes)) {
    return Internal(StrCat("the container runtime sent a malformed ", name));
  }
  return message;
}

// Protobuf strings must be UTF-8; a runtime in Go refuses the whole message otherwise.
std::string Text(std::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string valid;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) {
      valid += c;
    } else {
      valid += "\xEF\xBF\xBD";
    }
  }
  return valid;
}

template <typename Map>
void FillMap(const std::map<std::string, std::string>& from, Map* to) {
  for (const auto& [name, value] : from) (*to)[Text(name)] = Text(value);
}

template <typename Map>
std::map<std::string, std::string> ReadMap(const Map& from) {
  return std::map<std::string, std::string>(from.begin(), from.end());
}

WallTime TimeOf(std::int64_t nanoseconds) {
  return WallTime(Duration(std::max<std::int64_t>(nanoseconds, 0)));
}

void Fill(const CgroupResources& from, wire::LinuxContainerResources* to) {
  to->set_cpu_shares(from.cpu_shares);
  to->set_cpu_quota(from.cpu_quota_us);
  to->set_cpu_period(from.cpu_period_us);
  to->set_cpuset_cpus(from.cpuset_cpus);
  to->set_cpuset_mems(from.cpuset_mems);
  to->set_memory_limit_in_bytes(from.memory_limit_bytes);
  if (from.memory_limit_bytes > 0) {
    to->set_memory_swap_limit_in_bytes(from.memory_swap_limit_bytes);
  }
  FillMap(from.unified, to->mutable_unified());
  to->set_oom_score_adj(from.oom_score_adjust.value_or(0));
  for (const auto& [size, bytes] : from.hugepage_limits_bytes) {
    wire::HugepageLimit* limit = to->add_hugepage_limits();
    limit->set_page_size(size);
    limit->set_limit(static_cast<std::uint64_t>(bytes));
  }
}

void FillNamespaces(const PodSandboxConfig& config, wire::NamespaceOption* to) {
  to->set_network(config.host_network ? wire::NODE : wire::POD);
  to->set_ipc(config.host_ipc ? wire::NODE : wire::POD);
  to->set_pid(config.host_pid                  ? wire::NODE
              : config.share_process_namespace ? wire::POD
                                               : wire::CONTAINER);
}

void FillSeccomp(SeccompKind kind, const std::string& path, wire::SecurityProfile* to) {
  switch (kind) {
    case SeccompKind::kUnconfined:
      to->set_profile_type(wire::SecurityProfile::Unconfined);
      break;
    case SeccompKind::kRuntimeDefault:
      to->set_profile_type(wire::SecurityProfile::RuntimeDefault);
      break;
    case SeccompKind::kLocalhost:
      to->set_profile_type(wire::SecurityProfile::Localhost);
      to->set_localhost_ref(path);
      break;
  }
}

Result<void> Fill(const SecurityContext& from, wire::LinuxContainerSecurityContext* to) {
  if (const auto user = ParseInt64(from.user)) {
    to->mutable_run_as_user()->set_value(*user);
  } else if (!from.user.empty()) {
    to->set_run_as_username(from.user);
  }
  if (from.group) {
    if (from.user.empty()) {
      return InvalidArgument("CRI needs runAsUser together with runAsGroup");
    }
    to->mutable_run_as_group()->set_value(*from.group);
  }
  for (const std::int64_t group : from.supplemental_groups) to->add_supplemental_groups(group);
  if (from.only_given_groups) to->set_supplemental_groups_policy(wire::Strict);
  for (const std::string& name : from.add_capabilities) {
    to->mutable_capabilities()->add_add_capabilities(name);
  }
  for (const std::string& name : from.drop_capabilities) {
    to->mutable_capabilities()->add_drop_capabilities(name);
  }
  to->set_privileged(from.privileged);
  to->set_readonly_rootfs(from.readonly_rootfs);
  to->set_no_new_privs(from.no_new_privileges);
  if (!from.privileged) {
    for (const std::string& path : from.masked_paths) to->add_masked_paths(path);
    for (const std::string& path : from.readonly_paths) to->add_readonly_paths(path);
    if (from.masked_paths.empty()) {
      for (const std::string_view path : kMaskedPaths) to->add_masked_paths(std::string(path));
    }
    if (from.readonly_paths.empty()) {
      for (const std::string_view path : kReadonlyPaths) to->add_readonly_paths(std::string(path));
    }
  }
  FillSeccomp(from.privileged ? SeccompKind::kUnconfined : from.seccomp, from.seccomp_path,
              to->mutable_seccomp());
  return Ok();
}

Result<void> Fill(const Mount& from, wire::Mount* to) {
  if (from.type != "bind") {
    return InvalidArgument(StrCat("a mount of type ", from.type, " at ", from.container_path,
                                  " cannot be passed over CRI; enable CDI in the runtime"));
  }
  if (from.image.empty()) {
    to->set_host_path(from.host_path);
  } else {
    to->mutable_image()->set_image(from.image);
    to->set_image_sub_path(from.host_path);
  }
  to->set_container_path(from.container_path);
  to->set_readonly(from.readonly);
  switch (from.propagation) {
    case MountPropagation::kPrivate:
      to->set_propagation(wire::PROPAGATION_PRIVATE);
      break;
    case MountPropagation::kHostToContainer:
      to->set_propagation(wire::PROPAGATION_HOST_TO_CONTAINER);
      break;
    case MountPropagation::kBidirectional:
      to->set_propagation(wire::PROPAGATION_BIDIRECTIONAL);
      break;
  }
  return Ok();
}

// "SIGTERM" or "SIGRTMIN+2" as CRI's enumeration; the runtime's default if it has no such value.
wire::Signal SignalOf(const std::string& name) {
  std::string full = "SIGNAL_";
  for (const char c : name) full += c == '+' ? "PLUS" : c == '-' ? "MINUS" : std::string(1, c);
  wire::Signal signal = wire::SIGNAL_RUNTIME_DEFAULT;
  return wire::Signal_Parse(full, &signal) ? signal : wire::SIGNAL_RUNTIME_DEFAULT;
}

ContainerState StateOf(wire::ContainerState state) {
  switch (state) {
    case wire::CONTAINER_CREATED:
      return ContainerState::kCreated;
    case wire::CONTAINER_RUNNING:
      return ContainerState::kRunning;
    case wire::CONTAINER_EXITED:
      return ContainerState::kExited;
    default:
      return ContainerState::kUnknown;
  }
}

// The JSON of one key of a verbose answer; null if absent or malformed.
template <typename Map>
api::TreePtr InfoJson(const Map& info, const char* key) {
  const auto found = info.find(key);
  if (found == info.end()) return nullptr;
  auto parsed = ParseJson(found->second);
  return parsed.ok() ? *parsed : nullptr;
}

template <typename Wire>
Sandbox ReadSandbox(const Wire& from) {
  Sandbox to;
  PodSandbox& sandbox = to.sandbox;
  sandbox.id = from.id();
  sandbox.name = from.metadata().name();
  sandbox.namespace_name = from.metadata().namespace_();
  sandbox.uid = from.metadata().uid();
  sandbox.attempt = from.metadata().attempt();
  sandbox.state =
      from.state() == wire::SANDBOX_READY ? SandboxState::kReady : SandboxState::kNotReady;
  sandbox.created_at = TimeOf(from.created_at());
  sandbox.labels = ReadMap(from.labels());
  sandbox.annotations = ReadMap(from.annotations());
  sandbox.runtime_handler = from.runtime_handler();
  if (auto config = sandbox.annotations.find(kConfigAnnotation);
      config != sandbox.annotations.end()) {
    if (auto bytes = Base64Decode(config->second); bytes.ok()) to.config = *std::move(bytes);
    sandbox.annotations.erase(config);
  }
  return to;
}

}  // namespace

std::string EncodeVersionRequest() {
  wire::VersionRequest request;
  request.set_version("v1");
  return request.SerializeAsString();
}

Result<Version> DecodeVersion(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, Parse<wire::VersionResponse>(bytes, "VersionResponse"));
  return Version{message.runtime_name(), message.runtime_version()};
}

std::string EncodeStatusRequest() {
  wire::StatusRequest request;
  request.set_verbose(true);
  return request.SerializeAsString();
}

Result<RuntimeStatus> DecodeStatus(const std::string& bytes, const Version& version) {
  ASSIGN_OR_RETURN(const auto message, Parse<wire::StatusResponse>(bytes, "StatusResponse"));
  RuntimeStatus status;
  for (const wire::RuntimeCondition& condition : message.status().conditions()) {
    if (condition.status()) continue;
    if (condition.type() != "RuntimeReady" && condition.type() != "NetworkReady") continue;
    if (!status.not_ready.empty()) status.not_ready += "; ";
    status.not_ready +=
        StrCat(condition.type(), ": ", condition.reason(), ": ", condition.message());
  }
  status.features.user_namespaces_host_network = message.features().user_namespaces_host_network();
  status.features.mount_options = message.features().mount_options();
  status.has_groups_policy = message.features().supplemental_groups_policy();
  for (const wire::RuntimeHandler& each : message.runtime_handlers()) {
    if (!status.handlers) status.handlers.emplace();
    status.handlers->push_back(
        {.name = each.name(),
         .recursive_read_only_mounts = each.features().recursive_read_only_mounts(),
         .user_namespaces = each.features().user_namespaces()});
  }
  if (const api::TreePtr config = InfoJson(message.info(), "config")) {
    // containerd's own configuration.
    const api::Value root = config->root();
    if (!status.handlers && root["containerd"]["runtimes"].is_object()) {
      // Version 1 lists its handlers only here.
      status.handlers.emplace();
      for (const api::MemberView member : root["containerd"]["runtimes"].members()) {
        status.handlers->push_back({.name = std::string(member.name)});
      }
    }
    if (root["enableCDI"].boolean()) {
      status.cdi_directories = Strings(root["cdiSpecDirs"]);
    }
    const api::Value runtimes = root["containerd"]["runtimes"];
    const std::string_view name = root["containerd"]["defaultRuntimeName"].str("runc");
    const api::Value systemd = runtimes.Entry(name)["options"]["SystemdCgroup"];
    if (systemd.has_value()) status.systemd_cgroups = systemd.boolean();
  } else if (version.runtime_name == "cri-o") {
    status.cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  }
  return status;
}

Result<bool> DecodeUsesSystemdCgroups(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::RuntimeConfigResponse>(bytes, "RuntimeConfigResponse"));
  return message.linux().cgroup_driver() == wire::SYSTEMD;
}

SandboxRequest EncodeRunPodSandbox(const PodSandboxConfig& config) {
  wire::RunPodSandboxRequest request;
  wire::PodSandboxConfig* to = request.mutable_config();
  wire::PodSandboxMetadata* metadata = to->mutable_metadata();
  metadata->set_name(config.name);
  metadata->set_namespace_(config.namespace_name);
  metadata->set_uid(config.uid);
  metadata->set_attempt(config.attempt);
  // On the host's network a pod has the host's name; runtimes refuse to set another.
  if (!config.host_network) to->set_hostname(config.hostname);
  to->set_log_directory(config.log_directory);
  FillMap(config.labels, to->mutable_labels());
  (*to->mutable_labels())[kPodUidLabel] = config.uid;
  if (config.dns) {
    for (const std::string& each : config.dns->servers) to->mutable_dns_config()->add_servers(each);
    for (const std::string& each : config.dns->searches) {
      to->mutable_dns_config()->add_searches(each);
    }
    for (const std::string& each : config.dns->options) to->mutable_dns_config()->add_options(each);
  }
  for (const PortMapping& port : config.ports) {
    wire::PortMapping* mapping = to->add_port_mappings();
    mapping->set_host_port(port.host_port);
    mapping->set_container_port(port.container_port);
    mapping->set_host_ip(port.host_ip);
    mapping->set_protocol(port.protocol == "UDP"    ? wire::UDP
                          : port.protocol == "SCTP" ? wire::SCTP
                                                    : wire::TCP);
  }
  wire::LinuxPodSandboxConfig* linux_config = to->mutable_linux();
  linux_config->set_cgroup_parent(config.cgroup_parent);
  FillMap(config.sysctls, linux_config->mutable_sysctls());
  wire::LinuxSandboxSecurityContext* security = linux_config->mutable_security_context();
  FillNamespaces(config, security->mutable_namespace_options());
  // The pause process needs no unusual system calls.
  FillSeccomp(SeccompKind::kRuntimeDefault, "", security->mutable_seccomp());
  Fill(config.resources, linux_config->mutable_resources());
  request.set_runtime_handler(config.runtime_handler);
  SandboxRequest encoded;
  encoded.config = to->SerializeAsString();
  FillMap(config.annotations, to->mutable_annotations());
  if (config.bandwidth.ingress_bits > 0) {
    (*to->mutable_annotations())["kubernetes.io/ingress-bandwidth"] =
        std::to_string(config.bandwidth.ingress_bits);
  }
  if (config.bandwidth.egress_bits > 0) {
    (*to->mutable_annotations())["kubernetes.io/egress-bandwidth"] =
        std::to_string(config.bandwidth.egress_bits);
  }
  (*to->mutable_annotations())[kConfigAnnotation] = Base64Encode(encoded.config);
  encoded.message = request.SerializeAsString();
  return encoded;
}

std::string CgroupParentOf(const std::string& config) {
  wire::PodSandboxConfig message;
  return message.ParseFromString(config) ? message.linux().cgroup_parent() : "";
}

std::string LogDirectoryOf(const std::string& config) {
  wire::PodSandboxConfig message;
  return message.ParseFromString(config) ? message.log_directory() : "";
}

Result<std::string> DecodeRunPodSandbox(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::RunPodSandboxResponse>(bytes, "RunPodSandboxResponse"));
  if (message.pod_sandbox_id().empty()) return Internal("the container runtime sent no sandbox id");
  return message.pod_sandbox_id();
}

std::string EncodeSandboxId(const std::string& id) {
  wire::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  return request.SerializeAsString();
}

std::string EncodePodSandboxStatusRequest(const std::string& id) {
  wire::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(id);
  request.set_verbose(true);
  return request.SerializeAsString();
}

Result<Sandbox> DecodePodSandboxStatus(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::PodSandboxStatusResponse>(bytes, "PodSandboxStatusResponse"));
  Sandbox sandbox = ReadSandbox(message.status());
  const wire::PodSandboxNetworkStatus& network = message.status().network();
  if (!network.ip().empty()) sandbox.sandbox.ips.push_back(network.ip());
  for (const wire::PodIP& more : network.additional_ips()) {
    sandbox.sandbox.ips.push_back(more.ip());
  }
  if (const api::TreePtr info = InfoJson(message.info(), "info")) {
    for (const api::Value space : info->root()["runtimeSpec"]["linux"]["namespaces"].elements()) {
      if (space["type"].str() == "network") {
        sandbox.sandbox.network_namespace = std::string(space["path"].str());
      }
    }
  }
  return sandbox;
}

Result<std::vector<Sandbox>> DecodeListPodSandbox(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ListPodSandboxResponse>(bytes, "ListPodSandboxResponse"));
  std::vector<Sandbox> list;
  for (const wire::PodSandbox& each : message.items()) {
    if (each.labels().contains(kPodUidLabel)) list.push_back(ReadSandbox(each));
  }
  return list;
}

Result<std::string> EncodeCreateContainer(const CreateInput& input) {
  const ContainerConfig& config = input.config;
  wire::CreateContainerRequest request;
  request.set_pod_sandbox_id(input.sandbox_id);
  if (!request.mutable_sandbox_config()->ParseFromString(input.sandbox_config)) {
    return Internal("the sandbox's configuration cannot be read");
  }
  if (!config.hooks.empty() || !config.device_rules.empty()) {
    return InvalidArgument(
        "CDI hooks and device rules cannot be passed over CRI; enable CDI in the runtime, and let "
        "it read the directory of the spec");
  }
  if (!config.rlimits.empty()) return InvalidArgument("rlimits cannot be passed over CRI");
  wire::ContainerConfig* to = request.mutable_config();
  to->mutable_metadata()->set_name(config.name);
  to->mutable_metadata()->set_attempt(config.attempt);
  to->mutable_image()->set_image(input.image_id);
  to->mutable_image()->set_user_specified_image(config.image);
  for (const std::string& word : config.command) to->add_command(Text(word));
  for (const std::string& word : config.arguments) to->add_args(Text(word));
  to->set_working_dir(config.working_directory);
  for (const EnvironmentVariable& variable : config.environment) {
    wire::KeyValue* pair = to->add_envs();
    pair->set_key(Text(variable.name));
    pair->set_value(variable.value);
  }
  for (const Mount& mount : config.mounts) RETURN_IF_ERROR(Fill(mount, to->add_mounts()));
  for (const DeviceNode& device : config.devices) {
    wire::Device* node = to->add_devices();
    node->set_host_path(device.host_path);
    node->set_container_path(device.container_path.empty() ? device.host_path
                                                           : device.container_path);
    node->set_permissions(device.permissions);
  }
  for (const std::string& id : config.cdi_devices) to->add_cdi_devices()->set_name(id);
  FillMap(config.labels, to->mutable_labels());
  (*to->mutable_labels())[kPodUidLabel] = request.sandbox_config().metadata().uid();
  FillMap(config.annotations, to->mutable_annotations());
  to->set_log_path(config.log_path);
  to->set_stdin(config.standard_input);
  to->set_stdin_once(config.standard_input_once);
  to->set_tty(config.tty);
  to->set_stop_signal(SignalOf(config.stop_signal));
  Fill(config.resources, to->mutable_linux()->mutable_resources());
  wire::LinuxContainerSecurityContext* security = to->mutable_linux()->mutable_security_context();
  RETURN_IF_ERROR(Fill(config.security, security));
  *security->mutable_namespace_options() =
      request.sandbox_config().linux().security_context().namespace_options();
  if (!input.process_namespace_of.empty()) {
    security->mutable_namespace_options()->set_pid(wire::TARGET);
    security->mutable_namespace_options()->set_target_id(input.process_namespace_of);
  }
  return request.SerializeAsString();
}

Result<std::string> DecodeCreateContainer(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::CreateContainerResponse>(bytes, "CreateContainerResponse"));
  if (message.container_id().empty()) return Internal("the container runtime sent no container id");
  return message.container_id();
}

std::string EncodeContainerId(const std::string& id) {
  wire::StartContainerRequest request;
  request.set_container_id(id);
  return request.SerializeAsString();
}

std::string EncodeStopContainer(const std::string& id, std::int64_t timeout_seconds) {
  wire::StopContainerRequest request;
  request.set_container_id(id);
  request.set_timeout(timeout_seconds);
  return request.SerializeAsString();
}

std::string EncodeContainerStatusRequest(const std::string& id) {
  wire::ContainerStatusRequest request;
  request.set_container_id(id);
  request.set_verbose(true);
  return request.SerializeAsString();
}

Result<ContainerStatus> DecodeContainerStatus(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ContainerStatusResponse>(bytes, "ContainerStatusResponse"));
  const wire::ContainerStatus& from = message.status();
  ContainerStatus to;
  to.id = from.id();
  to.name = from.metadata().name();
  to.attempt = from.metadata().attempt();
  to.state = StateOf(from.state());
  to.created_at = TimeOf(from.created_at());
  to.started_at = TimeOf(from.started_at());
  to.finished_at = TimeOf(from.finished_at());
  to.exit_code = from.exit_code();
  to.reason = from.reason();
  to.message = from.message();
  to.image = from.image().user_specified_image().empty() ? from.image().image()
                                                         : from.image().user_specified_image();
  to.image_id = from.image_ref().empty() ? from.image_id() : from.image_ref();
  to.log_path = from.log_path();
  to.labels = ReadMap(from.labels());
  to.annotations = ReadMap(from.annotations());
  if (to.state == ContainerState::kExited && to.reason.empty()) {
    to.reason = std::string(to.exit_code == 0 ? kReasonCompleted : kReasonError);
  }
  if (from.user().has_linux()) {
    const wire::LinuxContainerUser& user = from.user().linux();
    to.user = {user.uid(),
               user.gid(),
               {user.supplemental_groups().begin(), user.supplemental_groups().end()}};
  }
  if (const api::TreePtr info = InfoJson(message.info(), "info")) {
    to.sandbox_id = std::string(info->root()["sandboxID"].str());
    if (to.state == ContainerState::kRunning) {
      to.pid = static_cast<int>(info->root()["pid"].integer());
    }
  }
  return to;
}

Result<std::vector<ContainerStatus>> DecodeListContainers(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ListContainersResponse>(bytes, "ListContainersResponse"));
  std::vector<ContainerStatus> list;
  for (const wire::Container& from : message.containers()) {
    ContainerStatus to;
    to.id = from.id();
    to.sandbox_id = from.pod_sandbox_id();
    to.name = from.metadata().name();
    to.attempt = from.metadata().attempt();
    to.state = StateOf(from.state());
    to.created_at = TimeOf(from.created_at());
    to.labels = ReadMap(from.labels());
    to.annotations = ReadMap(from.annotations());
    list.push_back(std::move(to));
  }
  return list;
}

std::string EncodeUpdateResources(const std::string& id, const ResourceUpdate& update) {
  wire::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  Fill(update.container, request.mutable_linux());
  // Unset would leave the old limit in place.
  if (update.container.cpu_quota_us == 0) request.mutable_linux()->set_cpu_quota(-1);
  FillMap(update.annotations, request.mutable_annotations());
  return request.SerializeAsString();
}

std::string EncodeExecSync(const std::string& id, const std::vector<std::string>& command,
                           std::int64_t timeout_seconds) {
  wire::ExecSyncRequest request;
  request.set_container_id(id);
  for (const std::string& word : command) request.add_cmd(Text(word));
  request.set_timeout(timeout_seconds);
  return request.SerializeAsString();
}

Result<ExecResult> DecodeExecSync(const std::string& bytes, std::size_t max_output) {
  ASSIGN_OR_RETURN(auto message, Parse<wire::ExecSyncResponse>(bytes, "ExecSyncResponse"));
  ExecResult result{message.exit_code(), std::move(*message.mutable_stdout()),
                    std::move(*message.mutable_stderr())};
  for (std::string* text : {&result.output, &result.error_output}) {
    if (text->size() > max_output) text->erase(0, text->size() - max_output);
  }
  return result;
}

std::string EncodeExec(const std::string& id, const std::vector<std::string>& command,
                       const StreamOptions& options) {
  wire::ExecRequest request;
  request.set_container_id(id);
  for (const std::string& word : command) request.add_cmd(Text(word));
  request.set_tty(options.terminal);
  request.set_stdin(options.standard_input);
  request.set_stdout(options.standard_output);
  request.set_stderr(options.error_output && !options.terminal);
  return request.SerializeAsString();
}

std::string EncodeAttach(const std::string& id, const StreamOptions& options) {
  wire::AttachRequest request;
  request.set_container_id(id);
  request.set_tty(options.terminal);
  request.set_stdin(options.standard_input);
  request.set_stdout(options.standard_output);
  request.set_stderr(options.error_output && !options.terminal);
  return request.SerializeAsString();
}

std::string EncodePortForward(const std::string& sandbox_id, std::uint16_t port) {
  wire::PortForwardRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  request.add_port(port);
  return request.SerializeAsString();
}

Result<std::string> DecodeStreamUrl(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, Parse<wire::ExecResponse>(bytes, "ExecResponse"));
  if (message.url().empty()) return Internal("the container runtime sent no address to stream to");
  return message.url();
}

Result<ContainerEvent> DecodeEvent(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ContainerEventResponse>(bytes, "ContainerEventResponse"));
  return ContainerEvent{message.container_id(), message.pod_sandbox_status().id(),
                        message.container_event_type() == wire::CONTAINER_DELETED_EVENT};
}

Result<std::vector<CriImage>> DecodeListImages(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ListImagesResponse>(bytes, "ListImagesResponse"));
  std::vector<CriImage> list;
  for (const wire::Image& from : message.images()) {
    CriImage to;
    to.image.id = from.id();
    to.image.size_bytes = from.size();
    to.image.names.assign(from.repo_tags().begin(), from.repo_tags().end());
    to.image.names.insert(to.image.names.end(), from.repo_digests().begin(),
                          from.repo_digests().end());
    std::sort(to.image.names.begin(), to.image.names.end());
    to.image.digests.assign(from.repo_digests().begin(), from.repo_digests().end());
    to.pulled = !from.repo_digests().empty();
    to.image.is_pinned = from.pinned();
    list.push_back(std::move(to));
  }
  return list;
}

std::string EncodePullImage(const std::string& image, const RegistryCredential* credential) {
  wire::PullImageRequest request;
  request.mutable_image()->set_image(image);
  if (credential != nullptr) {
    request.mutable_auth()->set_username(credential->username);
    request.mutable_auth()->set_password(credential->password);
  }
  return request.SerializeAsString();
}

std::string EncodeRemoveImage(const std::string& id) {
  wire::RemoveImageRequest request;
  request.mutable_image()->set_image(id);
  return request.SerializeAsString();
}

Result<std::string> DecodePullImage(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, Parse<wire::PullImageResponse>(bytes, "PullImageResponse"));
  return message.image_ref();
}

}  // namespace drakkar::node::cri
