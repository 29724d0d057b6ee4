#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/meta/quantity.h"
#include "device/claim.h"
#include "device/slice.h"

namespace drakkar::device {

struct ConsumedCapacity {
  std::string name;
  api::Quantity value;
};

struct DeviceResult {
  std::string request;  // "request" or "request/subrequest"
  DeviceId id;
  bool admin_access = false;
  std::vector<Toleration> tolerations;
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;
  std::string share_id;                             // empty: the device is held exclusively
  std::vector<ConsumedCapacity> consumed_capacity;  // sorted by name
  SkipNodeOperations skip_node_operations;
};

struct AllocatedConfig {
  enum class Source { kClass, kClaim };
  Source source = Source::kClass;
  std::vector<std::string> requests;  // empty means all
  std::optional<OpaqueConfig> opaque;
};

// One claim's allocation, as in its status.
struct AllocationResult {
  std::vector<DeviceResult> results;
  std::vector<AllocatedConfig> config;
  std::optional<NodeSelector> node_selector;  // absent: usable everywhere
  std::string allocation_timestamp;           // RFC 3339; empty unless read from a stored claim
};

}  // namespace drakkar::device
