#include "node/pods/container_config.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/meta/quantity.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cdi/container_plan.h"
#include "node/pods/container_probes.h"
#include "node/pods/environment.h"
#include "node/pods/pod_facts.h"

namespace drakkar::node {
namespace {

using api::Value;

// The kernel's limit, without the final zero.
constexpr std::size_t kMaxKernelHostname = 64;
constexpr std::string_view kIngressBandwidth = "kubernetes.io/ingress-bandwidth";
constexpr std::string_view kEgressBandwidth = "kubernetes.io/egress-bandwidth";

std::vector<std::string> StringsOf(Value list) {
  std::vector<std::string> strings;
  for (Value each : list.elements()) strings.emplace_back(each.str());
  return strings;
}

// The container's setting if it has one, otherwise the pod's.
Value Setting(Value pod, Value container, api::FieldName name) {
  const Value own = container["securityContext"][name];
  return own.has_value() ? own : pod["spec"]["securityContext"][name];
}

Result<void> SetSeccomp(const ContainerConfigInput& input, SecurityContext& security) {
  const Value profile = Setting(input.pod, input.container, "seccompProfile");
  const std::string_view type = profile["type"].str();
  if (type == "RuntimeDefault" || (type.empty() && input.seccomp_default)) {
    security.seccomp = SeccompKind::kRuntimeDefault;
  } else if (type == "Localhost") {
    const std::string_view path = profile["localhostProfile"].str();
    for (std::string_view part : Split(path, '/')) {
      if (!part.empty() && part != "..") continue;
      return InvalidArgument(StrCat("seccomp profile ", Quote(path),
                                    " must be a path below the node's ", input.seccomp_directory));
    }
    security.seccomp = SeccompKind::kLocalhost;
    security.seccomp_path = JoinPath(input.seccomp_directory, path);
  } else if (!type.empty() && type != "Unconfined") {
    return InvalidArgument(StrCat("unknown seccomp profile type ", Quote(type)));
  }
  return Ok();
}

Result<SecurityContext> MakeSecurity(const ContainerConfigInput& input) {
  const Value pod = input.pod;
  const Value container = input.container;
  SecurityContext security;
  RETURN_IF_ERROR(SetSeccomp(input, security));
  if (auto user = Setting(pod, container, "runAsUser").optional_integer()) {
    security.user = std::to_string(*user);
  }
  security.group = Setting(pod, container, "runAsGroup").optional_integer();
  security.run_as_non_root = Setting(pod, container, "runAsNonRoot").boolean();
  const Value pod_context = pod["spec"]["securityContext"];
  for (Value group : pod_context["supplementalGroups"].elements()) {
    security.supplemental_groups.push_back(group.integer());
  }
  if (auto group = pod_context["fsGroup"].optional_integer()) {
    security.supplemental_groups.push_back(*group);
  }
  security.only_given_groups = pod_context["supplementalGroupsPolicy"].str() == "Strict";
  const Value own = container["securityContext"];
  security.privileged = own["privileged"].boolean();
  security.readonly_rootfs = own["readOnlyRootFilesystem"].boolean();
  security.no_new_privileges = own["allowPrivilegeEscalation"].optional_boolean() == false;
  security.add_capabilities = StringsOf(own["capabilities"]["add"]);
  security.drop_capabilities = StringsOf(own["capabilities"]["drop"]);
  if (own["procMount"].str() == "Unmasked") security.masked_paths = {};
  return security;
}

Mount MountFromPlan(const cdi::PlannedMount& planned) {
  Mount mount;
  mount.host_path = planned.source;
  mount.container_path = planned.destination;
  mount.type = planned.type.empty() || planned.type == "none" ? "bind" : planned.type;
  for (const std::string& option : planned.options) {
    if (option == "ro") {
      mount.readonly = true;
    } else if (option == "rw" || option == "bind" || option == "rbind") {
      continue;
    } else if (option == "rslave" || option == "slave") {
      mount.propagation = MountPropagation::kHostToContainer;
    } else if (option == "rshared" || option == "shared") {
      mount.propagation = MountPropagation::kBidirectional;
    } else if (option != "rprivate" && option != "private") {
      mount.options.push_back(option);
    }
  }
  return mount;
}

std::size_t Depth(const std::string& path) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

}  // namespace

std::string ResourcesText(Value container) {
  api::Draft resources = api::Draft::Object();
  for (const api::FieldName part : api::FieldNames{"limits", "requests"}) {
    for (const api::MemberView each : container["resources"][part].members()) {
      resources[part].Entry(each.name) = each.value.str();
    }
  }
  return api::WriteJson(resources.Freeze()->root(), {.sort_members = true});
}

std::string PodHostname(Value pod) {
  const std::string_view chosen = pod["spec"]["hostnameOverride"].str();
  const std::string_view wanted = chosen.empty() ? pod["spec"]["hostname"].str() : chosen;
  std::string name(wanted.empty() ? pod["metadata"]["name"].str() : wanted);
  // The kernel allows 64 characters. Cutting a name may leave a trailing '-' or '.', which is
  // invalid.
  name.resize(std::min<std::size_t>(name.size(), 63));
  while (name.ends_with('-') || name.ends_with('.')) name.pop_back();
  return name;
}

Result<std::string> KernelHostname(Value pod, std::string_view cluster_domain) {
  const std::string name = PodHostname(pod);
  const Value spec = pod["spec"];
  const std::string_view subdomain = spec["subdomain"].str();
  if (!spec["hostnameOverride"].str().empty()) return name;
  if (!spec["setHostnameAsFQDN"].boolean() || subdomain.empty()) return name;
  const std::string full = StrCat(name, ".", subdomain, ".", pod["metadata"]["namespace"].str(),
                                  ".svc.", cluster_domain);
  if (full.size() > kMaxKernelHostname) {
    return InvalidArgument(
        StrCat("Failed to construct FQDN from Pod hostname and cluster domain, FQDN ", full,
               " is too long (", kMaxKernelHostname, " is the max, ", full.size(),
               " characters requested)"));
  }
  return full;
}

namespace {

void AddPorts(Value container, PodSandboxConfig& config) {
  for (Value port : container["ports"].elements()) {
    const std::int64_t host_port = port["hostPort"].integer();
    if (host_port <= 0) continue;
    config.ports.push_back({.host_port = static_cast<int>(host_port),
                            .container_port = static_cast<int>(port["containerPort"].integer()),
                            .protocol = std::string(port["protocol"].str("TCP")),
                            .host_ip = std::string(port["hostIP"].str())});
  }
}

// A rate that is not a quantity has no effect; the API server's validation is not ours to repeat.
std::int64_t BitsPerSecond(Value annotations, std::string_view name) {
  const auto rate = api::Quantity::Parse(annotations.Entry(name).str());
  return rate.ok() && rate->Sign() > 0 ? rate->Value() : 0;
}

}  // namespace

PodSandboxConfig MakeSandboxConfig(Value pod, std::uint32_t attempt,
                                   const std::string& log_directory) {
  const Value metadata = pod["metadata"];
  const Value spec = pod["spec"];
  PodSandboxConfig config;
  config.name = std::string(metadata["name"].str());
  config.namespace_name = std::string(metadata["namespace"].str());
  config.uid = std::string(metadata["uid"].str());
  config.attempt = attempt;
  config.log_directory = log_directory;
  if (!spec["hostNetwork"].boolean()) config.hostname = PodHostname(pod);
  config.host_network = spec["hostNetwork"].boolean();
  if (!config.host_network) {
    for (Value container : spec["initContainers"].elements()) {
      if (container["restartPolicy"].str() == "Always") AddPorts(container, config);
    }
    for (Value container : spec["containers"].elements()) AddPorts(container, config);
    config.bandwidth = {BitsPerSecond(metadata["annotations"], kIngressBandwidth),
                        BitsPerSecond(metadata["annotations"], kEgressBandwidth)};
  }
  config.host_pid = spec["hostPID"].boolean();
  config.host_ipc = spec["hostIPC"].boolean();
  config.share_process_namespace = spec["shareProcessNamespace"].boolean();
  for (Value sysctl : spec["securityContext"]["sysctls"].elements()) {
    config.sysctls[std::string(sysctl["name"].str())] = std::string(sysctl["value"].str());
  }
  for (const api::MemberView label : metadata["labels"].members()) {
    config.labels[std::string(label.name)] = std::string(label.value.str());
  }
  config.labels[kPodNameLabel] = config.name;
  config.labels[kPodNamespaceLabel] = config.namespace_name;
  config.labels[kPodUidLabel] = config.uid;
  for (const api::MemberView annotation : metadata["annotations"].members()) {
    config.annotations[std::string(annotation.name)] = std::string(annotation.value.str());
  }
  return config;
}

Result<ContainerConfig> MakeContainerConfig(ContainerConfigInput input) {
  const Value container = input.container;
  const Value metadata = input.pod["metadata"];
  ContainerConfig config;
  config.name = std::string(container["name"].str());
  config.attempt = input.attempt;
  config.image = std::string(container["image"].str());
  std::map<std::string, std::string> variables;
  for (const EnvironmentVariable& each : input.environment) variables[each.name] = each.value;
  std::size_t budget_bytes = kMaxCommandBytes;
  for (auto [field, words] : {std::pair(api::FieldName("command"), &config.command),
                              std::pair(api::FieldName("args"), &config.arguments)}) {
    for (Value word : container[field].elements()) {
      auto expanded = ExpandReferences(word.str(), variables, budget_bytes);
      if (!expanded.ok()) return expanded.error().Prefixed(field);
      budget_bytes -= expanded->size();
      words->push_back(*std::move(expanded));
    }
  }
  config.working_directory = std::string(container["workingDir"].str());
  config.environment = std::move(input.environment);
  config.mounts = std::move(input.mounts);
  config.resources = std::move(input.limits);
  ASSIGN_OR_RETURN(config.security, MakeSecurity(input));
  config.tty = container["tty"].boolean();
  config.standard_input = container["stdin"].boolean();
  config.standard_input_once = container["stdinOnce"].boolean();
  config.stop_signal = std::string(container["lifecycle"]["stopSignal"].str());
  config.log_path = ContainerLogPath(config.name, input.attempt);
  config.labels[kPodNameLabel] = std::string(metadata["name"].str());
  config.labels[kPodNamespaceLabel] = std::string(metadata["namespace"].str());
  config.labels[kPodUidLabel] = std::string(metadata["uid"].str());
  config.labels[kContainerNameLabel] = config.name;
  config.annotations["io.kubernetes.container.restartCount"] = std::to_string(input.attempt);
  config.annotations[kResourcesAnnotation] = ResourcesText(container);
  config.annotations[kImageAnnotation] = config.image;
  if (input.pod_run > 0) config.annotations[kPodRunAnnotation] = std::to_string(input.pod_run);
  config.annotations["io.kubernetes.container.terminationMessagePath"] =
      std::string(container["terminationMessagePath"].str());
  config.annotations["io.kubernetes.container.terminationMessagePolicy"] =
      std::string(container["terminationMessagePolicy"].str());
  config.annotations["io.kubernetes.pod.terminationGracePeriod"] =
      std::to_string(input.pod["spec"]["terminationGracePeriodSeconds"].integer(30));
  return config;
}

namespace {

// /var/run is a link to /run.
std::string_view RealRun(std::string_view path) {
  constexpr std::string_view kVar = "/var";
  return path.starts_with("/var/run/") ? path.substr(kVar.size()) : path;
}

// Moves the devices that the runtime can resolve from `ids` to the configuration.
void LeaveToRuntime(const cdi::Cache& cache, const std::vector<std::string>& directories,
                    std::vector<std::string>& ids, ContainerConfig& config) {
  std::erase_if(ids, [&](const std::string& id) {
    const std::string directory = DirectoryName(cache.FileOf(id));
    const bool readable = std::ranges::any_of(
        directories, [&](const std::string& each) { return RealRun(each) == RealRun(directory); });
    if (readable) config.cdi_devices.push_back(id);
    return readable;
  });
}

}  // namespace

Result<void> ApplyCdi(cdi::Cache& cache, DeviceNodeProbe& probe, std::vector<std::string> ids,
                      ContainerConfig& config,
                      const std::vector<std::string>& runtime_directories) {
  if (ids.empty()) return Ok();
  ASSIGN_OR_RETURN(cdi::ContainerEdits edits, cache.Resolve(ids));
  if (!runtime_directories.empty()) {
    LeaveToRuntime(cache, runtime_directories, ids, config);
    if (ids.empty()) return Ok();
    ASSIGN_OR_RETURN(edits, cache.Resolve(ids));
  }
  // CDI edits are applied to an empty plan and then merged into the configuration, because a plan
  // cannot express all properties of its mounts.
  cdi::ContainerPlan plan;
  if (auto user = ParseInt64(config.security.user)) plan.uid = static_cast<std::uint32_t>(*user);
  if (config.security.group) plan.gid = static_cast<std::uint32_t>(*config.security.group);
  RETURN_IF_ERROR(cdi::ApplyEdits(edits, probe, &plan));
  if (!plan.net_devices.empty() || plan.intel_rdt) {
    return Error{ErrorCode::kUnimplemented,
                 "CDI network devices and Intel RDT are not supported by this node's runtime"};
  }
  for (const std::string& variable : plan.env) {
    const std::size_t equals = variable.find('=');
    config.environment.push_back({variable.substr(0, equals),
                                  equals == std::string::npos ? "" : variable.substr(equals + 1)});
  }
  for (const cdi::PlannedMount& planned : plan.mounts) {
    std::erase_if(config.mounts,
                  [&](const Mount& mount) { return mount.container_path == planned.destination; });
    config.mounts.push_back(MountFromPlan(planned));
  }
  std::stable_sort(config.mounts.begin(), config.mounts.end(), [](const Mount& a, const Mount& b) {
    return Depth(a.container_path) < Depth(b.container_path);
  });
  for (const cdi::PlannedDevice& planned : plan.devices) {
    DeviceNode device;
    device.host_path = planned.path;
    device.container_path = planned.path;
    device.type = planned.type.empty() ? '\0' : planned.type[0];
    device.major = planned.major;
    device.minor = planned.minor;
    device.file_mode = planned.file_mode;
    device.uid = planned.uid;
    device.gid = planned.gid;
    // The permissions come from the matching device rule, which the runtime recreates from the
    // device.
    bool ruled = false;
    for (const cdi::DeviceRule& rule : plan.device_rules) {
      if (rule.type != planned.type || rule.major != planned.major || rule.minor != planned.minor)
        continue;
      device.permissions = rule.access;
      ruled = true;
    }
    if (!ruled && device.type != 'p') {
      return Error{
          ErrorCode::kUnimplemented,
          StrCat("CDI device ", planned.path, " allows no access, which this node cannot express")};
    }
    std::erase_if(config.devices,
                  [&](const DeviceNode& each) { return each.container_path == planned.path; });
    config.devices.push_back(std::move(device));
  }
  for (const auto& [name, hooks] : plan.hooks) {
    for (const cdi::PlannedHook& hook : hooks) {
      Hook made{.name = name, .path = hook.path, .arguments = hook.args, .environment = hook.env};
      if (hook.timeout_seconds) made.timeout_seconds = static_cast<int>(*hook.timeout_seconds);
      config.hooks.push_back(std::move(made));
    }
  }
  for (std::uint32_t gid : plan.additional_gids) {
    config.security.supplemental_groups.push_back(gid);
  }
  return Ok();
}

namespace {

bool WantsAppArmor(Value context) {
  const std::string_view type = context["appArmorProfile"]["type"].str();
  return !type.empty() && type != "Unconfined";
}

}  // namespace

std::optional<IsolationRefusal> CheckIsolation(Value pod) {
  const Value spec = pod["spec"];
  if (spec["hostUsers"].optional_boolean() == false) {
    return IsolationRefusal{"UserNamespacesUnsupported",
                            "this node cannot run pods in a user namespace of their own: remove "
                            "spec.hostUsers, or run the pod on a node that can"};
  }
  bool app_armor = WantsAppArmor(spec["securityContext"]);
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : spec[list].elements()) {
      app_armor = app_armor || WantsAppArmor(container["securityContext"]);
    }
  }
  if (app_armor) {
    return IsolationRefusal{
        "AppArmor", "Cannot enforce AppArmor: this node's runtime does not apply its profiles"};
  }
  return std::nullopt;
}

