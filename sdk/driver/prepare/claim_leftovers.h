#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// Looks after what an earlier run of the driver left of claims: what belongs to a claim that is
// gone, was replaced or deallocated, or is not reserved any more is removed. Where the server
// cannot be reached, or does not say, it stays and the server is asked again (after 1 s to 5 min).
//
// Nothing is removed by an answer that may be out of date: the server is asked once more in a turn
// of its own, while no call of the node is served, by this instance or by one that hands over to
// it; and a claim that this instance was asked to prepare is not looked at any more.
//
// Loop-bound; destroying it ends it. Bounded by the claims that were left.
class ClaimLeftovers {
 public:
  using Remove = std::function<void(const rpc::ClaimReference& claim, const std::string& why)>;
  using Turn = std::shared_ptr<void>;
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    // Runs the function when no call is served; none is until the turn it gets is let go.
    std::function<void(std::function<void(Result<Turn> turn)>)> take_turn;
  };
  explicit ClaimLeftovers(Options options);

  // A claim without a UID is whatever claim has the name.
  void Look(const std::vector<rpc::ClaimReference>& claims, const Remove& remove);
  // The claim is about to be prepared.
  void Keep(std::string_view namespace_name, std::string_view name, std::string_view uid);

 private:
  struct Entry {
    rpc::ClaimReference claim;
    Remove remove;
  };
  struct Check;  // of an entry, in a turn of its own
  struct InUse {};
  struct Unknown {};
  using Verdict = std::variant<InUse, Unknown, std::string>;  // the text: why it is not needed
  static Verdict Judge(const Result<std::vector<api::ObjectPtr>>& objects);

  void Ask(std::uint64_t id);
  void AskInTurn(std::uint64_t id);
  void Decide(std::uint64_t id, const Verdict& verdict);
  void AskLater(std::uint64_t id);

  const Options options_;
  ClaimFetcher fetcher_;
  std::map<std::uint64_t, Entry> entries_;  // not decided yet
  std::uint64_t last_id_ = 0;
  std::set<std::uint64_t> later_;
  bool armed_ = false;
  TimerHandle timer_;
  Backoff backoff_;
};

}  // namespace drakkar::driver
