#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "device/device_id.h"

namespace drakkar::answers {

using Objects = std::vector<api::ObjectPtr>;

// The health of a device, as reported by its node or in the status of a pod that holds it.
struct DeviceHealth {
  std::string health = "Unknown";  // Healthy, Unhealthy, Unknown
  std::string since;               // RFC 3339; empty if unknown
  std::string message;

  bool operator==(const DeviceHealth&) const = default;
};

using NodeHealth = std::map<device::DeviceId, DeviceHealth>;

// The state of a cluster at one moment, from which every answer is computed. Objects are immutable
// and shared. Kinds that an answer does not need may be empty.
struct Snapshot {
  WallTime now{};
  Objects nodes;
  Objects pods;
  Objects claims;
  Objects slices;
  Objects classes;
  Objects taint_rules;
  Objects leases;  // of nodes
  Objects namespaces;
  Objects pod_groups;  // only from the scheduler
  Objects events;      // about the object in question

  // True if all lists have the same resource version. False if the server could not provide that.
  bool consistent = true;
  bool has_nodes = true;  // false: the caller may not list nodes, so an absent node means nothing
  std::uint32_t unreadable = 0;           // kinds that the caller may not list: Mask(SnapshotKind)
  std::string taint_rule_version = "v1";  // served version of DeviceTaintRules
  // If set, only pods and claims of this namespace are included, because the caller may not list
  // others.
  std::string only_namespace;
  // Limits of the answer, one sentence each, such as kinds that could not be read.
  std::vector<std::string> notes;
  // Device health by node, as the nodes reported it. It is not part of the API, so it may be from
  // another moment.
  std::map<std::string, NodeHealth> node_health;
};

}  // namespace drakkar::answers
