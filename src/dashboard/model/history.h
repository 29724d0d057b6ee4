#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/cluster/snapshot.h"
#include "base/env/clock.h"
#include "base/env/random.h"

namespace drakkar::dashboard {

// A change of a device's health or taints.
struct HealthEvent {
  std::string at;  // RFC 3339
  device::DeviceId device;
  std::string node;
  std::string what;     // "Unhealthy", "Healthy", "Unknown", "Tainted" or "Untainted"
  std::string message;  // the driver's words, or the taints
};

// Pods that got a node within one interval, and how long they had waited.
struct ThroughputSlot {
  std::int64_t start = 0;  // seconds since the epoch, a multiple of kSlotSeconds
  std::size_t scheduled = 0;
  std::vector<std::int64_t> wait_seconds;  // a random sample of at most kMaxWaits
};

// History that the API does not keep: changes of health, and when pods were scheduled, including
// pods that have been deleted since. It starts with what the objects of the first snapshot show,
// and then compares snapshots: a pod that appears and disappears between two of them is not
// counted.
class History {
 public:
  static constexpr std::int64_t kSlotSeconds = 10;
  static constexpr std::size_t kMaxSlots = 360;          // one hour; older ones are dropped
  static constexpr std::size_t kMaxWaits = 200;          // per slot
  static constexpr std::size_t kMaxHealthEvents = 1000;  // the oldest are dropped

  explicit History(Random& random) : random_(random) {}

  void Observe(const answers::Snapshot& snapshot, const answers::DeviceTable& table);

  const std::deque<HealthEvent>& health() const { return health_; }  // oldest first
  // Ascending, without those in which nothing was scheduled.
  const std::deque<ThroughputSlot>& slots() const { return slots_; }

 private:
  struct Known {
    std::string health;
    std::string taints;  // those that prevent allocation
    std::uint64_t seen = 0;
  };
  void ObserveHealth(const answers::Snapshot& snapshot, const answers::DeviceTable& table);
  void ObservePods(const answers::Snapshot& snapshot);
  void AddHealth(HealthEvent event);
  void AddScheduled(std::int64_t at, std::int64_t wait, std::int64_t now);

  Random& random_;
  std::deque<HealthEvent> health_;
  std::deque<ThroughputSlot> slots_;
  std::unordered_map<std::string, Known> devices_;  // by id; as many as the cluster has
  std::unordered_set<std::string> scheduled_;       // UIDs of the pods of the last snapshot
  std::uint64_t round_ = 0;
};

// The value below which `percent` of the values are; 0 for none.
std::int64_t Percentile(std::vector<std::int64_t> values, int percent);

}  // namespace drakkar::dashboard
