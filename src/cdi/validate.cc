#include "cdi/validate.h"

#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "cdi/names.h"

namespace drakkar::cdi {
namespace {

// Ascending.
constexpr std::string_view kVersions[] = {"0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0",
                                          "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
constexpr std::string_view kHookNames[] = {"prestart",       "createRuntime", "createContainer",
                                           "startContainer", "poststart",     "poststop"};
// Limit for all keys and values of one annotations map together, as for Kubernetes objects.
constexpr std::size_t kMaxAnnotationsBytes = 256u << 10;
constexpr std::size_t kMaxClosIdBytes = 4'095;

std::ptrdiff_t VersionIndex(std::string_view version) {
  const auto found = std::find(std::begin(kVersions), std::end(kVersions), version);
  return found == std::end(kVersions) ? -1 : found - std::begin(kVersions);
}

template <typename Items, typename Predicate>
bool Any(const Items& items, Predicate predicate) {
  return std::any_of(items.begin(), items.end(), predicate);
}

// One row per version that added something: whether the edits, or the spec around them, use it.
struct Feature {
  std::string_view version;
  bool (*in_edits)(const ContainerEdits&);
  bool (*in_spec)(const Spec&);
};
constexpr Feature kFeatures[] = {
    {"1.1.0",
     [](const ContainerEdits& edits) {
       return !edits.net_devices.empty() ||
              (edits.intel_rdt.has_value() &&
               (!edits.intel_rdt->schemata.empty() || edits.intel_rdt->enable_monitoring));
     },
     nullptr},
    {"0.7.0",
     [](const ContainerEdits& edits) {
       return edits.intel_rdt.has_value() || !edits.additional_gids.empty();
     },
     nullptr},
    {"0.6.0", nullptr,
     [](const Spec& spec) {
       const std::size_t slash = spec.kind.find('/');
       return !spec.annotations.empty() ||
              Any(spec.devices, [](const Device& device) { return !device.annotations.empty(); }) ||
              (slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos);
     }},
    {"0.5.0",
     [](const ContainerEdits& edits) {
       return Any(edits.device_nodes,
                  [](const DeviceNode& node) { return !node.host_path.empty(); });
     },
     [](const Spec& spec) {
       return Any(spec.devices, [](const Device& device) {
         return !device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9';
       });
     }},
    {"0.4.0",
     [](const ContainerEdits& edits) {
       return Any(edits.mounts, [](const Mount& mount) { return !mount.type.empty(); });
     },
     nullptr},
};

Result<void> ValidateEnvironment(const std::vector<std::string>& env) {
  for (const std::string& variable : env) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument(
          StrCat("environment variable ", Quote(variable), " is not of the form NAME=VALUE"));
    }
  }
  return Ok();
}

Result<void> ValidateDeviceNode(const DeviceNode& node) {
  if (node.path.empty()) return InvalidArgument("device node without a path");
  const std::string what = StrCat("device node ", node.path);
  if (!node.type.empty() && (node.type.size() != 1 ||
                             std::string_view("bcup").find(node.type) == std::string_view::npos)) {
    return InvalidArgument(StrCat(what, ": type ", Quote(node.type), " must be b, c, u or p"));
  }
  // -1 would be a wildcard in a cgroup rule.
  if (node.major < 0 || node.minor < 0) {
    return InvalidArgument(StrCat(what, ": negative device number ", node.major, ":", node.minor));
  }
  if (node.permissions != "none" &&
      node.permissions.find_first_not_of("rwm") != std::string::npos) {
    return InvalidArgument(StrCat(what, ": permissions ", Quote(node.permissions),
                                  " must be a combination of r, w and m, or none"));
  }
  return Ok();
}

Result<void> ValidateHook(const Hook& hook) {
  if (std::find(std::begin(kHookNames), std::end(kHookNames), hook.hook_name) ==
      std::end(kHookNames)) {
    return InvalidArgument(StrCat("unknown hook name ", Quote(hook.hook_name)));
  }
  if (hook.path.empty()) return InvalidArgument(StrCat("hook ", hook.hook_name, " has no path"));
  if (Result<void> env = ValidateEnvironment(hook.env); !env.ok()) {
    return env.error().Prefixed(StrCat("hook ", hook.hook_name));
  }
  return Ok();
}

Result<void> ValidateNetDevices(const std::vector<NetDevice>& devices) {
  std::set<std::string_view> hosts;
  std::set<std::string_view> names;
  for (const NetDevice& device : devices) {
    if (device.host_interface_name.empty() || device.name.empty()) {
      return InvalidArgument("a net device needs both hostInterfaceName and name");
    }
    if (!hosts.insert(device.host_interface_name).second) {
      return InvalidArgument(StrCat("net device hostInterfaceName ",
                                    Quote(device.host_interface_name), " is used twice"));
    }
    if (!names.insert(device.name).second) {
      return InvalidArgument(StrCat("net device name ", Quote(device.name), " is used twice"));
    }
  }
  return Ok();
}

// A directory name in the resctrl file system; "/" is its root.
Result<void> ValidateIntelRdt(const IntelRdt& rdt) {
  const std::string& id = rdt.clos_id;
  if (id == "/") return Ok();
  if (id.size() > kMaxClosIdBytes || id == "." || id == ".." ||
      id.find_first_of("/\n") != std::string::npos) {
    return InvalidArgument(StrCat("intelRdt: closID ", Quote(id), " is not a valid file name"));
  }
  return Ok();
}

Result<void> ValidateAnnotations(const std::map<std::string, std::string>& annotations) {
  std::size_t size_bytes = 0;
  for (const auto& [key, value] : annotations) {
    size_bytes += key.size() + value.size();
    const std::size_t slash = key.find('/');
    const std::string_view name = slash == std::string::npos
                                      ? std::string_view(key)
                                      : std::string_view(key).substr(slash + 1);
    const bool good = !name.empty() && name.size() <= 63 && ValidateDeviceName(name).ok() &&
                      name.find(':') == std::string_view::npos && slash != 0 &&
                      (slash == std::string::npos || slash <= 253);
    if (!good)
      return InvalidArgument(StrCat("annotation key ", Quote(key), " is not a valid name"));
  }
  if (size_bytes > kMaxAnnotationsBytes) {
    return InvalidArgument(
        StrCat("annotations have ", size_bytes, " bytes, more than ", kMaxAnnotationsBytes));
  }
  return Ok();
}

Result<void> ValidateDevice(const Device& device) {
  RETURN_IF_ERROR(ValidateDeviceName(device.name));
  const std::string what = StrCat("device ", Quote(device.name));
  if (device.container_edits.IsEmpty()) return InvalidArgument(what + " has no edits");
  if (Result<void> valid = ValidateAnnotations(device.annotations); !valid.ok()) {
    return valid.error().Prefixed(what);
  }
  if (Result<void> valid = ValidateEdits(device.container_edits); !valid.ok()) {
    return valid.error().Prefixed(what);
  }
  return Ok();
}

}  // namespace

