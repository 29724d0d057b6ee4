#include "apiserver/admission/pod_security/checks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text/text.h"

namespace drakkar::apiserver::pod_security {
namespace {

using api::Value;
using Names = std::vector<std::string>;
using NameSet = std::set<std::string>;

template <typename Visit>
void VisitContainers(Value spec, const Visit& visit) {
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (Value container : spec[list].elements()) visit(container);
  }
}

template <typename List>
std::string JoinQuoted(const List& names) {
  return names.empty() ? std::string() : StrCat("\"", Join(names, "\", \""), "\"");
}

std::string_view Plural(std::string_view one, std::string_view several, std::size_t count) {
  return count == 1 ? one : several;
}

// container "a" or containers "a", "b"
template <typename List>
std::string ContainersText(const List& names) {
  return StrCat(Plural("container", "containers", names.size()), " ", JoinQuoted(names));
}

// Who set a field: pod and containers "a", "b"
std::string SettersText(bool pod, const Names& containers) {
  Names parts;
  if (pod) parts.emplace_back("pod");
  if (!containers.empty()) parts.push_back(ContainersText(containers));
  return Join(parts, " and ");
}

// The names of the containers for which `is_bad` is true.
template <typename IsBad>
Names BadContainers(Value spec, const IsBad& is_bad) {
  Names names;
  VisitContainers(spec, [&](Value container) {
    if (is_bad(container)) names.emplace_back(container["name"].str());
  });
  return names;
}

bool IsWindows(Value spec) {
  return spec["os"]["name"].str() == "windows";
}

bool HasUserNamespace(Value spec) {
  return spec["hostUsers"].optional_boolean() == false;
}

// The same check for all pods that are not exempt.
template <CheckPod check, bool (*is_exempt)(Value spec)>
std::optional<Violation> Unless(Value metadata, Value spec) {
  if (is_exempt(spec)) return std::nullopt;
  return check(metadata, spec);
}

// --- baseline ---

std::optional<Violation> AppArmorProfile(Value metadata, Value spec) {
  NameSet types;
  const auto is_bad = [&](Value holder) {
    const Value profile = holder["securityContext"]["appArmorProfile"];
    const std::string_view type = profile["type"].str();
    if (!profile.has_value() || type == "RuntimeDefault" || type == "Localhost") return false;
    types.emplace(type);
    return true;
  };
  const bool pod = is_bad(spec);
  const Names containers = BadContainers(spec, is_bad);
  Names annotations;
  for (const auto& [key, name, value] : metadata["annotations"].members()) {
    if (!name.starts_with("container.apparmor.security.beta.kubernetes.io/")) continue;
    const std::string_view profile = value.str();
    if (profile.empty() || profile == "runtime/default" || profile.starts_with("localhost/")) {
      continue;
    }
    annotations.push_back(StrCat(name, "=", Quote(profile)));
  }
  std::ranges::sort(annotations);
  Names values(types.begin(), types.end());
  values.insert(values.end(), annotations.begin(), annotations.end());
  if (values.empty()) return std::nullopt;
  std::string setters = SettersText(pod, containers);
  if (!annotations.empty()) {
    setters += StrCat(setters.empty() ? "" : " and ",
                      Plural("annotation", "annotations", annotations.size()));
  }
  return Violation{std::string(Plural("forbidden AppArmor profile", "forbidden AppArmor profiles",
                                      values.size())),
                   StrCat(setters, " must not set AppArmor profile type to ", JoinQuoted(values))};
}

std::optional<Violation> CapabilitiesBaseline(Value, Value spec) {
  static constexpr std::string_view kAllowed[] = {
      "AUDIT_WRITE", "CHOWN",      "DAC_OVERRIDE",    "FOWNER", "FSETID",
      "KILL",        "MKNOD",      "SETFCAP",         "SETGID", "SETPCAP",
      "SETUID",      "SYS_CHROOT", "NET_BIND_SERVICE"};
  NameSet added;
  const Names containers = BadContainers(spec, [&](Value container) {
    bool bad = false;
    for (Value each : container["securityContext"]["capabilities"]["add"].elements()) {
      if (std::ranges::find(kAllowed, each.str()) != std::end(kAllowed)) continue;
      added.emplace(each.str());
      bad = true;
    }
    return bad;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"non-default capabilities",
                   StrCat(ContainersText(containers), " must not include ", JoinQuoted(added),
                          " in securityContext.capabilities.add")};
}

std::optional<Violation> HostNamespaces(Value, Value spec) {
  Names shared;
  for (const api::FieldName field : api::FieldNames{"hostNetwork", "hostPID", "hostIPC"}) {
    if (spec[field].boolean()) shared.push_back(StrCat(field, "=true"));
  }
  if (shared.empty()) return std::nullopt;
  return Violation{"host namespaces", Join(shared, ", ")};
}

std::optional<Violation> HostPathVolumes(Value, Value spec) {
  Names volumes;
  for (Value volume : spec["volumes"].elements()) {
    if (volume["hostPath"].has_value()) volumes.emplace_back(volume["name"].str());
  }
  if (volumes.empty()) return std::nullopt;
  return Violation{"hostPath volumes",
                   StrCat(Plural("volume", "volumes", volumes.size()), " ", JoinQuoted(volumes))};
}

std::optional<Violation> HostPorts(Value, Value spec) {
  NameSet ports;
  const Names containers = BadContainers(spec, [&](Value container) {
    bool bad = false;
    for (Value port : container["ports"].elements()) {
      if (port["hostPort"].integer() == 0) continue;
      ports.insert(StrCat(port["hostPort"].integer()));
      bad = true;
    }
    return bad;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{
      "hostPort",
      StrCat(ContainersText(containers), " ", Plural("uses", "use", containers.size()), " ",
             Plural("hostPort", "hostPorts", ports.size()), " ", Join(ports, ", "))};
}

std::optional<Violation> HostProbesAndHostLifecycle(Value, Value spec) {
  NameSet containers;
  NameSet hosts;
  VisitContainers(spec, [&](Value container) {
    for (Value handler :
         {container["livenessProbe"], container["readinessProbe"], container["startupProbe"],
          container["lifecycle"]["postStart"], container["lifecycle"]["preStop"]}) {
      for (const api::FieldName action : api::FieldNames{"httpGet", "tcpSocket"}) {
        const std::string_view host = handler[action]["host"].str();
        if (host.empty()) continue;
        containers.emplace(container["name"].str());
        hosts.emplace(host);
      }
    }
  });
  if (containers.empty()) return std::nullopt;
  return Violation{
      "probe or lifecycle host",
      StrCat(ContainersText(containers), " ", Plural("uses", "use", containers.size()), " ",
             Plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.size()), " ",
             JoinQuoted(hosts))};
}

std::optional<Violation> Privileged(Value, Value spec) {
  const Names containers = BadContainers(
      spec, [](Value container) { return container["securityContext"]["privileged"].boolean(); });
  if (containers.empty()) return std::nullopt;
  return Violation{"privileged", StrCat(ContainersText(containers),
                                        " must not set securityContext.privileged=true")};
}

std::optional<Violation> ProcMount(Value, Value spec) {
  NameSet types;
  const Names containers = BadContainers(spec, [&](Value container) {
    const Value mount = container["securityContext"]["procMount"];
    if (!mount.has_value() || mount.str() == "Default") return false;
    types.emplace(mount.str());
    return true;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"procMount",
                   StrCat(ContainersText(containers), " must not set securityContext.procMount to ",
                          JoinQuoted(types))};
}

template <int minor>
std::optional<Violation> SeLinuxOptions(Value, Value spec) {
  NameSet types;
  bool user = false;
  bool role = false;
  const auto is_bad = [&](Value holder) {
    const Value options = holder["securityContext"]["seLinuxOptions"];
    if (!options.has_value()) return false;
    const std::string_view type = options["type"].str();
    const bool is_allowed = type.empty() || type == "container_t" || type == "container_init_t" ||
                            type == "container_kvm_t" ||
                            (minor >= 31 && type == "container_engine_t");
    if (!is_allowed) types.emplace(type);
    const bool has_user = !options["user"].str().empty();
    const bool has_role = !options["role"].str().empty();
    user = user || has_user;
    role = role || has_role;
    return !is_allowed || has_user || has_role;
  };
  const bool pod = is_bad(spec);
  const Names containers = BadContainers(spec, is_bad);
  if (!pod && containers.empty()) return std::nullopt;
  Names why;
  if (!types.empty()) {
    why.push_back(StrCat(Plural("type", "types", types.size()), " ", JoinQuoted(types)));
  }
  if (user) why.emplace_back("user may not be set");
  if (role) why.emplace_back("role may not be set");
  return Violation{"seLinuxOptions",
                   StrCat(SettersText(pod, containers),
                          " set forbidden securityContext.seLinuxOptions: ", Join(why, "; "))};
}

// Until 1.18, when profiles were annotations.
std::optional<Violation> SeccompAnnotations(Value metadata, Value spec) {
  NameSet forbidden;
  const auto look_at = [&](const std::string& name) {
    const Value annotation = metadata["annotations"].Entry(name);
    if (!annotation.has_value()) return;
    const std::string_view profile = annotation.str();
    if (profile == "runtime/default" || profile == "docker/default" ||
        profile.starts_with("localhost/")) {
      return;
    }
    forbidden.insert(StrCat(name, "=", Quote(profile)));
  };
  look_at("seccomp.security.alpha.kubernetes.io/pod");
  VisitContainers(spec, [&](Value container) {
    look_at(StrCat("container.seccomp.security.alpha.kubernetes.io/", container["name"].str()));
  });
  if (forbidden.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   StrCat("forbidden ", Plural("annotation", "annotations", forbidden.size()), " ",
                          Join(forbidden, ", "))};
}

// Profiles that are set must be allowed; with `is_required` one must be set.
template <bool is_required>
std::optional<Violation> SeccompProfile(Value, Value spec) {
  NameSet types;
  const auto is_bad = [&](Value holder) {
    const Value profile = holder["securityContext"]["seccompProfile"];
    const std::string_view type = profile["type"].str();
    if (!profile.has_value() || type == "RuntimeDefault" || type == "Localhost") return false;
    types.emplace(type);
    return true;
  };
  const bool pod = is_bad(spec);
  const Names containers = BadContainers(spec, is_bad);
  if (pod || !containers.empty()) {
    return Violation{"seccompProfile", StrCat(SettersText(pod, containers),
                                              " must not set securityContext.seccompProfile.type "
                                              "to ",
                                              JoinQuoted(types))};
  }
  if (!is_required || spec["securityContext"]["seccompProfile"].has_value()) return std::nullopt;
  const Names without = BadContainers(spec, [](Value container) {
    return !container["securityContext"]["seccompProfile"].has_value();
  });
  if (without.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   StrCat("pod or ", ContainersText(without),
                          " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                          "\"Localhost\"")};
}

template <int minor>
std::optional<Violation> Sysctls(Value, Value spec) {
  struct Safe {
    std::string_view name;
    int since_minor;
  };
  static constexpr Safe kSafe[] = {
      {"kernel.shm_rmid_forced", 0},
      {"net.ipv4.ip_local_port_range", 0},
      {"net.ipv4.tcp_syncookies", 0},
      {"net.ipv4.ping_group_range", 0},
      {"net.ipv4.ip_unprivileged_port_start", 0},
      {"net.ipv4.ip_local_reserved_ports", 27},
      {"net.ipv4.tcp_keepalive_time", 29},
      {"net.ipv4.tcp_fin_timeout", 29},
      {"net.ipv4.tcp_keepalive_intvl", 29},
      {"net.ipv4.tcp_keepalive_probes", 29},
      {"net.ipv4.tcp_rmem", 32},
      {"net.ipv4.tcp_wmem", 32},
      {"net.ipv4.tcp_slow_start_after_idle", 37},
      {"net.ipv4.tcp_notsent_lowat", 37},
  };
  Names forbidden;
  for (Value sysctl : spec["securityContext"]["sysctls"].elements()) {
    const std::string_view name = sysctl["name"].str();
    const bool is_safe = std::ranges::any_of(
        kSafe, [&](const Safe& safe) { return safe.name == name && safe.since_minor <= minor; });
    if (!is_safe) forbidden.emplace_back(name);
  }
  if (forbidden.empty()) return std::nullopt;
  return Violation{"forbidden sysctls", Join(forbidden, ", ")};
}

std::optional<Violation> WindowsHostProcess(Value, Value spec) {
  const auto is_bad = [](Value holder) {
    return holder["securityContext"]["windowsOptions"]["hostProcess"].boolean();
  };
  const bool pod = is_bad(spec);
  const Names containers = BadContainers(spec, is_bad);
  if (!pod && containers.empty()) return std::nullopt;
  return Violation{"hostProcess",
                   StrCat(SettersText(pod, containers),
                          " must not set securityContext.windowsOptions.hostProcess=true")};
}

// --- restricted ---

std::optional<Violation> AllowPrivilegeEscalation(Value, Value spec) {
  const Names containers = BadContainers(spec, [](Value container) {
    return container["securityContext"]["allowPrivilegeEscalation"].optional_boolean() != false;
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"allowPrivilegeEscalation != false",
                   StrCat(ContainersText(containers),
                          " must set securityContext.allowPrivilegeEscalation=false")};
}

std::optional<Violation> CapabilitiesRestricted(Value, Value spec) {
  const Names keeping = BadContainers(spec, [](Value container) {
    for (Value each : container["securityContext"]["capabilities"]["drop"].elements()) {
      if (each.str() == "ALL") return false;
    }
    return true;
  });
  NameSet added;
  const Names adding = BadContainers(spec, [&](Value container) {
    bool bad = false;
    for (Value each : container["securityContext"]["capabilities"]["add"].elements()) {
      if (each.str() == "NET_BIND_SERVICE") continue;
      added.emplace(each.str());
      bad = true;
    }
    return bad;
  });
  Names why;
  if (!keeping.empty()) {
    why.push_back(
        StrCat(ContainersText(keeping), " must set securityContext.capabilities.drop=[\"ALL\"]"));
  }
  if (!adding.empty()) {
    why.push_back(StrCat(ContainersText(adding), " must not include ", JoinQuoted(added),
                         " in securityContext.capabilities.add"));
  }
  if (why.empty()) return std::nullopt;
  return Violation{"unrestricted capabilities", Join(why, "; ")};
}

std::optional<Violation> RestrictedVolumes(Value, Value spec) {
  static constexpr api::FieldName kAllowed[] = {
      "configMap", "csi",   "downwardAPI",           "emptyDir",
      "ephemeral", "image", "persistentVolumeClaim", "projected",
      "secret"};
  // The order in which fields are named if a volume has several.
  static constexpr api::FieldName kOthers[] = {"hostPath",
                                               "gcePersistentDisk",
                                               "awsElasticBlockStore",
                                               "gitRepo",
                                               "nfs",
                                               "iscsi",
                                               "glusterfs",
                                               "rbd",
                                               "flexVolume",
                                               "cinder",
                                               "cephfs",
                                               "flocker",
                                               "fc",
                                               "azureFile",
                                               "vsphereVolume",
                                               "quobyte",
                                               "azureDisk",
                                               "photonPersistentDisk",
                                               "portworxVolume",
                                               "scaleIO",
                                               "storageos"};
  Names volumes;
  NameSet types;
  for (Value volume : spec["volumes"].elements()) {
    const auto has = [&](api::FieldName source) { return volume[source].has_value(); };
    if (std::ranges::any_of(kAllowed, has)) continue;
    volumes.emplace_back(volume["name"].str());
    const auto found = std::ranges::find_if(kOthers, has);
    types.emplace(found == std::end(kOthers) ? "unknown" : found->view());
  }
  if (volumes.empty()) return std::nullopt;
  return Violation{"restricted volume types",
                   StrCat(Plural("volume", "volumes", volumes.size()), " ", JoinQuoted(volumes),
                          " ", Plural("uses", "use", volumes.size()), " ",
                          Plural("restricted volume type", "restricted volume types", types.size()),
                          " ", JoinQuoted(types))};
}

std::optional<Violation> RunAsNonRoot(Value, Value spec) {
  const auto setting = [](Value holder) {
    return holder["securityContext"]["runAsNonRoot"].optional_boolean();
  };
  const std::optional<bool> of_pod = setting(spec);
  const Names refusing =
      BadContainers(spec, [&](Value container) { return setting(container) == false; });
  if (of_pod == false || !refusing.empty()) {
    return Violation{"runAsNonRoot != true",
                     StrCat(SettersText(of_pod == false, refusing),
                            " must not set securityContext.runAsNonRoot=false")};
  }
  if (of_pod == true) return std::nullopt;
  const Names silent =
      BadContainers(spec, [&](Value container) { return !setting(container).has_value(); });
  if (silent.empty()) return std::nullopt;
  return Violation{"runAsNonRoot != true", StrCat("pod or ", ContainersText(silent),
                                                  " must set securityContext.runAsNonRoot=true")};
}

std::optional<Violation> RunAsUser(Value, Value spec) {
  const auto is_root = [](Value holder) {
    const Value user = holder["securityContext"]["runAsUser"];
    return user.has_value() && user.integer() == 0;
  };
  const bool pod = is_root(spec);
  const Names containers = BadContainers(spec, is_root);
  if (!pod && containers.empty()) return std::nullopt;
  return Violation{"runAsUser=0",
                   StrCat(SettersText(pod, containers), " must not set runAsUser=0")};
}

constexpr Level kBaseline = Level::kBaseline;
constexpr Level kRestricted = Level::kRestricted;

constexpr std::array kChecks = {
    Check{"appArmorProfile", kBaseline, 0, AppArmorProfile},
    Check{"capabilities_baseline", kBaseline, 0, CapabilitiesBaseline},
    Check{"hostNamespaces", kBaseline, 0, HostNamespaces},
    Check{"hostPathVolumes", kBaseline, 0, HostPathVolumes},
    Check{"hostPorts", kBaseline, 0, HostPorts},
    Check{"hostProbesAndHostLifecycle", kBaseline, 34, HostProbesAndHostLifecycle},
    Check{"privileged", kBaseline, 0, Privileged},
    Check{"procMount", kBaseline, 0, ProcMount},
    Check{"procMount", kBaseline, 35, Unless<ProcMount, HasUserNamespace>},
    Check{"seLinuxOptions", kBaseline, 0, SeLinuxOptions<0>},
    Check{"seLinuxOptions", kBaseline, 31, SeLinuxOptions<31>},
    Check{"seccompProfile_baseline", kBaseline, 0, SeccompAnnotations},
    Check{"seccompProfile_baseline", kBaseline, 19, SeccompProfile<false>},
    Check{"sysctls", kBaseline, 0, Sysctls<0>},
    Check{"sysctls", kBaseline, 27, Sysctls<27>},
    Check{"sysctls", kBaseline, 29, Sysctls<29>},
    Check{"sysctls", kBaseline, 32, Sysctls<32>},
    Check{"sysctls", kBaseline, 37, Sysctls<37>},
    Check{"windowsHostProcess", kBaseline, 0, WindowsHostProcess},
    Check{"allowPrivilegeEscalation", kRestricted, 8, AllowPrivilegeEscalation},
    Check{"allowPrivilegeEscalation", kRestricted, 25, Unless<AllowPrivilegeEscalation, IsWindows>},
    Check{"capabilities_restricted", kRestricted, 22, CapabilitiesRestricted,
          "capabilities_baseline"},
    Check{"capabilities_restricted", kRestricted, 25, Unless<CapabilitiesRestricted, IsWindows>,
          "capabilities_baseline"},
    Check{"procMount_restricted", kRestricted, 35, ProcMount, "procMount"},
    Check{"restrictedVolumes", kRestricted, 0, RestrictedVolumes, "hostPathVolumes"},
    Check{"runAsNonRoot", kRestricted, 0, RunAsNonRoot},
    Check{"runAsNonRoot", kRestricted, 35, Unless<RunAsNonRoot, HasUserNamespace>},
    Check{"runAsUser", kRestricted, 23, RunAsUser},
    Check{"runAsUser", kRestricted, 35, Unless<RunAsUser, HasUserNamespace>},
    Check{"seccompProfile_restricted", kRestricted, 19, SeccompProfile<true>,
          "seccompProfile_baseline"},
    Check{"seccompProfile_restricted", kRestricted, 25, Unless<SeccompProfile<true>, IsWindows>,
          "seccompProfile_baseline"},
};

}  // namespace

std::span<const Check> AllChecks() {
  return kChecks;
}

std::vector<Violation> Violations(LevelVersion policy, int newest_minor, Value metadata,
                                  Value spec) {
  std::vector<Violation> violations;
  const int minor = std::min(policy.minor, newest_minor);
  // The last entry that is old enough applies to this release.
  const auto holds = [&](std::size_t i) {
    const bool is_replaced = i + 1 < kChecks.size() && kChecks[i + 1].name == kChecks[i].name &&
                             kChecks[i + 1].since_minor <= minor;
    return kChecks[i].level <= policy.level && kChecks[i].since_minor <= minor && !is_replaced;
  };
  const auto is_overridden = [&](std::string_view name) {
    for (std::size_t i = 0; i < kChecks.size(); ++i) {
      if (kChecks[i].overrides == name && holds(i)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < kChecks.size(); ++i) {
    if (!holds(i) || is_overridden(kChecks[i].name)) continue;
    if (std::optional<Violation> found = kChecks[i].check(metadata, spec)) {
      violations.push_back(std::move(*found));
    }
  }
  return violations;
}

std::string Reasons(const std::vector<Violation>& violations) {
  Names reasons;
  for (const Violation& each : violations) reasons.push_back(each.reason);
  return Join(reasons, ", ");
}

std::string Details(const std::vector<Violation>& violations) {
  Names texts;
  for (const Violation& each : violations) {
    texts.push_back(each.detail.empty() ? each.reason
                                        : StrCat(each.reason, " (", each.detail, ")"));
  }
  return Join(texts, ", ");
}

}  // namespace drakkar::apiserver::pod_security
