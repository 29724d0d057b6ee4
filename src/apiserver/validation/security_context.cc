#include "apiserver/validation/security_context.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

template <typename Visit>
void ForEachContainer(const FieldPath& spec_path, Value spec, const Visit& visit) {
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    const FieldPath path = spec_path.Child(list.view());
    std::size_t index = 0;
    for (const Value container : spec[list].elements()) {
      if (WorkBudget::IsExceeded()) return;
      visit(container, path.Index(index++));
    }
  }
}

void CheckSeccomp(FieldErrors& errors, const FieldPath& path, Value profile) {
  if (!profile.has_value()) return;
  const std::string_view type = profile["type"].str();
  const Value file = profile["localhostProfile"];
  const FieldPath at = path.Child("localhostProfile");
  if (type.empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when seccompProfile is set"));
  } else {
    CheckOneOf(errors, path.Child("type"), type, {"Localhost", "RuntimeDefault", "Unconfined"});
  }
  if (type != "Localhost") {
    if (!file.has_value()) return;
    errors.push_back(Invalid(at, profile, "can only be set when seccomp type is Localhost"));
  } else if (!file.has_value()) {
    errors.push_back(Required(at, "must be set when seccomp type is Localhost"));
  } else {
    CheckRelativePath(errors, at, file.str());
  }
}

void CheckAppArmor(FieldErrors& errors, const FieldPath& path, Value profile) {
  constexpr std::size_t kMaxProfileBytes = 4'095;
  if (!profile.has_value()) return;
  const std::string_view type = profile["type"].str();
  const Value name = profile["localhostProfile"];
  const FieldPath at = path.Child("localhostProfile");
  if (type.empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when appArmorProfile is set"));
  } else if (type == "RuntimeDefault" || type == "Unconfined") {
    if (!name.has_value()) return;
    errors.push_back(Invalid(at, name.str(), "can only be set when AppArmor type is Localhost"));
  } else if (type != "Localhost") {
    errors.push_back(
        NotSupported(path.Child("type"), type, {"Localhost", "RuntimeDefault", "Unconfined"}));
  } else if (Trim(name.str()) != name.str()) {
    errors.push_back(Invalid(at, name.str(), "must not be padded with whitespace"));
  } else if (name.str().empty()) {
    errors.push_back(Required(at, "must be set when AppArmor type is Localhost"));
  } else if (name.str().size() > kMaxProfileBytes) {
    errors.push_back(api::FieldError::TooLong(at, kMaxProfileBytes));
  }
}

bool IsLowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || IsDigit(c);
}

bool IsSysctlName(std::string_view name) {
  constexpr std::size_t kMaxBytes = 253;
  if (name.size() > kMaxBytes) return false;
  std::string dotted(name);
  std::ranges::replace(dotted, '/', '.');
  return std::ranges::all_of(Split(dotted, '.'), [](std::string_view segment) {
    return !segment.empty() && IsLowerOrDigit(segment.front()) && IsLowerOrDigit(segment.back()) &&
           std::ranges::all_of(segment,
                               [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '_'; });
  });
}

// "net/ipv4/conf" as "net.ipv4.conf": the first separator decides what the other one means.
std::string DottedSysctl(std::string_view name) {
  std::string dotted(name);
  const std::size_t first = dotted.find_first_of("./");
  if (first == std::string::npos || dotted[first] == '.') return dotted;
  for (char& c : dotted) c = c == '/' ? '.' : c == '.' ? '/' : c;
  return dotted;
}

bool IsIpcSysctl(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {"kernel.sem",    "kernel.shmall",
                                                       "kernel.shmmax", "kernel.shmmni",
                                                       "kernel.shm",    "kernel.shm_rmid_forced",
                                                       "kernel.msgmax", "kernel.msgmnb",
                                                       "kernel.msgmni", "kernel.msg"};
  return name.starts_with("fs.mqueue.") || std::ranges::find(kNames, name) != kNames.end();
}

void CheckSysctls(FieldErrors& errors, const FieldPath& path, Value sysctls, Value spec) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value sysctl : sysctls.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++).Child("name");
    const std::string_view name = sysctl["name"].str();
    const bool is_new = names.insert(name).second;
    if (name.empty()) {
      errors.push_back(Required(at));
    } else if (!IsSysctlName(name)) {
      errors.push_back(Invalid(at, name,
                               "must have at most 253 characters and match regex "
                               "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*"
                               "[a-z0-9])?$"));
    } else if (!is_new) {
      errors.push_back(Duplicate(at, name));
    }
    const std::string dotted = DottedSysctl(name);
    if (spec["hostNetwork"].boolean() && dotted.starts_with("net.")) {
      errors.push_back(Invalid(at, name, "may not be specified when 'hostNetwork' is true"));
    } else if (spec["hostIPC"].boolean() && IsIpcSysctl(dotted)) {
      errors.push_back(Invalid(at, name, "may not be specified when 'hostIPC' is true"));
    }
  }
}