std::vector<std::string> ListIgnoredFields(Value pod, bool probes_network) {
  std::vector<std::string> fields;
  const Value spec = pod["spec"];
  if (!spec["securityContext"]["seLinuxOptions"].empty())
    fields.push_back("securityContext.seLinuxOptions");
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : spec[list].elements()) {
      for (const api::FieldName field :
           api::FieldNames{"livenessProbe", "readinessProbe", "startupProbe"}) {
        const Value probe = container[field];
        if (probe.has_value() && !CanRunProbe(probe, probes_network)) {
          fields.push_back(StrCat(field, " of container ", container["name"].str()));
        }
      }
      for (const api::FieldName hook : api::FieldNames{"preStop", "postStart"}) {
        const Value action = container["lifecycle"][hook];
        if (action.has_value() && !CanRunHook(action, probes_network)) {
          fields.push_back(StrCat("lifecycle.", hook, " of container ", container["name"].str()));
        }
      }
      if (!container["securityContext"]["seLinuxOptions"].empty()) {
        fields.push_back(
            StrCat("securityContext.seLinuxOptions of container ", container["name"].str()));
      }
      if (!container["volumeDevices"].empty()) {
        fields.push_back(StrCat("volumeDevices of container ", container["name"].str()));
      }
    }
  }
  return fields;
}

