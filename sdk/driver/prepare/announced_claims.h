#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// Has claims at hand while the node is still writing down that it will have them prepared. The node
// announces them after it has read and checked them itself, and passes on what they say; what it
// leaves out is read here. The call that follows gets that: it is never older than the node's own
// reading for this call, nor than kKeptFor, and serves one call. Where the node passed on something
// else than was asked for, or a read failed, the call reads.
//
// Loop-bound. Bounds: kMaxBatches announcements; what comes beyond is read by the call, as without
// one.
class AnnouncedClaims {
 public:
  static constexpr Duration kKeptFor = std::chrono::seconds(1);
  static constexpr std::size_t kMaxBatches = 256;

  // `on_at_hand` gets each claim that is at hand before its call comes.
  AnnouncedClaims(EventLoop& loop, ClaimFetcher& fetcher,
                  std::function<void(const api::ObjectPtr&)> on_at_hand)
      : loop_(loop), fetcher_(fetcher), on_at_hand_(std::move(on_at_hand)) {}

  // `done` runs when the announcement has served its call, or is forgotten.
  void Announce(std::vector<rpc::AnnouncedClaim> announced, rpc::AnnounceDone done);
  // As ClaimFetcher::FetchEach.
  void FetchEach(std::vector<rpc::ClaimReference> claims, ClaimFetcher::EachDone done);

 private:
  struct Batch {
    explicit Batch(rpc::AnnounceDone when_over) : over(std::move(when_over)) {}
    ~Batch() { over(); }
    rpc::AnnounceDone over;
    std::optional<std::vector<Result<api::ObjectPtr>>>
        answers;                     // nothing while they are being read
    ClaimFetcher::EachDone waiting;  // the call, if it came before them
    TimerHandle forget;
  };
  static std::string KeyOf(const std::vector<rpc::ClaimReference>& claims);
  void Keep(Batch& batch, std::vector<Result<api::ObjectPtr>> answers);
  void Deliver(std::vector<Result<api::ObjectPtr>> answers, std::vector<rpc::ClaimReference> claims,
               ClaimFetcher::EachDone done);

  EventLoop& loop_;
  ClaimFetcher& fetcher_;
  const std::function<void(const api::ObjectPtr&)> on_at_hand_;
  std::map<std::string, std::shared_ptr<Batch>> batches_;
};

}  // namespace drakkar::driver
