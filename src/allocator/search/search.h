#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "allocator/constraint/compatibility_groups.h"
#include "allocator/constraint/distinct_constraint.h"
#include "allocator/constraint/match_constraint.h"
#include "allocator/features.h"
#include "allocator/ledger/capacity_ledger.h"
#include "allocator/ledger/counter_ledger.h"
#include "allocator/request/problem.h"
#include "allocator/rule.h"
#include "allocator/search/budget.h"
#include "allocator/search/search_space.h"
#include "allocator/search/symmetry.h"

namespace drakkar::allocator {

// Which rules a search checks.
struct EveryRule {
  static constexpr bool Asks(Rule) { return true; }
};
class EveryRuleBut {
 public:
  EveryRuleBut(std::initializer_list<Rule> ignored) {
    for (const Rule rule : ignored) ignored_ |= Bit(rule);
  }
  bool Asks(Rule rule) const { return (ignored_ & Bit(rule)) == 0; }

 private:
  static std::uint32_t Bit(Rule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }
  static_assert(kRuleCount <= 32);

  std::uint32_t ignored_ = 0;
};

enum class SearchEnd { kFound, kNone, kOutOfBudget, kFatal };

// Searches the devices of one node for all claims of a problem, depth first over claims, requests,
// alternatives and devices. The first complete solution wins; it is the one that an exhaustive
// search in that order would find.
//
// Devices that no rule can tell apart are tried only once: after one has failed at some point of
// the search, its equals are skipped there. Each object runs one search.
//
// `Rules` decides which rules are checked. State that other rules need is recorded in any case.
// There are two such types, below; a search with every rule is compiled without the test.
template <typename Rules>
class BasicSearch {
 public:
  using End = SearchEnd;

  BasicSearch(const Problem& problem, const ShapeTable& shapes, const SearchSpace& space,
              const Features& features, const SearchBudget& budget, Rules rules = {});

  End Run();

  const std::vector<Pick>& picks() const { return picks_; }
  // By request number: the chosen alternative.
  const std::vector<std::uint32_t>& chosen() const { return chosen_; }
  const Error& error() const { return *error_; }
  std::uint64_t steps() const { return steps_; }

  // Returns the rule that rejects the device for this alternative if nothing else is taken, nullopt
  // if no rule does, or an error if the check is fatal. For explanations; call it before Run.
  Result<std::optional<Rule>> Ask(std::size_t claim, std::size_t request, std::size_t alternative,
                                  std::uint32_t device);
  // Checks the alternatives against the node. Part of Run; must precede Ask.
  End CheckRequests();

 private:
  enum class Step { kFound, kFailed, kTooLarge, kStop };
  enum class Verdict { kTaken, kRefused, kStop };

  // One alternative of the problem and its state for this node.
  struct Slot {
    Alternative* alternative;
    ClaimPlan* claim;
    std::uint32_t claim_index;
    std::uint32_t request_index;
    std::uint32_t alternative_index;
    std::size_t count = 0;
    std::vector<std::uint32_t> all_devices;
    // By position: how many devices from there on could be taken at all. Computed on demand.
    std::vector<std::uint32_t> candidates_from;
    std::size_t last_error = 0;  // past the last device whose selector fails
  };
  // What taking a device changed.
  struct Frame {
    std::uint32_t device;
    bool picked;
    bool counters;
    bool groups;
    bool share;
    std::uint32_t constraints;
  };
  struct ConstraintState {
    bool distinct;
    MatchConstraint match;
    DistinctConstraint different;
    bool Add(std::int32_t value) { return distinct ? different.Add(value) : match.Add(value); }
    void Undo() { distinct ? different.Undo() : match.Undo(); }
  };
  struct PoolLedgers {
    CounterLedger counters;
    CompatibilityGroups groups;
  };

  std::optional<Error> CheckAlternative(Slot& slot);
  End Fatal(Error error);

  Step AllocateClaim(std::size_t claim);
  Step AllocateRequest(std::size_t claim, std::size_t request);
  Step AllocateDevices(Slot& slot, std::size_t taken, std::uint32_t start);
  Step AllocateAll(Slot& slot, std::size_t taken);

  Verdict Take(Slot& slot, std::uint32_t device, bool must);
  std::optional<Rule> CheckUse(const Slot& slot, std::uint32_t device) const;
  // Checks selectors and node selection. An error sets `stop`.
  std::optional<Rule> CheckSelection(Slot& slot, std::uint32_t device, bool& stop);
  bool TakeCounters(const SpaceDevice& device, Frame& frame);
  Verdict AddConstraints(Slot& slot, std::uint32_t device, bool must, Frame& frame);
  void Release(const Slot& slot, const Frame& frame);
  void Undo(Slot& slot);
  Verdict Refuse(const Slot& slot, Rule rule, const Frame& frame);
  Verdict Stop(Error error);
  bool Spend();

  ConstraintState& ConstraintOf(const Slot& slot, std::size_t n) {
    return constraints_[slot.claim->first_constraint + slot.alternative->constraints[n]];
  }
  bool IsTakenInClaim(std::size_t claim, std::uint32_t device) const;
  bool IsShareable(const ViewDevice& device) const {
    return features_.consumable_capacity && device.device->allow_multiple_allocations;
  }
  PoolLedgers& LedgersOf(const SpaceDevice& device);
  void CountCandidates(Slot& slot);
  std::uint32_t SymmetryClassOf(std::uint32_t device);
  std::string Where(const Slot& slot) const;  // "claim x, request y"

  const Problem& problem_;
  Plan& plan_;
  const ShapeTable& shapes_;
  const SearchSpace& space_;
  const Features& features_;
  const SearchBudget& budget_;
  [[no_unique_address]] const Rules rules_;

  std::vector<Slot> slots_;  // by alternative, over all requests
  bool symmetric_ = true;
  bool any_admin_ = false;  // held devices may be taken with admin access

  std::vector<ConstraintState> constraints_;         // of all claims
  std::vector<std::optional<PoolLedgers>> ledgers_;  // by pool, created on demand
  std::optional<CapacityLedger> capacity_;
  std::vector<std::uint16_t> picked_;  // by device: number of claims in this attempt that took it
  std::vector<Frame> frames_;          // parallel to picks_
  std::vector<Pick> picks_;
  std::vector<std::size_t> results_in_claim_;
  std::vector<std::uint32_t> chosen_;
  std::vector<std::uint32_t> symmetry_;  // by device; computed on demand
  std::optional<Rule> refused_by_;

  std::uint64_t steps_ = 0;
  bool out_of_budget_ = false;
  std::optional<Error> error_;
};

extern template class BasicSearch<EveryRule>;
extern template class BasicSearch<EveryRuleBut>;

using Search = BasicSearch<EveryRule>;
// Answers "would it fit without these rules?", for explanations.
using WhatIfSearch = BasicSearch<EveryRuleBut>;

}  // namespace drakkar::allocator
