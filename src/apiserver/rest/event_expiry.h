#pragma once

#include <deque>
#include <memory>
#include <string>

#include "apiserver/rest/core.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// Deletes events that were not written for `ttl`, as their lease in etcd would: at most a sixtieth
// of `ttl` late, or a second if that is longer. Events that are older than this process expire by
// the times they contain. Loop-bound to the core's loop; destroy it before the core.
class EventExpiry {
 public:
  // Limit for the work of one turn of the loop.
  static constexpr std::size_t kMaxLookedAt = 1'000;
  static constexpr std::size_t kMaxDeleted = 100;

  // `ttl` must be positive. `user` may delete events.
  EventExpiry(Core& core, Duration ttl, UserInfo user);

  void Start();  // once the core has started

 private:
  // Everything up to `revision` was written at or before `time`. There are little more than sixty.
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
  storage::Revision expired_ = 0;  // events up to this revision have expired
  storage::Revision start_revision_ = 0;
  WallTime start_time_{};
  bool sweeping_ = false;
  std::string cursor_;  // where the sweep continues
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
