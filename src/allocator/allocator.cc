#include "allocator/allocator.h"

#include <algorithm>
#include <array>

#include "allocator/explain/remedy.h"
#include "allocator/result/result_builder.h"
#include "allocator/search/search.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

constexpr char kCannotAllocate[] = "cannot allocate all claims";
constexpr char kBindingDisabled[] =
    "cannot allocate all claims: devices have binding conditions, but the "
    "DRADeviceBindingConditions feature gate is disabled";
constexpr char kInvalidPools[] = "invalid resource pools were encountered";

// As in Kubernetes, the first of eight alternatives scores eight, and the last scores one.
constexpr std::int64_t kMaxAlternatives = 8;

bool HasInvalidPool(const NodeIndex::Entry& entry) {
  for (const auto& pool : entry.pools) {
    if (pool->status == PoolView::Status::kInvalid) return true;
  }
  return false;
}

// The rules that an explanation tries to ignore. The others depend on the course of the search, not
// on devices.
constexpr std::array kExplainable = {
    Rule::kInUse,
    Rule::kBindingConditionsDisabled,
    Rule::kClassSelector,
    Rule::kRequestSelector,
    Rule::kNodeSelection,
    Rule::kCapacity,
    Rule::kSkipDisabled,
    Rule::kSkipUndeclared,
    Rule::kCountersDisabled,
    Rule::kCompatibilityGroups,
    Rule::kCounters,
    Rule::kTaint,
    Rule::kConstraint,
};

}  // namespace

Allocator::Allocator(Options options)
    : options_(options),
      plans_(options.compiler, shapes_, options.features),
      index_(options.inventory, options.allocated, shapes_, options.features) {}

Problem Allocator::Prepare(std::span<const std::shared_ptr<const device::Claim>> claims,
                           const ClassLookup& classes) {
  return plans_.Prepare(claims, classes);
}

Result<NodeNumber> Allocator::Find(std::string_view node_name) const {
  const NodeNumber* number = index_.FindNode(node_name);
  if (number == nullptr) return NotFound(StrCat("node ", Quote(node_name), " is not known"));
  return *number;
}

void Allocator::SyncOutcomes(Plan& plan) {
  if (plan.outcome_generation != index_.generation()) {
    plan.outcomes.clear();
    plan.outcome_generation = index_.generation();
  }
  if (plan.outcomes.size() < index_.class_count()) plan.outcomes.resize(index_.class_count());
}

Result<const CachedOutcome*> Allocator::Solve(const Problem& problem, NodeNumber node,
                                              const SearchBudget& budget) {
  CachedOutcome* cached = &scratch_;
  if (options_.reuse_answers && !problem.fault) {
    SyncOutcomes(*problem.plan);
    cached = &problem.plan->outcomes[index_.classes()[node]];
    if (cached->kind != CachedOutcome::Kind::kUnknown &&
        (cached->shared_version == index_.shared_version() ||
         !index_.entry(node).has_shared_pools)) {
      return cached;
    }
  }
  const SearchSpace space(index_.entry(node));
  Search search(problem, shapes_, space, options_.features, budget);
  const Search::End end = search.Run();
  last_steps_ = search.steps();
  if (end == Search::End::kFatal) return search.error();
  if (end == Search::End::kOutOfBudget) return nullptr;
  cached->shared_version = index_.shared_version();
  if (end == Search::End::kFound) {
    cached->kind = CachedOutcome::Kind::kFits;
    cached->picks = search.picks();
    cached->chosen = search.chosen();
  } else {
    cached->kind = CachedOutcome::Kind::kUnsatisfiable;
    const Unsatisfiable why = WhyNot(problem, node, budget);
    cached->reason = why.reason;
    cached->message = why.message;
  }
  return cached;
}

bool Allocator::WouldFitWithout(const Problem& problem, NodeNumber node, Rule rule,
                                const SearchBudget& budget) {
  const SearchSpace space(index_.entry(node));
  WhatIfSearch search(problem, shapes_, space, options_.features, budget, {rule});
  return search.Run() == SearchEnd::kFound;
}

