#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/cluster/snapshot.h"

namespace drakkar::answers {

// The claims of a cluster, and what has happened to one of them.

struct ClaimSummary {
  enum class State : std::uint8_t {
    kPending,    // no devices yet
    kWaiting,    // has devices; binding conditions are not met
    kAllocated,  // has devices, and no pod uses them
    kInUse,
    kDeleting,
  };
  api::ObjectPtr claim;
  State state = State::kPending;
  std::string since;  // RFC 3339: when it was created, allocated or due to be deleted
  std::size_t devices = 0;
  std::vector<std::string> pods;  // "namespace/name"; of a pending claim those that refer to it
};

std::string_view StateName(ClaimSummary::State state);  // "Pending", "InUse" ...

// By namespace and name. `table` must be of the same snapshot.
std::vector<ClaimSummary> ListClaims(const Snapshot& snapshot, const DeviceTable& table);

struct TimelineEntry {
  enum class Kind : std::uint8_t { kDone, kWaiting, kFailed };
  std::string at;  // RFC 3339; empty: has not happened yet
  Kind kind = Kind::kDone;
  std::string what;    // "allocated"
  std::string detail;  // may be empty
};

std::string_view KindName(TimelineEntry::Kind kind);  // "done", "waiting", "failed"

// The life of a claim from the times in the claim and its pods, and from `snapshot.events`. Oldest
// first; what it still waits for comes last.
std::vector<TimelineEntry> ClaimTimeline(const Snapshot& snapshot, const api::ObjectPtr& claim);

}  // namespace drakkar::answers