std::string_view MinimumVersion(const Spec& spec) {
  for (const Feature& feature : kFeatures) {
    if (feature.in_spec != nullptr && feature.in_spec(spec)) return feature.version;
    if (feature.in_edits == nullptr) continue;
    if (feature.in_edits(spec.container_edits)) return feature.version;
    for (const Device& device : spec.devices) {
      if (feature.in_edits(device.container_edits)) return feature.version;
    }
  }
  return "0.3.0";
}

Result<void> ValidateEdits(const ContainerEdits& edits) {
  RETURN_IF_ERROR(ValidateEnvironment(edits.env));
  for (const DeviceNode& node : edits.device_nodes) RETURN_IF_ERROR(ValidateDeviceNode(node));
  RETURN_IF_ERROR(ValidateNetDevices(edits.net_devices));
  for (const Hook& hook : edits.hooks) RETURN_IF_ERROR(ValidateHook(hook));
  for (const Mount& mount : edits.mounts) {
    if (mount.host_path.empty() || mount.container_path.empty()) {
      return InvalidArgument("a mount needs both hostPath and containerPath");
    }
  }
  if (edits.intel_rdt.has_value()) RETURN_IF_ERROR(ValidateIntelRdt(*edits.intel_rdt));
  return Ok();
}

Result<void> ValidateSpec(const Spec& spec) {
  const std::ptrdiff_t version = VersionIndex(spec.cdi_version);
  if (version < 0) {
    return InvalidArgument(StrCat("unknown cdiVersion ", Quote(spec.cdi_version)));
  }
  RETURN_IF_ERROR(ValidateKind(spec.kind));
  const std::string_view minimum = MinimumVersion(spec);
  if (version < VersionIndex(minimum)) {
    return InvalidArgument(
        StrCat("cdiVersion is ", spec.cdi_version, ", but the spec needs ", minimum, " or newer"));
  }
  RETURN_IF_ERROR(ValidateAnnotations(spec.annotations));
  RETURN_IF_ERROR(ValidateEdits(spec.container_edits));
  if (spec.devices.empty()) return InvalidArgument("the spec has no devices");
  std::set<std::string_view> names;
  for (const Device& device : spec.devices) {
    RETURN_IF_ERROR(ValidateDevice(device));
    if (!names.insert(device.name).second) {
      return InvalidArgument(StrCat("device ", Quote(device.name), " is defined twice"));
    }
  }
  return Ok();
}

}  // namespace drakkar::cdi
