#pragma once

#include <functional>
#include <string>
#include <variant>

#include "api/meta/object.h"
#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "claims/claim.h"
#include "client/client.h"
#include "scheduler/cache/claim_cache.h"

namespace drakkar::scheduler {

// Brings a claim in the API to the state that a plan asks for, one write at a time.
//
// The plan looks at the newest version and returns the next write, or says that it is finished; it
// is called again after each write. A conflict costs a read and a retry, at most kMaxTries in all.
// A write with an unknown outcome (no response, server error) is resolved by reading the claim
// before an error is reported, because the caller frees devices after an error. Responses go into
// the claim cache. Loop-bound; callbacks do not run after it is destroyed.
class ClaimWriter {
 public:
  static constexpr int kMaxTries = 5;
  static constexpr Duration kPause = std::chrono::milliseconds(10);
  static constexpr Duration kLongestPause = std::chrono::seconds(5);  // between failing reads

  struct Finished {};
  struct WriteObject {
    api::TreePtr body;
  };
  struct WriteStatus {
    api::TreePtr body;
    bool last = false;  // the plan is finished after it
  };
  struct Refused {
    std::string why;
  };
  using Step = std::variant<Finished, WriteObject, WriteStatus, Refused>;
  using Plan = std::function<Step(const api::Object& claim)>;
  // An empty error means success.
  using Callback = std::function<void(std::string error)>;

  ClaimWriter(EventLoop& loop, Random& random, client::Client& client, ClaimCache& claims)
      : loop_(loop), random_(random), client_(client), claims_(claims) {}
  ClaimWriter(const ClaimWriter&) = delete;
  ClaimWriter& operator=(const ClaimWriter&) = delete;

  // Starts from the cached version of the claim with this uid.
  void Run(const std::string& claim_key, const std::string& claim_uid, Plan plan, Callback done);

 private:
  struct Job {
    std::string key;
    std::string ns;
    std::string name;
    std::string uid;
    Plan plan;
    Callback done;
    int tries = 0;
    Backoff backoff;  // delay between failing reads
    std::string last_error;
    TimerHandle pause;
  };
  using JobPtr = std::shared_ptr<Job>;

  void Continue(const JobPtr& job, const api::ObjectPtr& claim);
  void OnWritten(const JobPtr& job, bool last, client::Reply reply);
  void ReadLater(const JobPtr& job);
  void ReadAgain(const JobPtr& job);

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  ClaimCache& claims_;
  Lifetime lifetime_;
};

// Whether a write that failed with this error may have been applied.
bool MayHaveHappened(const Error& error);

// Adds the finalizer if it is missing, then writes the allocation (null: the claim must already be
// allocated) and the reservation in one status update. An empty `timestamp` is not
// written.
ClaimWriter::Plan PlanAllocateAndReserve(AllocationPtr allocation, std::string timestamp,
                                         claims::Consumer consumer);

// Removes the pod's reservation. In the same write it also removes the allocation and all other
// reservations, unless `is_bound` says that one of them belongs to a bound pod. A no-op if the
// claim is no longer allocated, if it no longer holds `released` (another waiter has reallocated
// it), or, unless the claim is being deleted, if its conditions are True after all: another waiter
// may be about to be bound.
ClaimWriter::Plan PlanRelease(std::string pod_uid, AllocationPtr released,
                              std::function<bool(std::string_view pod_uid)> is_bound);

// Removes allocation and reservation if only this consumer has a reservation. Otherwise a no-op.
ClaimWriter::Plan PlanDeallocate(std::string consumer_uid);

// Removes the finalizer, so that the claim can be deleted although it is allocated.
ClaimWriter::Plan PlanRemoveFinalizer();

}  // namespace drakkar::scheduler
