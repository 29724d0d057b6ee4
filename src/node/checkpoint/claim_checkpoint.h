#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// The file `dra_manager_state` in Kubernetes' format, so that each can read what the other wrote.
// Absent and empty lists are encoded differently there (null and []), hence the optionals.

struct CheckpointDevice {
  std::string pool_name;
  std::string device_name;
  std::optional<std::string> share_id;
  std::optional<std::vector<std::string>> request_names;
  std::optional<std::vector<std::string>> cdi_device_ids;

  bool operator==(const CheckpointDevice&) const = default;
};

struct CheckpointDriver {
  std::optional<std::vector<CheckpointDevice>> devices;
  std::vector<std::string> skip_node_operations;  // left out when empty

  bool operator==(const CheckpointDriver&) const = default;
};

struct CheckpointClaim {
  std::string uid;
  std::string name;
  std::string namespace_name;
  std::optional<std::set<std::string>> pod_uids;
  std::optional<std::map<std::string, CheckpointDriver>> driver_state;

  bool operator==(const CheckpointClaim&) const = default;
};

using CheckpointState = std::optional<std::vector<CheckpointClaim>>;

// Size limit of a checkpoint; a larger file is refused.
inline constexpr std::size_t kMaxCheckpointBytes = 64u << 20;
inline constexpr char kClaimCheckpointName[] = "dra_manager_state";

// {"Data":"...","Checksum":N}
std::string EncodeCheckpoint(const CheckpointState& state);

// Unknown members are ignored, missing ones get defaults, names are case-insensitive. kDataLoss for
// a wrong checksum (`checkpoint is corrupted`) and for bytes that are not a checkpoint.
Result<CheckpointState> DecodeCheckpoint(std::string_view file);

}  // namespace drakkar::node
