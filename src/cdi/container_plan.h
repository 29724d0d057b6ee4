#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env/device_node.h"
#include "base/result/result.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// The parts of a container's OCI configuration that CDI edits touch. The runtime fills it from the
// pod, applies edits, and turns it into config.json.

struct PlannedMount {
  std::string destination;
  std::string source;
  std::string type;
  std::vector<std::string> options;

  bool operator==(const PlannedMount&) const = default;
};

struct PlannedDevice {
  std::string path;
  std::string type;  // b, c, u, p
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;

  bool operator==(const PlannedDevice&) const = default;
};

// An entry of linux.resources.devices.
struct DeviceRule {
  bool allow = true;
  std::string type;
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::string access;  // subset of "rwm"

  bool operator==(const DeviceRule&) const = default;
};

struct PlannedHook {
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<std::int64_t> timeout_seconds;

  bool operator==(const PlannedHook&) const = default;
};

struct ContainerPlan {
  std::vector<std::string> env;        // "K=V" with unique names
  std::vector<PlannedMount> mounts;    // with unique destinations
  std::vector<PlannedDevice> devices;  // with unique paths
  std::vector<DeviceRule> device_rules;
  std::map<std::string, std::vector<PlannedHook>> hooks;  // by OCI hook name, in order
  std::vector<std::uint32_t> additional_gids;
  std::map<std::string, std::string> net_devices;  // host interface -> name in the container
  std::optional<IntelRdt> intel_rdt;

  // The container's user: devices without an owner get this one, unless it is root.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // If true, bind mounts from edits are mapped to the container's ids.
  bool has_user_namespace = false;

  bool operator==(const ContainerPlan&) const = default;
};

// Applies `edits` to `plan`. A variable, mount or device with the same name, destination or path is
// replaced. Mounts are sorted by depth, so that parents precede their children. Devices without
// type or number are looked up on the host. On error `plan` is unchanged.
Result<void> ApplyEdits(const ContainerEdits& edits, DeviceNodeProbe& probe, ContainerPlan* plan);

}  // namespace drakkar::cdi
