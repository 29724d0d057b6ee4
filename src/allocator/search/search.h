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

// Which rules a search asks.
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

// Looks for devices of one node for all claims of a problem: depth first over claims, requests,
// alternatives and devices; the first complete solution wins, and it is the one that trying
// everything in that order would find.
//
// Devices that no rule can tell apart are not tried in each other's place: once one has failed at
// some point of the search, its equals are skipped there. One object is one search.
//
// `Rules` says which rules are asked; what other rules need to know is recorded in any case. There
// are two, below; a search that asks every rule is compiled without the question.
template <typename Rules>
class BasicSearch {
 public:
  using End = SearchEnd;

  BasicSearch(const Problem& problem, const ShapeTable& shapes, const SearchSpace& space,
              const Features& features, const SearchBudget& budget, Rules rules = {});

  End Run();

  const std::vector<Pick>& picks() const { return picks_; }
  // Per number of a request: the alternative that was chosen.
  const std::vector<std::uint32_t>& chosen() const { return chosen_; }
  const Error& error() const { return *error_; }
  std::uint64_t steps() const { return steps_; }

  // Which rule refuses the device for this alternative if nothing else is taken; nothing if none
  // does, an error if asking is fatal. For explanations; before Run.
  Result<std::optional<Rule>> Ask(std::size_t claim, std::size_t request, std::size_t alternative,
                                  std::uint32_t device);
  // Whether the alternatives were checked against the node; part of Run, needed before Ask.
  End CheckRequests();

 private:
  enum class Step { kFound, kFailed, kTooLarge, kStop };
  enum class Verdict { kTaken, kRefused, kStop };

  // One alternative of the problem and what the node means for it.
  struct Slot {
    Alternative* alternative;
    ClaimPlan* claim;
    std::uint32_t claim_index;
    std::uint32_t request_index;
    std::uint32_t alternative_index;
    std::size_t count = 0;
    std::vector<std::uint32_t> all_devices;
    // Devices from each position on that could be taken at all; made when first needed.
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
  // Selectors and node selection; an error stops the search.
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

  std::vector<Slot> slots_;  // per alternative of all requests
  bool symmetric_ = true;
  bool any_admin_ = false;  // devices that are held may be taken all the same

  std::vector<ConstraintState> constraints_;         // of all claims
  std::vector<std::optional<PoolLedgers>> ledgers_;  // per pool, made when first needed
  std::optional<CapacityLedger> capacity_;
  std::vector<std::uint16_t> picked_;  // per device: by how many claims of this attempt
  std::vector<Frame> frames_;          // parallel to picks_
  std::vector<Pick> picks_;
  std::vector<std::size_t> results_in_claim_;
  std::vector<std::uint32_t> chosen_;
  std::vector<std::uint32_t> symmetry_;  // per device, empty until needed
  std::optional<Rule> refused_by_;

  std::uint64_t steps_ = 0;
  bool out_of_budget_ = false;
  std::optional<Error> error_;
};

extern template class BasicSearch<EveryRule>;
extern template class BasicSearch<EveryRuleBut>;

using Search = BasicSearch<EveryRule>;
// "What if the devices need not obey these rules?", for explanations.
using WhatIfSearch = BasicSearch<EveryRuleBut>;

}  // namespace drakkar::allocator
