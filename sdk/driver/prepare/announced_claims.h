#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "sdk/driver/metadata/claim_plan.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// Fetches claims ahead of the call that prepares them, while the node is still syncing its
// checkpoint. The node announces claims after it has read and checked them itself and sends their
// objects along; objects that it leaves out are fetched here. The call that follows uses them. They
// are never older than the node's own read for this call, nor than kKeptFor, and serve one call. If
// the node sent other objects than the call asks for, or a read failed, the call fetches them.
//
// Loop-bound. Bounds: kMaxBatches announcements; a call beyond that fetches its claims, as if they
// had not been announced.
class AnnouncedClaims {
 public:
  static constexpr Duration kKeptFor = std::chrono::seconds(1);
  static constexpr std::size_t kMaxBatches = 256;

  struct Claim {
    api::ObjectPtr object;
    std::optional<ClaimPlan> plan;  // if it was made ahead of the call
  };
  using Answers = std::vector<Result<Claim>>;
  using EachDone = std::function<void(Answers)>;
  // Plans the metadata of a claim before its call comes. May return nothing.
  using PlanAhead = std::function<std::optional<ClaimPlan>(const api::Object& claim)>;

  AnnouncedClaims(EventLoop& loop, ClaimFetcher& fetcher, PlanAhead plan_ahead)
      : loop_(loop), fetcher_(fetcher), plan_ahead_(std::move(plan_ahead)) {}

  // `done` runs when the announcement has served its call or has expired.
  void Announce(std::vector<rpc::AnnouncedClaim> announced, rpc::AnnounceDone done);
  // One answer for each claim, in order; errors are those of ClaimFetcher::FetchEach.
  void FetchEach(std::vector<rpc::ClaimReference> claims, EachDone done);

 private:
  struct Batch {
    explicit Batch(rpc::AnnounceDone when_over) : over(std::move(when_over)) {}
    ~Batch() { over(); }
    rpc::AnnounceDone over;
    std::optional<Answers> answers;  // nothing while they are being fetched
    EachDone waiting;                // the call, if it came before them
    TimerHandle expiry;
  };
  static std::string KeyOf(const std::vector<rpc::ClaimReference>& claims);
  void FetchNow(std::vector<rpc::ClaimReference> claims, EachDone done);
  void Keep(Batch& batch, Answers answers);
  void Deliver(Answers answers, std::vector<rpc::ClaimReference> claims, EachDone done);

  EventLoop& loop_;
  ClaimFetcher& fetcher_;
  const PlanAhead plan_ahead_;
  std::map<std::string, std::shared_ptr<Batch>> batches_;
};

}  // namespace drakkar::driver
