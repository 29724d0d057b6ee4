#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// Reads claims while the node is still writing down that it will have them prepared. The node announces
// them after it has checked them itself, and the call that follows gets what was read since: it is never
// older than the announcement, nor than kKeptFor, and serves one call. A read that failed is tried
// again by the call.
//
// Loop-bound. Bounds: kMaxBatches announcements; what comes beyond is read by the call, as without one.
class AnnouncedClaims {
 public:
  static constexpr Duration kKeptFor = std::chrono::seconds(1);
  static constexpr std::size_t kMaxBatches = 256;

  AnnouncedClaims(EventLoop& loop, ClaimFetcher& fetcher) : loop_(loop), fetcher_(fetcher) {}

  // `done` runs when the announcement has served its call, or is forgotten.
  void Announce(std::vector<rpc::ClaimReference> claims, rpc::AnnounceDone done);
  // As ClaimFetcher::FetchEach.
  void FetchEach(std::vector<rpc::ClaimReference> claims, ClaimFetcher::EachDone done);

 private:
  struct Batch {
    explicit Batch(rpc::AnnounceDone when_over) : over(std::move(when_over)) {}
    ~Batch() { over(); }
    rpc::AnnounceDone over;
    std::optional<std::vector<Result<api::ObjectPtr>>> answers;  // nothing while they are being read
    ClaimFetcher::EachDone waiting;                              // the call, if it came before them
    TimerHandle forget;
  };
  static std::string KeyOf(const std::vector<rpc::ClaimReference>& claims);
  void Deliver(std::vector<Result<api::ObjectPtr>> answers, std::vector<rpc::ClaimReference> claims,
               ClaimFetcher::EachDone done);

  EventLoop& loop_;
  ClaimFetcher& fetcher_;
  std::map<std::string, std::shared_ptr<Batch>> batches_;
};

}  // namespace drakkar::driver
