#pragma once

#include <functional>
#include <string>
#include <variant>

#include "api/meta/object.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "scheduler/cache/claim_cache.h"

namespace drakkar::scheduler {

// Brings a claim in the API to where a plan wants it, one write after the other.
//
// The plan looks at the newest version and says what to write next, or that nothing is left; after
// each write it is asked again. A conflict costs a read and another try, kMaxTries in all. A write
// whose fate is unknown (no answer, server trouble) is not given up before a read has shown what
// became of it: whoever frees devices after an error must be able to rely on it. Answers go into
// the claim cache. Loop-bound; callbacks do not run after it is destroyed (through its
// client).
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
    bool last = false;  // nothing is left after it
  };
  struct Refused {
    std::string why;
  };
  using Step = std::variant<Finished, WriteObject, WriteStatus, Refused>;
  using Plan = std::function<Step(const api::Object& claim)>;
  // Empty: done.
  using Callback = std::function<void(std::string error)>;

  ClaimWriter(EventLoop& loop, Random& random, client::Client& client, ClaimCache& claims)
      : loop_(loop), random_(random), client_(client), claims_(claims) {}
  ~ClaimWriter() { *alive_ = false; }
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
    int failed_reads = 0;  // in a row
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
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Whether a write that failed like this may have happened all the same.
bool MayHaveHappened(const Error& error);

struct ClaimConsumer {
  std::string name;
  std::string uid;
};

// Writes the allocation (null: it must be there already), with the finalizer before it, and the
// reservation for the pod, with one status write. `timestamp` is empty if none is to be written.
ClaimWriter::Plan PlanAllocateAndReserve(AllocationPtr allocation, std::string timestamp,
                                         ClaimConsumer pod);

// Takes the pod's reservation back. The allocation goes with it, in the same write, together with
// all other reservations, unless `is_bound` says that one of them is a bound pod's. Nothing happens
// if the claim is not allocated any more, if it is no longer `spoiled` that it holds (another
// waiter was quicker and has allocated it anew), or if its conditions are met after all: whoever
// waits for them may be about to be bound, unless the claim is being deleted.
ClaimWriter::Plan PlanRelease(std::string pod_uid, AllocationPtr spoiled,
                              std::function<bool(std::string_view pod_uid)> is_bound);

// Clears allocation and reservation if nobody but the pod has a reservation; else nothing.
ClaimWriter::Plan PlanDeallocate(std::string pod_uid);

}  // namespace drakkar::scheduler
