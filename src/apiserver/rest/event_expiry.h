#pragma once

#include <deque>
#include <memory>
#include <string>

#include "apiserver/rest/core.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// Deletes events that nobody has written for `ttl`, as their lease in etcd would: between `ttl` and
// a sixtieth of it later (at least a second). What is older than this process goes by the times in
// the event. Loop-bound to the core's loop; destroy it before the core.
class EventExpiry {
 public:
  // Work of one turn of the loop.
  static constexpr std::size_t kMaxLookedAt = 1'000;
  static constexpr std::size_t kMaxDeleted = 100;

  // `ttl` is positive. `user` may delete events.
  EventExpiry(Core& core, Duration ttl, UserInfo user);

  void Start();  // once the core has started

 private:
  // Everything up to `revision` was written at or before `time`. At most sixty and some.
  struct Mark {
    MonotonicTime time;
    storage::Revision revision;
  };

  void Schedule();
  void Tick();
  void Step();
  bool IsExpired(const api::Object& event) const;

  Core& core_;
  const Duration ttl_;
  const Duration interval_;
  const UserInfo user_;
  const api::KindSchema& kind_;
  std::deque<Mark> marks_;
  storage::Revision expired_ = 0;  // events of this revision and before have had their time
  storage::Revision start_revision_ = 0;
  WallTime start_time_{};
  bool sweeping_ = false;
  std::string cursor_;  // the key behind which the sweep goes on
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
