#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/meta/quantity.h"
#include "device/attribute.h"
#include "device/device_id.h"
#include "device/node_selector.h"

namespace drakkar::device {

struct CapacityRange {
  std::optional<api::Quantity> min;
  std::optional<api::Quantity> max;
  std::optional<api::Quantity> step;
};

// Which amounts of a shareable capacity may be consumed.
struct CapacityPolicy {
  std::optional<api::Quantity> default_value;
  std::vector<api::Quantity> valid_values;  // ascending
  std::optional<CapacityRange> valid_range;
};

struct Capacity {
  std::string name;
  api::Quantity value;
  std::optional<CapacityPolicy> policy;
};

struct Counter {
  std::string name;
  api::Quantity value;
};

struct CounterSet {
  std::string name;
  std::vector<Counter> counters;  // sorted by name
};

struct CounterConsumption {
  std::string counter_set;
  std::vector<Counter> counters;  // sorted by name
  std::vector<std::string> compatibility_groups;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule and NoExecute prevent allocation, anything else does not
  std::string time_added;

  bool operator==(const Taint&) const = default;
};

// Where a slice or device is available: on one node, on every node, or on the nodes that a selector
// matches. If none is set, the target is of an unknown kind and matches no node.
struct NodeTarget {
  std::string node_name;
  bool all_nodes = false;
  std::optional<NodeSelector> selector;

  bool IsSet() const { return !node_name.empty() || all_nodes || selector.has_value(); }
  bool operator==(const NodeTarget&) const = default;
};

Result<bool> Matches(const NodeTarget& target, const Node& node);

struct Device {
  std::string name;
  std::vector<Attribute> attributes;  // sorted by name
  std::vector<Capacity> capacity;     // sorted by name
  std::vector<CounterConsumption> consumes_counters;
  NodeTarget target;  // used if the slice selects per device
  std::vector<Taint> taints;
  bool binds_to_node = false;
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;
  bool allow_multiple_allocations = false;
};

// Kept as written (absent, a boolean or a list of operations), because it is copied verbatim.
struct SkipNodeOperations {
  std::variant<std::monostate, bool, std::vector<std::string>> form;

  bool IsSet() const { return form.index() != 0; }
  // Whether the node may have to skip anything: `true` or a list with entries.
  bool SkipsAny() const;
  bool operator==(const SkipNodeOperations&) const = default;
};

struct Slice {
  std::string name;
  std::string driver;
  std::string pool;
  std::int64_t generation = 0;
  std::int64_t slice_count = 0;
  NodeTarget target;
  bool per_device_node_selection = false;
  std::vector<Device> devices;
  std::vector<CounterSet> shared_counters;
  SkipNodeOperations skip_node_operations;
  // Paths of unknown fields. The slice is used without them; the caller reports them.
  std::vector<std::string> unknown_fields;

  PoolId pool_id() const { return {driver, pool}; }
};

}  // namespace drakkar::device
