#include "cdi/container_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "cdi/validate.h"

namespace drakkar::cdi {
namespace {

void SetVariable(const std::string& variable, std::vector<std::string>* env) {
  const std::string_view name = std::string_view(variable).substr(0, variable.find('=') + 1);
  for (std::string& existing : *env) {
    if (std::string_view(existing).starts_with(name)) {
      existing = variable;
      return;
    }
  }
  env->push_back(variable);
}

std::string_view TypeLetter(DeviceNodeType type) {
  switch (type) {
    case DeviceNodeType::kBlock:
      return "b";
    case DeviceNodeType::kCharacter:
      return "c";
    case DeviceNodeType::kFifo:
      return "p";
  }
  return "";
}

// "u" is a synonym for a (unbuffered) character device.
bool IsSameType(std::string_view declared, std::string_view found) {
  return declared == found || (declared == "u" && found == "c");
}

Result<PlannedDevice> PlanDevice(const DeviceNode& node, DeviceNodeProbe& probe) {
  PlannedDevice device{.path = node.path,
                       .type = node.type,
                       .major = node.major,
                       .minor = node.minor,
                       .file_mode = node.file_mode,
                       .uid = node.uid,
                       .gid = node.gid};
  // A FIFO has no number; look up anything else without one.
  if (!device.type.empty() && (device.major != 0 || device.type == "p")) return device;
  const std::string& host_path = node.host_path.empty() ? node.path : node.host_path;
  const Result<DeviceNodeInfo> info = probe.Probe(host_path);
  if (!info.ok()) return info.error().Prefixed(StrCat("CDI device ", node.path));
  const std::string_view found = TypeLetter(info->type);
  if (device.type.empty()) {
    device.type = std::string(found);
  } else if (!IsSameType(device.type, found)) {
    return InvalidArgument(StrCat("CDI device ", node.path, ": the spec has type ", device.type,
                                  ", but ", host_path, " has type ", found));
  }
  if (device.major == 0 && device.type != "p") {
    device.major = info->major;
    device.minor = info->minor;
  }
  return device;
}

void AddDevice(PlannedDevice device, const std::string& permissions, ContainerPlan* plan) {
  if (!device.uid.has_value() && plan->uid != 0) device.uid = plan->uid;
  if (!device.gid.has_value() && plan->gid != 0) device.gid = plan->gid;
  std::erase_if(plan->devices,
                [&](const PlannedDevice& existing) { return existing.path == device.path; });
  // A FIFO needs no cgroup rule, and a rule without access would grant nothing.
  if ((device.type == "b" || device.type == "c" || device.type == "u") && permissions != "none") {
    DeviceRule rule{.type = device.type == "b" ? "b" : "c",
                    .major = device.major,
                    .minor = device.minor,
                    .access = permissions.empty() ? "rwm" : permissions};
    if (std::find(plan->device_rules.begin(), plan->device_rules.end(), rule) ==
        plan->device_rules.end()) {
      plan->device_rules.push_back(std::move(rule));
    }
  }
  plan->devices.push_back(std::move(device));
}

// Adds idmap to bind mounts and ridmap to recursive ones, unless the spec has either.
void MapIds(PlannedMount* mount) {
  const auto has = [&](std::string_view option) {
    return std::find(mount->options.begin(), mount->options.end(), option) != mount->options.end();
  };
  if (has("idmap") || has("ridmap")) return;
  if (has("rbind")) {
    mount->options.push_back("ridmap");
  } else if (has("bind") || mount->type == "bind") {
    mount->options.push_back("idmap");
  }
}

void AddMount(const Mount& mount, ContainerPlan* plan) {
  PlannedMount planned{.destination = mount.container_path,
                       .source = mount.host_path,
                       .type = mount.type,
                       .options = mount.options};
  if (plan->has_user_namespace) MapIds(&planned);
  std::erase_if(plan->mounts, [&](const PlannedMount& existing) {
    return existing.destination == planned.destination;
  });
  plan->mounts.push_back(std::move(planned));
}

// The depth of a path, without empty, "." and ".." parts, as Go's path cleaning does.
std::size_t Depth(std::string_view path) {
  std::size_t depth = 0;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (depth > 0) --depth;
    } else {
      ++depth;
    }
  }
  return depth;
}

}  // namespace

Result<void> ApplyEdits(const ContainerEdits& edits, DeviceNodeProbe& probe, ContainerPlan* plan) {
  RETURN_IF_ERROR(ValidateEdits(edits));
  // Do all lookups first, so that a failure does not leave half of the edits behind.
  std::vector<PlannedDevice> devices;
  for (const DeviceNode& node : edits.device_nodes) {
    ASSIGN_OR_RETURN(PlannedDevice device, PlanDevice(node, probe));
    devices.push_back(std::move(device));
  }

  for (const std::string& variable : edits.env) SetVariable(variable, &plan->env);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    AddDevice(std::move(devices[i]), edits.device_nodes[i].permissions, plan);
  }
  for (const NetDevice& device : edits.net_devices) {
    plan->net_devices[device.host_interface_name] = device.name;
  }
  for (const Mount& mount : edits.mounts) AddMount(mount, plan);
  if (!edits.mounts.empty()) {
    std::stable_sort(plan->mounts.begin(), plan->mounts.end(),
                     [](const PlannedMount& a, const PlannedMount& b) {
                       return Depth(a.destination) < Depth(b.destination);
                     });
  }
  for (const Hook& hook : edits.hooks) {
    plan->hooks[hook.hook_name].push_back({.path = hook.path,
                                           .args = hook.args,
                                           .env = hook.env,
                                           .timeout_seconds = hook.timeout_seconds});
  }
  if (edits.intel_rdt.has_value()) plan->intel_rdt = edits.intel_rdt;
  for (const std::uint32_t gid : edits.additional_gids) {
    const auto& known = plan->additional_gids;
    if (gid == 0 || std::find(known.begin(), known.end(), gid) != known.end()) continue;
    plan->additional_gids.push_back(gid);
  }
  return Ok();
}

}  // namespace drakkar::cdi
