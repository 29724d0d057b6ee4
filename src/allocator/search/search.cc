#include "allocator/search/search.h"

#include <algorithm>

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

Error Bad(std::string message) {
  return InvalidArgument(std::move(message));
}

}  // namespace

template <typename Rules>
BasicSearch<Rules>::BasicSearch(const Problem& problem, const ShapeTable& shapes,
                                const SearchSpace& space, const Features& features,
                                const SearchBudget& budget, Rules rules)
    : problem_(problem),
      plan_(*problem.plan),
      shapes_(shapes),
      space_(space),
      features_(features),
      budget_(budget),
      rules_(rules) {
  plan_.Sync(shapes.epoch(), shapes.size());
  for (std::uint32_t c = 0; c < plan_.claims().size(); ++c) {
    ClaimPlan& claim = plan_.claims()[c];
    for (const ConstraintPlan& constraint : claim.constraints) {
      constraints_.push_back({constraint.distinct, MatchConstraint(plan_.values()),
                              DistinctConstraint(plan_.values())});
    }
    for (std::uint32_t r = 0; r < claim.requests.size(); ++r) {
      RequestPlan& request = claim.requests[r];
      for (std::uint32_t a = 0; a < request.alternatives.size(); ++a) {
        Alternative& alternative = request.alternatives[a];
        slots_.push_back({&alternative, &claim, c, r, a, 0, {}, {}, 0});
        any_admin_ = any_admin_ || alternative.admin || !rules.Asks(Rule::kInUse);
        // A constraint that is violated while all devices are collected ends the attempt. Whether
        // that happens depends on the order of devices, so take no shortcuts there.
        if (alternative.all && !alternative.constraints.empty()) symmetric_ = false;
      }
    }
    chosen_.resize(chosen_.size() + claim.requests.size(), 0);
  }
  results_in_claim_.assign(plan_.claims().size(), 0);
  picked_.assign(space.devices.size(), 0);
  if (features.consumable_capacity) capacity_.emplace(space.devices.size());
}

template <typename Rules>
SearchEnd BasicSearch<Rules>::Fatal(Error error) {
  error_ = std::move(error);
  return End::kFatal;
}

template <typename Rules>
SearchEnd BasicSearch<Rules>::CheckRequests() {
  for (const auto& pool : space_.node->pools) {
    if (pool->status != PoolView::Status::kBroken) continue;
    return Fatal(Bad(StrCat("gather pool information: ", pool->reason)));
  }
  const auto& fault = problem_.fault;
  for (std::size_t c = 0; c < plan_.claims().size(); ++c) {
    std::size_t minimum = 0;
    const ClaimPlan& claim = plan_.claims()[c];
    for (std::size_t r = 0; r < claim.requests.size(); ++r) {
      std::size_t fewest = ~std::size_t{0};
      for (std::size_t a = 0; a < claim.requests[r].alternatives.size(); ++a) {
        Slot& slot = slots_[claim.requests[r].first_alternative + a];
        if (auto error = CheckAlternative(slot)) return Fatal(*std::move(error));
        fewest = std::min(fewest, slot.count);
      }
      if (fault && fault->claim == c && fault->request == r) return Fatal(fault->error);
      minimum += fewest;
    }
    if (minimum > kMaxResultsPerClaim) {
      return Fatal(Bad(StrCat("claim ", problem_.ClaimName(c), ": number of requested devices ",
                              minimum, " exceeds the claim limit of ", kMaxResultsPerClaim)));
    }
    if (fault && fault->claim == c && fault->request >= claim.requests.size()) {
      return Fatal(fault->error);
    }
  }
  if (fault) return Fatal(fault->error);
  return End::kFound;
}

