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

// Removes what an earlier run of the driver left for claims that are gone, replaced, deallocated or
// no longer reserved. If the server cannot be reached or gives no clear answer, everything stays
// and the check is retried (after 1 s to 5 min).
//
// A stale answer never removes anything: the server is asked a second time while no call of the
// node is served, by this instance or by the other one in a rolling update. A claim that this
// instance was asked to prepare is no longer considered.
//
// Loop-bound; destroying it stops it. Bounded by the number of leftover claims.
class ClaimLeftovers {
 public:
  using Remove = std::function<void(const rpc::ClaimReference& claim, const std::string& why)>;
  using Turn = std::shared_ptr<void>;
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    // Runs the function while no other call is served, until its Turn is released.
    std::function<void(std::function<void(Result<Turn> turn)>)> take_turn;
  };
  explicit ClaimLeftovers(Options options);

  // A claim without a UID stands for whichever claim has the name.
  void Look(const std::vector<rpc::ClaimReference>& claims, const Remove& remove);
  // Call it when the claim is about to be prepared.
  void Keep(std::string_view namespace_name, std::string_view name, std::string_view uid);

 private:
  struct Entry {
    rpc::ClaimReference claim;
    Remove remove;
  };
  struct Check;  // of an entry, while no other call is served
  struct InUse {};
  struct Unknown {};
  // the string says why it is not needed
  using Verdict = std::variant<InUse, Unknown, std::string>;
  static Verdict Judge(const Result<std::vector<api::ObjectPtr>>& objects);

  void Ask(std::uint64_t id);
  void AskInTurn(std::uint64_t id);
  void Decide(std::uint64_t id, const Verdict& verdict);
  void AskLater(std::uint64_t id);

  const Options options_;
  ClaimFetcher fetcher_;
  std::map<std::uint64_t, Entry> entries_;  // undecided
  std::uint64_t last_id_ = 0;
  std::set<std::uint64_t> later_;
  bool armed_ = false;
  TimerHandle timer_;
  Backoff backoff_;
};

}  // namespace drakkar::driver
