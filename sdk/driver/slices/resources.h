#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "api/tree/value.h"
#include "base/env/clock.h"

namespace drakkar::driver {

// A driver's devices, in plain types. Names are those of the API (resource.k8s.io/v1).

// Slices and device metadata use the same type for attribute values.
using metadata::AttributeValue;
using metadata::Version;

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "NoExecute" or "None"
  // When the taint was added; if unset, the server sets it and keeps it.
  std::optional<WallTime> time_added;
};

struct CounterConsumption {
  std::string counter_set;
  std::map<std::string, std::string> counters;  // name -> quantity
};

struct Device {
  std::string name;
  std::map<std::string, AttributeValue> attributes;
  std::map<std::string, std::string> capacity;  // name -> quantity
  std::vector<Taint> taints;
  std::vector<CounterConsumption> consumes_counters;
  bool binds_to_node = false;
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;
  bool allow_multiple_allocations = false;
  // Further members of the API's Device, passed through unchanged (requestPolicy under `capacity`,
  // node selection per device, nodeAllocatableResources ...). They take precedence over the fields
  // above. May be null.
  api::TreePtr more;
};

struct CounterSet {
  std::string name;
  std::map<std::string, std::string> counters;  // name -> quantity
};

// A part of a pool that is kept together. If it exceeds the API limits, it becomes several
// ResourceSlices, in order; counters come before devices.
struct Slice {
  std::vector<Device> devices;
  std::vector<CounterSet> shared_counters;
  bool per_device_node_selection = false;
  std::string partition_type_attribute;
  // "NodePrepareResources", "NodeUnprepareResources" or "*" (KEP-5945). Written as a list, which
  // every server accepts.
  std::vector<std::string> skip_node_operations;
};

// Devices that are managed together. A driver on a node leaves the node selection empty. A pool
// without slices is published as one empty slice.
struct Pool {
  api::TreePtr node_selector;  // core/v1 NodeSelector with one term; may be null
  bool all_nodes = false;
  std::int64_t generation = 0;  // used if higher than the server's
  // Set if devices may get taints later: slices then hold only as many devices as fit with taints,
  // so that adding a taint changes one slice.
  bool may_be_tainted = false;
  std::vector<Slice> slices;
};

struct DriverResources {
  std::map<std::string, Pool> pools;
};

}  // namespace drakkar::driver
