#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "scheduler/cache/claim_cache.h"

namespace drakkar::scheduler {

// Pods that wait for the binding conditions of their claims (KEP-5007): a table keyed by claim, and
// one timer for the earliest deadline. A change of a claim wakes exactly its waiters, without
// polling.
//
// Loop-bound. A waiting pod costs one entry and its claim names.
class ConditionWaits {
 public:
  static constexpr MonotonicTime kNoDeadline = MonotonicTime::max();
  struct Claim {
    std::string key;
    std::string uid;
    MonotonicTime deadline;
  };
  enum class End : std::uint8_t {
    kReady,     // all conditions of all claims are True
    kFailed,    // a failure condition is True
    kTimeout,   // the deadline of a claim passed with a condition not True
    kGone,      // a claim was deallocated, replaced or deleted
    kDeleted,   // a claim is being deleted; it exists until it is deallocated
    kNodeLost,  // the node was deleted or no longer accepts the pod
    kCancelled,
  };
  struct Outcome {
    End end;
    std::string message;  // names claim, device and condition
    // Keys of the claims that failed, timed out, are being deleted, or were still waiting on a lost
    // node.
    std::vector<std::string> unusable = {};
  };
  using Callback = std::function<void(Outcome)>;

  ConditionWaits(EventLoop& loop, const ClaimCache& claims) : loop_(loop), claims_(claims) {}

  // `done` runs once, never before the call returns. One wait per pod.
  void Wait(const std::string& pod_uid, std::vector<Claim> claims, Callback done);
  // Must be called for every change of a claim.
  void OnClaimChanged(const std::string& claim_key);
  // Ends the pod's wait, if there is one, with kCancelled.
  void Cancel(const std::string& pod_uid);
  // Ends the pod's wait, if there is one, with kNodeLost.
  void EndForNode(const std::string& pod_uid, const std::string& why);

  std::size_t size() const { return waits_.size(); }
  // The deadlines of the pod's wait by claim key; empty if it does not wait.
  std::map<std::string, MonotonicTime> DeadlinesOf(const std::string& pod_uid) const;

 private:
  struct Entry {
    std::vector<Claim> claims;
    Callback done;
  };
  // Checks all claims of the pod; true if the wait is over.
  bool Check(const Entry& entry, Outcome& outcome) const;
  void Finish(const std::string& pod_uid, Outcome outcome);
  void ArmTimer();
  MonotonicTime Now() const { return loop_.clock().Monotonic(); }

  EventLoop& loop_;
  const ClaimCache& claims_;
  std::map<std::string, Entry> waits_;                                  // by pod uid
  std::map<std::string, std::set<std::string>, std::less<>> by_claim_;  // claim key -> pod uids
  std::set<std::pair<MonotonicTime, std::string>> deadlines_;           // with pod uid
  TimerHandle timer_;
  MonotonicTime timer_for_{};
  Lifetime lifetime_;
};

}  // namespace drakkar::scheduler
