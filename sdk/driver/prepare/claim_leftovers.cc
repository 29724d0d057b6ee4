#include "sdk/driver/prepare/claim_leftovers.h"

#include <utility>

namespace drakkar::driver {
namespace {

constexpr Backoff::Options kRetry{
    .initial = std::chrono::seconds(1), .max = std::chrono::minutes(5), .jitter = 0.2};
// How long the node's calls may be blocked by a request to the server, which has just responded.
constexpr Duration kLongestTurn = std::chrono::seconds(5);

}  // namespace

struct ClaimLeftovers::Check {
  Turn turn;
  TimerHandle limit;
  bool over = false;
};

ClaimLeftovers::ClaimLeftovers(Options options)
    : options_(std::move(options)),
      fetcher_(options_.client, ClaimFetcher::EmptyUid::kMatchesAny),
      backoff_(kRetry, &options_.random) {}

ClaimLeftovers::Verdict ClaimLeftovers::Judge(const Result<std::vector<api::ObjectPtr>>& objects) {
  if (objects.ok()) {
    if (!(*objects->front())["status"]["reservedFor"].empty()) return InUse();
    return "not reserved";
  }
  const Error& error = objects.error();
  if (error.code == ErrorCode::kNotFound) return "claim is gone";
  // Replaced, or not allocated. Any other error says nothing about the claim.
  if (error.code == ErrorCode::kFailedPrecondition) return error.message;
  return Unknown();
}

void ClaimLeftovers::Look(const std::vector<rpc::ClaimReference>& claims, const Remove& remove) {
  options_.loop.AssertInLoop();
  for (const rpc::ClaimReference& claim : claims) {
    const std::uint64_t id = ++last_id_;
    entries_[id] = {claim, remove};
    Ask(id);
  }
}

void ClaimLeftovers::Keep(std::string_view namespace_name, std::string_view name,
                          std::string_view uid) {
  std::erase_if(entries_, [&](const auto& known) {
    const rpc::ClaimReference& claim = known.second.claim;
    return claim.namespace_name == namespace_name && claim.name == name &&
           (claim.uid.empty() || claim.uid == uid);
  });
}

void ClaimLeftovers::Ask(std::uint64_t id) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  fetcher_.Fetch({entry->second.claim}, [this, id](Result<std::vector<api::ObjectPtr>> objects) {
    const Verdict verdict = Judge(objects);
    if (!std::holds_alternative<std::string>(verdict)) return Decide(id, verdict);
    if (entries_.contains(id)) AskInTurn(id);
  });
}

void ClaimLeftovers::AskInTurn(std::uint64_t id) {
  options_.take_turn([this, id](Result<Turn> turn) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return;
    if (!turn.ok()) return AskLater(id);
    auto check = std::make_shared<Check>();
    check->turn = *std::move(turn);
    check->limit = options_.loop.RunAfter(kLongestTurn, [this, id, weak = std::weak_ptr(check)] {
      const auto late = weak.lock();
      if (late == nullptr || late->over) return;
      late->over = true;
      late->turn.reset();
      AskLater(id);
    });
    fetcher_.Fetch({entry->second.claim},
                   [this, id, check](Result<std::vector<api::ObjectPtr>> objects) {
                     if (check->over) return;  // timed out
                     check->over = true;
                     check->limit.reset();
                     Decide(id, Judge(objects));
                     check->turn.reset();
                   });
  });
}

void ClaimLeftovers::Decide(std::uint64_t id, const Verdict& verdict) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;  // prepared in the meantime
  if (std::holds_alternative<Unknown>(verdict)) return AskLater(id);
  const Entry decided = std::move(entry->second);
  entries_.erase(entry);
  if (const auto* why = std::get_if<std::string>(&verdict)) decided.remove(decided.claim, *why);
}

void ClaimLeftovers::AskLater(std::uint64_t id) {
  later_.insert(id);
  if (armed_) return;
  armed_ = true;
  timer_ = options_.loop.RunAfter(backoff_.Next(), [this] {
    armed_ = false;
    for (const std::uint64_t each : std::exchange(later_, {})) Ask(each);
  });
}

}  // namespace drakkar::driver