Unsatisfiable Allocator::WhyNot(const Problem& problem, NodeNumber node,
                                const SearchBudget& budget) {
  const NodeIndex::Entry& entry = index_.entry(node);
  const PoolView* skipping = nullptr;
  bool binding = false;
  for (const auto& pool : entry.pools) {
    binding = binding || pool->has_binding_conditions;
    if (skipping == nullptr && pool->skips_node_operations) skipping = pool.get();
  }
  if (skipping != nullptr && !options_.features.optional_node_operations &&
      WouldFitWithout(problem, node, Rule::kSkipDisabled, budget)) {
    std::string slice;
    for (const ViewDevice& device : skipping->devices) {
      if (slice.empty() && device.slice->skip_node_operations.SkipsAny()) {
        slice = device.slice->name;
      }
    }
    return {Reason::kSkipDisabled,
            StrCat("ResourceSlice ", slice,
                   " skips node operations, but the DRAOptionalNodePreparation feature gate is "
                   "disabled")};
  }
  if (skipping != nullptr && options_.features.optional_node_operations &&
      !entry.declares_optional_operations &&
      WouldFitWithout(problem, node, Rule::kSkipUndeclared, budget)) {
    return {Reason::kSkipUndeclared, std::string(RuleSentence(Rule::kSkipUndeclared))};
  }
  if (binding && !options_.features.device_binding_and_status &&
      WouldFitWithout(problem, node, Rule::kBindingConditionsDisabled, budget)) {
    return {Reason::kBindingDisabled, kBindingDisabled};
  }
  if (HasInvalidPool(entry)) return {Reason::kInvalidPools, kInvalidPools};
  return {Reason::kNoDevices, kCannotAllocate};
}

Result<Outcome> Allocator::Allocate(const Problem& problem, std::string_view node_name,
                                    const SearchBudget& budget) {
  ASSIGN_OR_RETURN(const NodeNumber node, Find(node_name));
  index_.Refresh();
  ASSIGN_OR_RETURN(const CachedOutcome* solved, Solve(problem, node, budget));
  if (solved == nullptr) return Outcome(BudgetExceeded{last_steps_});
  if (solved->kind == CachedOutcome::Kind::kUnsatisfiable) {
    return Outcome(Unsatisfiable{solved->reason, solved->message});
  }
  problem.plan->Sync(shapes_.epoch(), shapes_.size());
  ASSIGN_OR_RETURN(std::vector<device::AllocationResult> results,
                   BuildResults(problem, index_.entry(node), options_.features, solved->picks,
                                solved->chosen, options_.random));
  return Outcome(Allocation{std::move(results)});
}

Allocator::Verdict Allocator::Judge(const Problem& problem, NodeNumber node,
                                    const SearchBudget& budget) {
  Verdict verdict;
  Result<const CachedOutcome*> solved = Solve(problem, node, budget);
  if (!solved.ok()) {
    verdict.kind = Verdict::Kind::kFatal;
    verdict.error = solved.error();
    return verdict;
  }
  if (*solved == nullptr) {
    verdict.kind = Verdict::Kind::kBudgetExceeded;
    return verdict;
  }
  const CachedOutcome& outcome = **solved;
  if (outcome.kind == CachedOutcome::Kind::kUnsatisfiable) {
    verdict.why = {outcome.reason, outcome.message};
    return verdict;
  }
  verdict.kind = Verdict::Kind::kFits;
  for (const std::uint32_t alternative : outcome.chosen) {
    verdict.score += kMaxAlternatives - alternative;
  }
  bool binding = false;
  for (const auto& pool : index_.entry(node).pools) {
    binding = binding || pool->has_binding_conditions;
  }
  if (binding) {
    for (const SpaceDevice& device : DevicesOf(index_.entry(node), outcome.picks)) {
      verdict.waits = verdict.waits || !device.view().device->binding_conditions.empty();
    }
  }
  return verdict;
}

