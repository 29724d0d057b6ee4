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

// How a device is doing, as its node or the status of a pod that holds it reports.
struct DeviceHealth {
  std::string health = "Unknown";  // Healthy, Unhealthy, Unknown
  std::string since;               // RFC 3339; empty: not known
  std::string message;

  bool operator==(const DeviceHealth&) const = default;
};

using NodeHealth = std::map<device::DeviceId, DeviceHealth>;

// A cluster at one moment: what every answer is computed from. Objects are immutable and shared.
// Kinds that an answer does not need may be empty.
struct Snapshot {
  WallTime now{};
  Objects nodes;
  Objects pods;
  Objects claims;
  Objects slices;
  Objects classes;
  Objects taint_rules;
  Objects leases;  // of nodes
  Objects events;  // about the object that is asked about

  // All lists are of one resource version. Otherwise the server could not list them that way.
  bool consistent = true;
  bool has_nodes = true;         // false: the caller may not list nodes, so none can be missed
  std::uint32_t unreadable = 0;  // kinds that the caller may not list: Mask(SnapshotKind)
  std::string taint_rule_version = "v1";  // the version of DeviceTaintRules that the server has
  // Pods and claims of this namespace only, because the caller may not list others. Empty: all.
  std::string only_namespace;
  // What limits the answer, a sentence each: kinds that could not be read.
  std::vector<std::string> notes;
  // What nodes said when asked, by node. Not part of the API, so not of the same moment.
  std::map<std::string, NodeHealth> node_health;
};

}  // namespace drakkar::answers