template <typename Rules>
std::optional<Error> BasicSearch<Rules>::CheckAlternative(Slot& slot) {
  const Alternative& alternative = *slot.alternative;
  if (!alternative.all) {
    slot.count = static_cast<std::size_t>(std::max<std::int64_t>(alternative.spec.count, 0));
    return std::nullopt;
  }
  for (const auto& pool : space_.node->pools) {
    const bool incomplete = pool->status == PoolView::Status::kIncomplete;
    if (!incomplete && pool->status != PoolView::Status::kInvalid) continue;
    return Bad(StrCat(Where(slot), ": asks for all devices, but resource pool ",
                      pool->id.ToString(), " is currently ",
                      incomplete ? "being updated" : "invalid"));
  }
  for (std::uint32_t i = 0; i < space_.devices.size(); ++i) {
    bool stop = false;
    const std::optional<Rule> refused = CheckSelection(slot, i, stop);
    if (stop) return *error_;
    if (refused) continue;
    if (features_.consumable_capacity) {
      const ViewDevice& view = space_.devices[i].view();
      const CapacityNeed& need = plan_.CapacityOf(*slot.alternative, view);
      if (need.kind == CapacityNeed::Kind::kFatal) {
        return Bad(StrCat(Where(slot), ": checking capacity for device ", view.device->name, ": ",
                          need.error));
      }
      if (need.kind != CapacityNeed::Kind::kFits && rules_.Asks(Rule::kCapacity)) continue;
    }
    slot.all_devices.push_back(i);
  }
  slot.count = slot.all_devices.size();
  return std::nullopt;
}

template <typename Rules>
SearchEnd BasicSearch<Rules>::Run() {
  if (CheckRequests() == End::kFatal) return End::kFatal;
  switch (AllocateClaim(0)) {
    case Step::kFound:
      return End::kFound;
    case Step::kFailed:
    case Step::kTooLarge:
      return End::kNone;
    case Step::kStop:
      break;
  }
  return out_of_budget_ ? End::kOutOfBudget : End::kFatal;
}

template <typename Rules>
typename BasicSearch<Rules>::Step BasicSearch<Rules>::AllocateClaim(std::size_t claim) {
  if (claim >= plan_.claims().size()) return Step::kFound;
  return AllocateRequest(claim, 0);
}

template <typename Rules>
typename BasicSearch<Rules>::Step BasicSearch<Rules>::AllocateRequest(std::size_t claim,
                                                                      std::size_t request) {
  const ClaimPlan& plan = plan_.claims()[claim];
  if (request >= plan.requests.size()) {
    const Step step = AllocateClaim(claim + 1);
    // The next claim may become smaller when this one takes other devices.
    return step == Step::kTooLarge ? Step::kFailed : step;
  }
  const std::size_t first = plan.requests[request].first_alternative;
  if (!plan.requests[request].prioritized) return AllocateDevices(slots_[first], 0, 0);

  bool all_too_large = true;
  for (std::size_t a = 0; a < plan.requests[request].alternatives.size(); ++a) {
    chosen_[plan.requests[request].number] = static_cast<std::uint32_t>(a);
    const Step step = AllocateDevices(slots_[first + a], 0, 0);
    if (step == Step::kTooLarge) continue;
    all_too_large = false;
    if (step != Step::kFailed) return step;
  }
  return all_too_large ? Step::kTooLarge : Step::kFailed;
}

template <typename Rules>
typename BasicSearch<Rules>::Step BasicSearch<Rules>::AllocateDevices(Slot& slot, std::size_t taken,
                                                                      std::uint32_t start) {
  if (slot.alternative->all && slot.all_devices.empty()) return Step::kFailed;
  if (taken >= slot.count) return AllocateRequest(slot.claim_index, slot.request_index + 1);
  const std::size_t missing = slot.count - taken;
  if (results_in_claim_[slot.claim_index] + missing > kMaxResultsPerClaim) return Step::kTooLarge;
  if (slot.alternative->all) return AllocateAll(slot, taken);

  const auto device_count = static_cast<std::uint32_t>(space_.devices.size());
  if (missing > 1) {
    CountCandidates(slot);
    // A device whose selector fails is fatal once it is reached, so do not prune before that point.
    if (start >= slot.last_error && slot.candidates_from[start] < missing) return Step::kFailed;
  }
  std::vector<std::uint32_t> failed;  // symmetry classes that have no solution from here
  for (std::uint32_t i = start; i < device_count; ++i) {
    if (!failed.empty() && picked_[i] == 0 && (!capacity_ || capacity_->shares(i) == 0) &&
        std::find(failed.begin(), failed.end(), symmetry_[i]) != failed.end()) {
      continue;
    }
    if (!Spend()) return Step::kStop;
    const Verdict verdict = Take(slot, i, false);
    if (verdict == Verdict::kStop) return Step::kStop;
    if (verdict == Verdict::kRefused) continue;
    const Step step = AllocateDevices(slot, taken + 1, i + 1);
    if (step == Step::kFound) return step;
    Undo(slot);
    if (step != Step::kFailed) return step;
    if (symmetric_ && picked_[i] == 0 && (!capacity_ || capacity_->shares(i) == 0)) {
      failed.push_back(SymmetryClassOf(i));
    }
  }
  return Step::kFailed;
}