void Allocator::Filter(const Problem& problem, const SearchBudget& budget, Verdicts& verdicts) {
  index_.Refresh();
  const std::vector<std::uint32_t>& classes = index_.classes();
  verdicts.distinct.clear();
  verdicts.by_node.resize(classes.size());
  // Indexed by class number, which is dense.
  verdict_of_class_.assign(index_.class_count(), Verdicts::kNotANode);
  for (NodeNumber node = 0; node < classes.size(); ++node) {
    const std::uint32_t node_class = classes[node];
    if (node_class == NodeIndex::kNoClass) {
      verdicts.by_node[node] = Verdicts::kNotANode;
      continue;
    }
    std::uint32_t& index = verdict_of_class_[node_class];
    if (index == Verdicts::kNotANode) {
      index = static_cast<std::uint32_t>(verdicts.distinct.size());
      verdicts.distinct.push_back(Judge(problem, node, budget));
    }
    verdicts.by_node[node] = index;
  }
}

Result<Explanation> Allocator::Explain(const Problem& problem, std::string_view node_name,
                                       const SearchBudget& budget) {
  ASSIGN_OR_RETURN(const NodeNumber node, Find(node_name));
  index_.Refresh();
  const NodeIndex::Entry& entry = index_.entry(node);
  const SearchSpace space(entry);
  Explanation explanation;
  explanation.node = node_name;
  {
    Search search(problem, shapes_, space, options_.features, budget);
    const Search::End end = search.Run();
    if (end == Search::End::kFatal) return search.error();
    explanation.fits = end == Search::End::kFound;
    explanation.out_of_budget = end == Search::End::kOutOfBudget;
  }
  Search asking(problem, shapes_, space, options_.features, budget);
  CHECK(asking.CheckRequests() != Search::End::kFatal);
  // When a holder gives up a device, its counters are freed as well.
  WhatIfSearch if_free(problem, shapes_, space, options_.features, budget,
                       {Rule::kInUse, Rule::kCounters, Rule::kCompatibilityGroups});
  CHECK(if_free.CheckRequests() != SearchEnd::kFatal);
  const auto& claims = problem.plan->claims();
  for (std::size_t c = 0; c < claims.size(); ++c) {
    ClaimExplanation& claim = explanation.claims.emplace_back();
    claim.name = problem.ClaimName(c);
    for (std::size_t r = 0; r < claims[c].requests.size(); ++r) {
      const RequestPlan& request = claims[c].requests[r];
      for (std::size_t a = 0; a < request.alternatives.size(); ++a) {
        RequestExplanation& explained = claim.requests.emplace_back();
        explained.name = request.alternatives[a].full_name();
        explained.wants_all = request.alternatives[a].all;
        explained.wanted =
            static_cast<std::size_t>(std::max<std::int64_t>(request.alternatives[a].spec.count, 0));
        std::array<Refusal, kRuleCount> refusals;
        for (std::uint32_t i = 0; i < space.devices.size(); ++i) {
          Result<std::optional<Rule>> asked = asking.Ask(c, r, a, i);
          if (!asked.ok()) continue;  // fatal only if a search gets this far
          if (!*asked) {
            ++explained.candidates;
            continue;
          }
          Refusal& refusal = refusals[static_cast<std::size_t>(**asked)];
          refusal.rule = **asked;
          if (refusal.count++ == 0) refusal.first = i;
          if (refusal.examples.size() < Refusal::kMaxExamples) {
            refusal.examples.push_back(space.devices[i].id());
          }
          if (**asked != Rule::kInUse) continue;
          if (asked = if_free.Ask(c, r, a, i); !asked.ok() || asked->has_value()) continue;
          if (explained.held_count++ < RequestExplanation::kMaxHeld) {
            explained.held.push_back(space.devices[i].id());
          }
        }
        for (Refusal& refusal : refusals) {
          if (refusal.count > 0) explained.refusals.push_back(std::move(refusal));
        }
      }
    }
  }
  for (const auto& pool : entry.pools) {
    const bool invalid = pool->status == PoolView::Status::kInvalid;
    if (!invalid && pool->status != PoolView::Status::kIncomplete) continue;
    explanation.pools.push_back({pool->id, invalid, pool->reason});
  }
  if (!explanation.fits) {
    for (const Rule rule : kExplainable) {
      if (!WouldFitWithout(problem, node, rule, budget)) continue;
      explanation.closest.push_back({rule, FindRemedies(rule, problem, space, explanation)});
    }
  }
  return explanation;
}

}  // namespace drakkar::allocator
