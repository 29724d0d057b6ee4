#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/device_table.h"
#include "api/meta/label_selector.h"
#include "base/result/result.h"

namespace drakkar::answers {

// Which holders to show. Empty fields match everything.
struct WhoFilter {
  std::vector<std::string> devices;  // any of "gpu-0", "pool/gpu-0" or "driver/pool/gpu-0"
  std::string node;                  // node of the device or of the pod
  std::string namespace_;
  std::string owner;          // "Job/train" or "train"
  api::LabelSelector labels;  // labels of the pod
};

// A device, and one pod that uses it through one claim.
struct Holding {
  const DeviceEntry* device = nullptr;
  const ClaimUse* claim = nullptr;
  const device::DeviceResult* result = nullptr;
  const Consumer* consumer = nullptr;  // null: the claim is allocated but not reserved

  std::string pod() const;    // "namespace/name", or "<none>"
  std::string owner() const;  // the pod's controller, or "<none>"
};

struct WhoAnswer {
  std::vector<Holding> holdings;  // ordered by device
  std::vector<std::string> notes;
};

// The table must outlive the answer.
WhoAnswer FindHolders(const DeviceTable& table, const WhoFilter& filter);

// Whether `name` refers to this device: its name alone, with its pool, or with driver and pool.
bool NamesDevice(std::string_view name, const device::DeviceId& id);

// How to group holders.
struct HolderGrouping {
  enum class Kind : std::uint8_t { kNode, kNamespace, kOwner, kLabel };
  Kind kind = Kind::kNamespace;
  std::string label;  // for kLabel

  std::string name() const;  // "node", "namespace", "owner", or the label
};
// "node", "namespace", "owner" or "label=KEY".
Result<HolderGrouping> ParseHolderGrouping(std::string_view text);

struct HolderGroup {
  std::string name;
  std::size_t devices = 0;
  std::size_t claims = 0;
  std::size_t pods = 0;
  std::size_t unhealthy = 0;  // devices
  std::string oldest;         // RFC 3339: when the first of its claims was allocated
};
// Sorted by name, "<none>" last.
std::vector<HolderGroup> GroupHolders(const WhoAnswer& answer, const HolderGrouping& by);

}  // namespace drakkar::answers
