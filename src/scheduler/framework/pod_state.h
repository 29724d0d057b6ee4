#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/env/clock.h"

namespace drakkar::scheduler {

// What the scheduler remembers about one pod without a node. Durations count from the moment of the
// query.
struct PodState {
  enum class Place : std::uint8_t {
    kUnknown,        // not in the queue: it has a node, has ended, or belongs to another scheduler
    kReady,          // will be tried next
    kBackoff,        // will be tried again in `retry_in`
    kUnschedulable,  // rejected; tried again when an event may help
    kGated,          // a plugin keeps it out of the queue
    kBinding,        // being bound to `node`
  };
  Place place = Place::kUnknown;
  int attempts = 0;
  Duration queued_for{};                 // since it entered the queue
  Duration retry_in{};                   // kBackoff
  std::vector<std::string> rejected_by;  // plugins, in the last attempt
  std::string node;                      // kBinding
  std::string nominated_node;
  std::size_t failed_devices = 0;  // devices that failed for it and are avoided for now
  // Time left until it gives up on the binding conditions of a claim ("namespace/name").
  std::map<std::string, Duration> deadlines;
};

}  // namespace drakkar::scheduler