template <typename Rules>
typename BasicSearch<Rules>::Step BasicSearch<Rules>::AllocateAll(Slot& slot, std::size_t taken) {
  if (!Spend()) return Step::kStop;
  const Verdict verdict = Take(slot, slot.all_devices[taken], true);
  if (verdict == Verdict::kStop) return Step::kStop;
  if (verdict == Verdict::kRefused) return Step::kFailed;
  const Step step = AllocateDevices(slot, taken + 1, 0);
  if (step != Step::kFound) Undo(slot);
  return step;
}

template <typename Rules>
std::optional<Rule> BasicSearch<Rules>::CheckUse(const Slot& slot, std::uint32_t device) const {
  const SpaceDevice& candidate = space_.devices[device];
  if (slot.alternative->admin) {
    if (IsTakenInClaim(slot.claim_index, device)) return Rule::kPicked;
    return std::nullopt;
  }
  if (candidate.pool->in_use[candidate.index] && rules_.Asks(Rule::kInUse)) {
    return Rule::kInUse;
  }
  if (picked_[device] > 0) return Rule::kPicked;
  return std::nullopt;
}

template <typename Rules>
std::optional<Rule> BasicSearch<Rules>::CheckSelection(Slot& slot, std::uint32_t device,
                                                       bool& stop) {
  const SpaceDevice& candidate = space_.devices[device];
  const ViewDevice& view = candidate.view();
  if (!features_.device_binding_and_status && !view.device->binding_conditions.empty() &&
      rules_.Asks(Rule::kBindingConditionsDisabled)) {
    return Rule::kBindingConditionsDisabled;
  }
  switch (plan_.SelectionOf(*slot.alternative, candidate.pool->id.driver, view)) {
    case Selection::kError:
      error_ = Bad(SelectionError(*slot.alternative, problem_.ClaimName(slot.claim_index),
                                  candidate.pool->id.driver, candidate.id(), *view.device));
      stop = true;
      return std::nullopt;
    case Selection::kNotByClass:
      if (rules_.Asks(Rule::kClassSelector)) return Rule::kClassSelector;
      break;
    case Selection::kNotByRequest:
      if (rules_.Asks(Rule::kRequestSelector)) return Rule::kRequestSelector;
      break;
    case Selection::kYes:
    case Selection::kUnknown:
      break;
  }
  if (!view.targets_node && rules_.Asks(Rule::kNodeSelection)) return Rule::kNodeSelection;
  return std::nullopt;
}

template <typename Rules>
typename BasicSearch<Rules>::Verdict BasicSearch<Rules>::Take(Slot& slot, std::uint32_t device,
                                                              bool must) {
  const SpaceDevice& candidate = space_.devices[device];
  const ViewDevice& view = candidate.view();
  Frame frame{device, false, false, false, false, 0};
  if (const auto rule = CheckUse(slot, device)) return Refuse(slot, *rule, frame);
  if (!must) {
    bool stop = false;
    const std::optional<Rule> rule = CheckSelection(slot, device, stop);
    if (stop) return Verdict::kStop;
    if (rule) return Refuse(slot, *rule, frame);
  }
  const CapacityNeed* need = nullptr;
  const bool shareable = IsShareable(view);
  if (features_.consumable_capacity) {
    need = &plan_.CapacityOf(*slot.alternative, view);
    if (need->kind == CapacityNeed::Kind::kFatal) {
      return Stop(Bad(StrCat(Where(slot), ": checking capacity for device ",
                             candidate.id().ToString(), ": ", need->error)));
    }
    if (rules_.Asks(Rule::kCapacity) &&
        !capacity_->Fits(device, view.device->capacity, *need,
                         candidate.pool->shared_use[candidate.index])) {
      return Refuse(slot, Rule::kCapacity, frame);
    }
  }
  if (candidate.pool->skips_node_operations && view.slice->skip_node_operations.SkipsAny()) {
    if (!features_.optional_node_operations && rules_.Asks(Rule::kSkipDisabled)) {
      return Refuse(slot, Rule::kSkipDisabled, frame);
    }
    if (features_.optional_node_operations && !space_.node->declares_optional_operations &&
        rules_.Asks(Rule::kSkipUndeclared)) {
      return Refuse(slot, Rule::kSkipUndeclared, frame);
    }
  }
  if (!view.device->consumes_counters.empty()) {
    if (!features_.partitionable_devices && rules_.Asks(Rule::kCountersDisabled)) {
      return Refuse(slot, Rule::kCountersDisabled, frame);
    }
    // Counters are paid once for all shares of a device.
    const bool shared_already =
        shareable &&
        (candidate.pool->shared_use[candidate.index] != nullptr || capacity_->shares(device) > 0);
    if (features_.partitionable_devices && !shared_already && !TakeCounters(candidate, frame)) {
      return Refuse(slot, *refused_by_, frame);
    }
  }
  if (features_.device_taints && rules_.Asks(Rule::kTaint) &&
      !plan_.Tolerates(*slot.alternative, candidate.pool->taints[candidate.index], view.shape)) {
    return Refuse(slot, Rule::kTaint, frame);
  }
  const Verdict verdict = AddConstraints(slot, device, must, frame);
  if (verdict != Verdict::kTaken) return verdict;

  if (shareable) {
    frame.share = need->kind == CapacityNeed::Kind::kFits;
    if (frame.share) capacity_->Take(device, *need);
  } else {
    frame.picked = true;
    ++picked_[device];
  }
  frames_.push_back(frame);
  picks_.push_back({slot.claim_index, slot.request_index, slot.alternative_index, device});
  ++results_in_claim_[slot.claim_index];
  return Verdict::kTaken;
}