// DOMAIN\user: the domain is a NetBIOS or DNS name.
bool IsWindowsDomain(std::string_view domain) {
  constexpr std::string_view kNotNetBios = "\\/:*?\"<>|";
  constexpr std::size_t kMaxNetBiosBytes = 15;
  const bool is_net_bios = !domain.empty() && domain.size() <= kMaxNetBiosBytes &&
                           domain.front() != '.' &&
                           domain.find_first_of(kNotNetBios) == std::string_view::npos;
  if (is_net_bios) return true;
  return std::ranges::all_of(Split(domain, '.'), [](std::string_view label) {
    return DnsLabelProblems(ToLower(label)).empty();
  });
}

void CheckWindowsUser(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  constexpr std::size_t kMaxDomainBytes = 256;
  constexpr std::size_t kMaxUserBytes = 104;
  const auto add = [&](std::string_view detail) { errors.push_back(Invalid(path, name, detail)); };
  const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
  if (name.empty()) return add("runAsUserName cannot be an empty string");
  if (std::ranges::any_of(name, is_control)) {
    return add("runAsUserName cannot contain control characters");
  }
  const std::vector<std::string_view> parts = Split(name, '\\');
  if (parts.size() > 2) return add("runAsUserName cannot contain more than one backslash");
  const std::string_view user = parts.back();
  if (parts.size() == 2) {
    if (parts[0].size() >= kMaxDomainBytes) {
      add(StrCat("runAsUserName's Domain length must be under ", kMaxDomainBytes, " characters"));
    }
    if (!IsWindowsDomain(parts[0])) {
      add("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
  }
  if (user.empty()) {
    add("runAsUserName's User cannot be empty");
  } else if (user.size() > kMaxUserBytes) {
    add(StrCat("runAsUserName's User length must not be longer than ", kMaxUserBytes,
               " characters"));
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos) {
    add("runAsUserName's User cannot contain only periods or spaces");
  }
  if (user.find_first_of("\"/\\:;|=,+*?<>@[]") != std::string_view::npos) {
    add("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  }
}

void CheckWindowsOptions(FieldErrors& errors, const FieldPath& path, Value options) {
  constexpr std::size_t kMaxSpecBytes = 64 * 1024;
  if (!options.has_value()) return;
  const Value name = options["gmsaCredentialSpecName"];
  if (name.has_value()) {
    CheckDnsSubdomain(errors, path.Child("gmsaCredentialSpecName"), name.str());
  }
  if (const Value spec = options["gmsaCredentialSpec"]; spec.has_value()) {
    const FieldPath at = path.Child("gmsaCredentialSpec");
    if (spec.str().empty()) {
      errors.push_back(Invalid(at, "", "gmsaCredentialSpec cannot be an empty string"));
    } else if (spec.str().size() > kMaxSpecBytes) {
      errors.push_back(Invalid(at, spec.str(), "gmsaCredentialSpec size must be under 64 KiB"));
    }
  }
  if (const Value user = options["runAsUserName"]; user.has_value()) {
    CheckWindowsUser(errors, path.Child("runAsUserName"), user.str());
  }
}

void CheckHostProcesses(FieldErrors& errors, const FieldPath& spec_path, Value spec) {
  const std::optional<bool> of_pod =
      spec["securityContext"]["windowsOptions"]["hostProcess"].optional_boolean();
  std::size_t containers = 0;
  std::size_t host_processes = 0;
  ForEachContainer(spec_path, spec, [&](Value container, const FieldPath& path) {
    ++containers;
    const std::optional<bool> own =
        container["securityContext"]["windowsOptions"]["hostProcess"].optional_boolean();
    if (own && of_pod && *own != *of_pod) {
      errors.push_back(
          Invalid(path.Child("securityContext").Child("windowsOptions").Child("hostProcess"), *own,
                  StrCat("pod hostProcess value must be identical if both are specified, was ",
                         *of_pod ? "true" : "false")));
    }
    if (own.value_or(of_pod.value_or(false))) ++host_processes;
  });
  if (host_processes == 0) return;
  if (host_processes != containers) {
    errors.push_back(Invalid(spec_path, "",
                             "If pod contains any hostProcess containers then all containers must "
                             "be HostProcess containers"));
  }
  if (!spec["hostNetwork"].boolean()) {
    errors.push_back(
        Invalid(spec_path.Child("hostNetwork"), false,
                "hostNetwork must be true if pod contains any hostProcess containers"));
  }
}

constexpr std::string_view kSeccompOfPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompOfContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kAppArmorOfContainer = "container.apparmor.security.beta.kubernetes.io/";

bool IsRuntimeDefault(std::string_view seccomp) {
  return seccomp == "runtime/default" || seccomp == "docker/default";
}

void CheckSeccompText(FieldErrors& errors, const FieldPath& path, std::string_view profile) {
  constexpr std::string_view kLocal = "localhost/";
  if (IsRuntimeDefault(profile) || profile == "unconfined") return;
  if (profile.starts_with(kLocal)) {
    CheckRelativePath(errors, path, profile.substr(kLocal.size()));
  } else {
    errors.push_back(Invalid(path, profile, "must be a valid seccomp profile"));
  }
}

// An annotation and a field about the same thing must agree. `what` is "seccomp" or "apparmor".
void CheckAgreement(FieldErrors& errors, const FieldPath& path, Value annotation, Value profile,
                    std::string_view what) {
  constexpr std::string_view kLocal = "localhost/";
  if (!annotation.exists() || !profile.has_value()) return;
  const std::string_view text = annotation.str();
  const std::string_view type = profile["type"].str();
  bool agrees = true;
  if (type == "Unconfined") agrees = text == "unconfined";
  if (type == "RuntimeDefault") {
    agrees = what == "seccomp" ? IsRuntimeDefault(text) : text == "runtime/default";
  }
  if (type == "Localhost") agrees = text.starts_with(kLocal);
  if (!agrees) {
    errors.push_back(
        Forbidden(path.Child("type"), StrCat(what, " type in annotation and field must match")));
  } else if (type == "Localhost" &&
             text.substr(kLocal.size()) != profile["localhostProfile"].str()) {
    errors.push_back(Forbidden(path.Child("localhostProfile"),
                               StrCat(what, " profile in annotation and field must match")));
  }
}

}  // namespace

void CheckPodSecurityContext(FieldErrors& errors, const FieldPath& spec_path, Value spec) {
  const Value context = spec["securityContext"];
  if (context.empty()) return;
  const FieldPath path = spec_path.Child("securityContext");
  for (const api::FieldName field : api::FieldNames{"fsGroup", "runAsUser", "runAsGroup"}) {
    CheckUserOrGroupId(errors, path.Child(field.view()), context[field]);
  }
  std::size_t index = 0;
  for (const Value group : context["supplementalGroups"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckUserOrGroupId(errors, path.Child("supplementalGroups").Index(index++), group);
  }
  CheckSysctls(errors, path.Child("sysctls"), context["sysctls"], spec);
  const auto check = [&](api::FieldName field, std::initializer_list<std::string_view> supported) {
    const Value value = context[field];
    if (value.has_value()) CheckOneOf(errors, path.Child(field.view()), value.str(), supported);
  };
  check("fsGroupChangePolicy", {"Always", "OnRootMismatch"});
  CheckSeccomp(errors, path.Child("seccompProfile"), context["seccompProfile"]);
  CheckWindowsOptions(errors, path.Child("windowsOptions"), context["windowsOptions"]);
  CheckAppArmor(errors, path.Child("appArmorProfile"), context["appArmorProfile"]);
  check("supplementalGroupsPolicy", {"Merge", "Strict"});
  check("seLinuxChangePolicy", {"MountOption", "Recursive"});
}

void CheckContainerSecurityContext(FieldErrors& errors, const FieldPath& path, Value context,
                                   bool host_users) {
  if (context.empty()) return;
  CheckUserOrGroupId(errors, path.Child("runAsUser"), context["runAsUser"]);
  CheckUserOrGroupId(errors, path.Child("runAsGroup"), context["runAsGroup"]);
  if (const Value mount = context["procMount"]; mount.has_value()) {
    CheckOneOf(errors, path.Child("procMount"), mount.str(), {"Default", "Unmasked"});
    if (host_users && mount.str() == "Unmasked") {
      errors.push_back(Invalid(path.Child("procMount"), mount.str(),
                               "`hostUsers` must be false to use `Unmasked`"));
    }
  }
  CheckSeccomp(errors, path.Child("seccompProfile"), context["seccompProfile"]);
  if (!context["allowPrivilegeEscalation"].boolean(true)) {
    if (context["privileged"].boolean()) {
      errors.push_back(
          Invalid(path, context,
                  "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    for (const Value capability : context["capabilities"]["add"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      if (capability.str() != "CAP_SYS_ADMIN") continue;
      errors.push_back(Invalid(path, context,
                               "cannot set `allowPrivilegeEscalation` to false and "
                               "`capabilities.Add` CAP_SYS_ADMIN"));
    }
  }
  CheckWindowsOptions(errors, path.Child("windowsOptions"), context["windowsOptions"]);
  CheckAppArmor(errors, path.Child("appArmorProfile"), context["appArmorProfile"]);
}

void CheckOperatingSystem(FieldErrors& errors, const FieldPath& spec_path, Value spec) {
  CheckHostProcesses(errors, spec_path, spec);
  const Value os = spec["os"];
  if (!os.has_value()) return;
  const std::string_view name = os["name"].str();
  if (name.empty()) {
    errors.push_back(Required(spec_path.Child("os").Child("name")));
    return;
  }
  const auto forbid = [&](const FieldPath& path, Value object, api::FieldNames fields,
                          std::string_view why) {
    for (const api::FieldName field : fields) {
      const Value value = object[field];
      const bool is_set = value.is_array() ? !value.empty() : value.has_value();
      if (is_set) errors.push_back(Forbidden(path.Child(field.view()), why));
    }
  };
  const FieldPath of_pod = spec_path.Child("securityContext");
  if (name == "linux") {
    constexpr std::string_view kWhy = "windows options cannot be set for a linux pod";
    forbid(of_pod, spec["securityContext"], {"windowsOptions"}, kWhy);
    ForEachContainer(spec_path, spec, [&](Value container, const FieldPath& path) {
      forbid(path.Child("securityContext"), container["securityContext"], {"windowsOptions"}, kWhy);
    });
    return;
  }
  if (name != "windows") {
    errors.push_back(NotSupported(spec_path.Child("os"), name, {"linux", "windows"}));
    return;
  }
  constexpr std::string_view kWhy = "cannot be set for a windows pod";
  forbid(of_pod, spec["securityContext"],
         {"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy",
          "sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
          "seLinuxChangePolicy"},
         kWhy);
  forbid(spec_path, spec, {"hostUsers"}, kWhy);
  for (const api::FieldName field : api::FieldNames{"hostPID", "hostIPC"}) {
    if (spec[field].boolean()) errors.push_back(Forbidden(spec_path.Child(field.view()), kWhy));
  }
  forbid(spec_path, spec, {"shareProcessNamespace"}, kWhy);
  ForEachContainer(spec_path, spec, [&](Value container, const FieldPath& path) {
    forbid(path.Child("securityContext"), container["securityContext"],
           {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
            "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount",
            "runAsUser", "runAsGroup"},
           kWhy);
  });
}

void CheckProfileAnnotations(FieldErrors& errors, Value metadata, Value spec) {
  const FieldPath path = FieldPath("metadata").Child("annotations");
  const Value annotations = metadata["annotations"];
  std::set<std::string_view> names;
  bool any = false;
  for (const auto& [key, name, value] : annotations.members()) {
    if (WorkBudget::IsExceeded()) return;
    if (name == kSeccompOfPod || name.starts_with(kSeccompOfContainer)) {
      any = true;
      CheckSeccompText(errors, path.Child(name), value.str());
    }
    if (!name.starts_with(kAppArmorOfContainer)) continue;
    any = true;
    if (names.empty()) {
      ForEachContainer(FieldPath("spec"), spec, [&](Value container, const FieldPath&) {
        names.insert(container["name"].str());
      });
    }
    const std::string_view container = name.substr(kAppArmorOfContainer.size());
    if (!names.contains(container)) {
      errors.push_back(Invalid(path.Key(name), container, "container not found"));
    }
    const std::string_view profile = value.str();
    if (!profile.empty() && profile != "runtime/default" && profile != "unconfined" &&
        !profile.starts_with("localhost/")) {
      errors.push_back(Invalid(path.Key(name), profile,
                               StrCat("invalid AppArmor profile name: ", Quote(profile))));
    }
  }
  if (!any) return;
  const FieldPath spec_path("spec");
  const Value of_pod = spec["securityContext"];
  CheckAgreement(errors, spec_path.Child("securityContext").Child("seccompProfile"),
                 annotations.Entry(kSeccompOfPod), of_pod["seccompProfile"], "seccomp");
  ForEachContainer(spec_path, spec, [&](Value container, const FieldPath& at) {
    const FieldPath context_path = at.Child("securityContext");
    const Value context = container["securityContext"];
    const std::string_view name = container["name"].str();
    CheckAgreement(errors, context_path.Child("seccompProfile"),
                   annotations.Entry(StrCat(kSeccompOfContainer, name)), context["seccompProfile"],
                   "seccomp");
    const Value app_armor = context["appArmorProfile"].has_value() ? context["appArmorProfile"]
                                                                   : of_pod["appArmorProfile"];
    if (spec["os"]["name"].str() == "windows") return;
    CheckAgreement(errors, context_path.Child("appArmorProfile"),
                   annotations.Entry(StrCat(kAppArmorOfContainer, name)), app_armor, "apparmor");
  });
}

}  // namespace drakkar::apiserver
