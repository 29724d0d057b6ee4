#pragma once

#include <deque>
#include <memory>
#include <string>

#include "apiserver/rest/core.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// How many events are kept. Beyond a limit those that were not written for longest are deleted.
struct EventLimits {
  Duration ttl = std::chrono::hours(1);
  std::size_t count_max = 20'000;
  std::size_t bytes_max = std::size_t{32} << 20;  // of their JSON
};

// Deletes events that were not written for `ttl`, as their lease in etcd would: at most a sixtieth
// of `ttl` late, or a second if that is longer. Events that are older than this process expire by
// the times they contain. While there are more events than the limits allow, deletes the oldest.
//
// Bounds: remembers each event once, and up to as many writes that were superseded. Loop-bound to
// the core's loop; destroy it before the core.
class EventExpiry {
 public:
  // Limit for the work of one turn of the loop.
  static constexpr std::size_t kMaxLookedAt = 1'000;
  static constexpr std::size_t kMaxDeleted = 100;

  // `limits.ttl` must be positive.
  EventExpiry(Core& core, EventLimits limits);

  void Start();  // once the core has started

  const EventLimits& limits() const { return limits_; }
  std::size_t remembered() const { return written_.size(); }  // for tests

 private:
  // Everything up to `revision` was written at or before `time`. There are little more than sixty.
  struct Mark {
    MonotonicTime time;
    storage::Revision revision;
  };
  // A write of an event. It is outdated if the event was written again or deleted since.
  struct Written {
    std::string key;
    storage::Revision revision = 0;
  };

  void Follow();
  void Schedule();
  void Tick();
  void Remember(const std::vector<Change>& changes);
  void Sweep();
  void Step();
  void DropOutdated();
  bool IsOutdated(const Written& written) const;
  bool IsExpired(const Written& written) const;

  Core& core_;
  const EventLimits limits_;
  const Duration interval_;
  const api::KindSchema& kind_;
  const WatchCache& events_;
  std::deque<Mark> marks_;
  std::deque<Written> written_;    // oldest first
  storage::Revision expired_ = 0;  // events up to this revision have expired
  storage::Revision start_revision_ = 0;
  WallTime start_time_{};
  bool sweeping_ = false;
  TimerHandle timer_;
  std::unique_ptr<WatchCache::Watcher> watcher_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
