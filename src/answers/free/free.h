#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/device_table.h"
#include "base/result/result.h"

namespace drakkar::answers {

// How to group devices.
struct Grouping {
  enum class Kind : std::uint8_t { kClass, kModel, kDriver, kNode, kPool, kAttribute };
  Kind kind = Kind::kClass;
  std::string attribute;  // for kAttribute: "id" in any domain, or "domain/id"

  std::string name() const;  // "class", "model" ..., or the attribute
};

// "class", "model", "driver", "node", "pool", or the name of an attribute.
Result<Grouping> ParseGrouping(std::string_view text);

// The groups of a device: possibly several classes, otherwise one. "<none>" if it has none.
std::vector<std::string> GroupsOf(const DeviceTable& table, const DeviceEntry& entry,
                                  const Grouping& by);

struct DeviceFilter {
  std::string device_class;
  std::string driver;
  std::string node;
  std::string pool;

  bool Matches(const DeviceTable& table, const DeviceEntry& entry) const;
};

// A device may be held, tainted and unhealthy at once, so these do not add up to `total`. A
// shareable device may be both held and free.
struct DeviceCounts {
  std::size_t total = 0;
  std::size_t free = 0;  // a claim could get it, or a share of it, now
  std::size_t held = 0;
  std::size_t waiting = 0;  // held, and waiting for binding conditions
  std::size_t tainted = 0;  // with NoSchedule or NoExecute
  std::size_t unhealthy = 0;
  std::size_t unusable = 0;  // because of pool, node or counters

  void Add(const DeviceEntry& entry);
};

struct FreeGroup {
  std::string name;
  DeviceCounts counts;
};

// A capacity or counter that devices or claims share.
struct SharedAmount {
  std::string group;
  std::string name;       // name of the capacity or counter
  std::size_t count = 0;  // devices or counter sets that have it
  api::Quantity total;
  api::Quantity used;
  api::Quantity free;
  api::Quantity largest_free;  // largest free amount in one device or counter set
};

struct FreeAnswer {
  std::string by;
  std::vector<FreeGroup> groups;       // by name, "<none>" last
  DeviceCounts all;                    // counts each device once
  std::vector<SharedAmount> capacity;  // capacity of shareable devices
  std::vector<SharedAmount> counters;  // counters of pools with partitionable devices
  std::vector<std::string> notes;
};

FreeAnswer CountFree(const DeviceTable& table, const Grouping& by, const DeviceFilter& filter);

}  // namespace drakkar::answers