std::string HostsFileText(const HostsFileInput& input, std::string_view node_hosts) {
  const Value pod = input.pod;
  const Value spec = pod["spec"];
  std::string text;
  if (spec["hostNetwork"].boolean()) {
    text = StrCat("# Kubernetes-managed hosts file (host network).\n", node_hosts);
  } else {
    text =
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n";
    const std::string name = PodHostname(pod);
    const std::string_view subdomain = spec["subdomain"].str();
    for (const std::string& pod_ip : input.pod_ips) {
      if (!subdomain.empty() && spec["hostnameOverride"].str().empty()) {
        text += StrCat(pod_ip, "\t", name, ".", subdomain, ".", pod["metadata"]["namespace"].str(),
                       ".svc.", input.cluster_domain, "\t", name, "\n");
      } else {
        text += StrCat(pod_ip, "\t", name, "\n");
      }
    }
  }
  if (!spec["hostAliases"].empty()) text += "\n# Entries added by HostAliases.\n";
  for (Value alias : spec["hostAliases"].elements()) {
    std::vector<std::string_view> names;
    for (Value name : alias["hostnames"].elements()) names.push_back(name.str());
    text += StrCat(alias["ip"].str(), "\t", Join(names, "\t"), "\n");
  }
  return text;
}

Result<void> WriteHostsFile(FileSystem& files, const HostsFileInput& input,
                            const std::string& path) {
  std::string own;
  if (input.pod["spec"]["hostNetwork"].boolean()) {
    // Without an /etc/hosts on the machine there are no names to add.
    if (auto read = files.ReadFile("/etc/hosts"); read.ok()) own = std::move(*read);
  }
  const std::string text = HostsFileText(input, own);
  RETURN_IF_ERROR(files.MakeDirectories(DirectoryName(path), 0755));
  // Containers may have written anything to it.
  if (auto now = files.ReadFileRange(path, 0, text.size() + 1); now.ok() && *now == text) {
    return Ok();
  }
  RETURN_IF_ERROR(files.WriteFile(path, text, 0644));
  return files.SetMode(path, 0644);
}

std::string PodLogDirectory(const std::string& root, Value pod) {
  const Value metadata = pod["metadata"];
  return StrCat(root, "/", metadata["namespace"].str(), "_", metadata["name"].str(), "_",
                metadata["uid"].str());
}

std::string ContainerLogPath(const std::string& container, std::uint32_t attempt) {
  return StrCat(container, "/", attempt, ".log");
}

}  // namespace drakkar::node