template <typename Rules>
bool BasicSearch<Rules>::TakeCounters(const SpaceDevice& device, Frame& frame) {
  PoolLedgers& ledgers = LedgersOf(device);
  const CounterNeed& need = device.pool->counter_needs[device.index];
  if (features_.compatibility_groups && rules_.Asks(Rule::kCompatibilityGroups)) {
    if (!ledgers.groups.Add(need.sets)) {
      refused_by_ = Rule::kCompatibilityGroups;
      return false;
    }
    frame.groups = true;
  }
  if (rules_.Asks(Rule::kCounters)) {
    if (!ledgers.counters.Take(need.amounts)) {
      refused_by_ = Rule::kCounters;
      return false;
    }
    frame.counters = true;
  }
  return true;
}

template <typename Rules>
typename BasicSearch<Rules>::Verdict BasicSearch<Rules>::AddConstraints(Slot& slot,
                                                                        std::uint32_t device,
                                                                        bool must, Frame& frame) {
  const SpaceDevice& candidate = space_.devices[device];
  const Alternative& alternative = *slot.alternative;
  if (!rules_.Asks(Rule::kConstraint)) return Verdict::kTaken;
  for (std::size_t n = 0; n < alternative.constraints.size(); ++n) {
    const std::string& driver = candidate.pool->id.driver;
    const std::int32_t value =
        plan_.ValueOf(*slot.claim, *slot.alternative, n, driver, candidate.view());
    if (value == ValueTable::kError) {
      Release(slot, frame);
      return Stop(Bad(DerivedError(*slot.claim, alternative, n, driver, candidate.id(),
                                   *candidate.view().device)));
    }
    if (ConstraintOf(slot, n).Add(value)) {
      ++frame.constraints;
      continue;
    }
    const Verdict refused = Refuse(slot, Rule::kConstraint, frame);
    if (!must) return refused;
    // The claim contradicts itself: its constraint prevents it from getting all devices.
    return Stop(Bad(StrCat(Where(slot), ": cannot add device ", candidate.id().ToString(),
                           " because a claim constraint would not be satisfied")));
  }
  return Verdict::kTaken;
}

template <typename Rules>
void BasicSearch<Rules>::Release(const Slot& slot, const Frame& frame) {
  const SpaceDevice& device = space_.devices[frame.device];
  for (std::uint32_t n = frame.constraints; n > 0; --n) {
    ConstraintOf(slot, n - 1).Undo();
  }
  const CounterNeed* need =
      frame.counters || frame.groups ? &device.pool->counter_needs[device.index] : nullptr;
  if (frame.counters) LedgersOf(device).counters.GiveBack(need->amounts);
  if (frame.groups) LedgersOf(device).groups.Undo();
  if (frame.share) {
    capacity_->GiveBack(frame.device, plan_.CapacityOf(*slot.alternative, device.view()));
  }
  if (frame.picked) --picked_[frame.device];
}

template <typename Rules>
void BasicSearch<Rules>::Undo(Slot& slot) {
  Release(slot, frames_.back());
  frames_.pop_back();
  picks_.pop_back();
  --results_in_claim_[slot.claim_index];
}

template <typename Rules>
typename BasicSearch<Rules>::Verdict BasicSearch<Rules>::Refuse(const Slot& slot, Rule rule,
                                                                const Frame& frame) {
  Release(slot, frame);
  refused_by_ = rule;
  return Verdict::kRefused;
}

template <typename Rules>
typename BasicSearch<Rules>::Verdict BasicSearch<Rules>::Stop(Error error) {
  error_ = std::move(error);
  return Verdict::kStop;
}

template <typename Rules>
bool BasicSearch<Rules>::Spend() {
  ++steps_;
  if (steps_ <= budget_.steps &&
      (steps_ % SearchBudget::kPollSteps != 0 || !budget_.should_stop || !budget_.should_stop())) {
    return true;
  }
  out_of_budget_ = true;
  return false;
}

template <typename Rules>
bool BasicSearch<Rules>::IsTakenInClaim(std::size_t claim, std::uint32_t device) const {
  if (picked_[device] == 0) return false;
  return std::any_of(picks_.begin(), picks_.end(), [&](const Pick& pick) {
    return pick.device == device && pick.claim == claim;
  });
}

template <typename Rules>
typename BasicSearch<Rules>::PoolLedgers& BasicSearch<Rules>::LedgersOf(const SpaceDevice& device) {
  if (ledgers_.empty()) ledgers_.resize(space_.node->pools.size());
  std::optional<PoolLedgers>& ledgers = ledgers_[device.pool_ordinal];
  if (!ledgers) {
    ledgers.emplace(PoolLedgers{CounterLedger(device.pool->available, device.pool->overcommitted),
                                CompatibilityGroups(device.pool->groups)});
  }
  return *ledgers;
}

template <typename Rules>
void BasicSearch<Rules>::CountCandidates(Slot& slot) {
  if (!slot.candidates_from.empty()) return;
  const std::size_t count = space_.devices.size();
  slot.candidates_from.assign(count + 1, 0);
  for (std::size_t i = count; i-- > 0;) {
    const SpaceDevice& candidate = space_.devices[i];
    const Selection selection =
        plan_.SelectionOf(*slot.alternative, candidate.pool->id.driver, candidate.view());
    if (selection == Selection::kError) slot.last_error = std::max(slot.last_error, i + 1);
    const bool selected =
        selection == Selection::kYes ||
        (selection == Selection::kNotByClass && !rules_.Asks(Rule::kClassSelector)) ||
        (selection == Selection::kNotByRequest && !rules_.Asks(Rule::kRequestSelector));
    const bool held = candidate.pool->in_use[candidate.index] && !slot.alternative->admin &&
                      rules_.Asks(Rule::kInUse);
    slot.candidates_from[i] = slot.candidates_from[i + 1] + (selected && !held ? 1 : 0);
  }
}

template <typename Rules>
std::uint32_t BasicSearch<Rules>::SymmetryClassOf(std::uint32_t device) {
  if (symmetry_.empty()) {
    symmetry_ = FindSymmetry(plan_, shapes_, space_, features_, any_admin_);
  }
  return symmetry_[device];
}

template <typename Rules>
Result<std::optional<Rule>> BasicSearch<Rules>::Ask(std::size_t claim, std::size_t request,
                                                    std::size_t alternative, std::uint32_t device) {
  const RequestPlan& plan = plan_.claims()[claim].requests[request];
  Slot& slot = slots_[plan.first_alternative + alternative];
  switch (Take(slot, device, false)) {
    case Verdict::kTaken:
      Undo(slot);
      return std::optional<Rule>();
    case Verdict::kRefused:
      return std::optional<Rule>(refused_by_);
    case Verdict::kStop:
      break;
  }
  return *error_;
}

template <typename Rules>
std::string BasicSearch<Rules>::Where(const Slot& slot) const {
  return StrCat("claim ", problem_.ClaimName(slot.claim_index), ", request ",
                slot.alternative->spec.name);
}

template class BasicSearch<EveryRule>;
template class BasicSearch<EveryRuleBut>;

}  // namespace drakkar::allocator
