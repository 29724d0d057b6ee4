#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "device/node_selector.h"
#include "features/gates/feature_gates.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/plugins/dynamic_resources/pod_devices.h"

namespace drakkar::scheduler {

using Verdict = allocator::Allocator::Verdict;

namespace {

bool IsOptionalOperations(std::string_view feature) {
  return feature == device::kOptionalNodePreparation || feature == device::kOptionalNodeOperations;
}

bool DeclaresOptionalOperations(const device::Node& node) {
  return std::any_of(node.declared_features.begin(), node.declared_features.end(),
                     IsOptionalOperations);
}

bool DeclaresOptionalOperations(const api::ObjectPtr& node) {
  for (api::Value feature : node->root()["status"]["declaredFeatures"].elements()) {
    if (IsOptionalOperations(feature.str())) return true;
  }
  return false;
}

}  // namespace

DynamicResources::DynamicResources(Options options)
    : options_(std::move(options)),
      writer_(options_.loop, options_.random, options_.client, options_.claims),
      waits_(options_.loop, options_.claims) {}

EventMask DynamicResources::events() const {
  return MaskOf(EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kNodeAllocatable,
                EventKind::kNodeDeclaredFeatures, EventKind::kTargetPodChange, EventKind::kClaimAdd,
                EventKind::kClaimUpdate, EventKind::kClaimDelete, EventKind::kSliceChange,
                EventKind::kClassChange);
}

bool DynamicResources::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  switch (event.kind) {
    case EventKind::kTargetPodChange:
      return !api::Equal(event.before->root()["status"]["resourceClaimStatuses"],
                         event.after->root()["status"]["resourceClaimStatuses"]);
    case EventKind::kNodeDeclaredFeatures:
      // The one feature that devices ask of a node (KEP-5945).
      return DeclaresOptionalOperations(event.after) && !DeclaresOptionalOperations(event.before);
    case EventKind::kClaimDelete:
      return event.before == nullptr || claims::IsAllocated(event.before->root());
    case EventKind::kClaimAdd:
      return true;  // only users of the claim are asked
    case EventKind::kClaimUpdate:
      if (event.before == nullptr || event.after == nullptr) return true;
      if (claims::IsAllocated(event.before->root()) && !claims::IsAllocated(event.after->root())) {
        return true;  // devices are free
      }
      // A user of the claim: it need not be tried as long as something else is missing.
      if (!CheckClaims(pod).ok()) return false;
      return !api::Equal(event.before->root()["status"], event.after->root()["status"]);
    default:
      return true;
  }
}

Status DynamicResources::CheckClaims(const PodInfo& pod) const {
  for (const PodClaim& wanted : pod.claims) {
    if (wanted.state == PodClaim::State::kNotNeeded) continue;
    if (wanted.state == PodClaim::State::kUnsupported) {
      return Status::Unresolvable(StrCat("pod ", Quote(pod.key), ", spec.resourceClaim ",
                                         Quote(wanted.entry),
                                         ": none of the supported fields are set"));
    }
    if (wanted.state == PodClaim::State::kNotCreated) {
      return Status::Unresolvable(
          StrCat("pod ", Quote(pod.key), ": ResourceClaim not created yet"));
    }
    const std::string claim_key = pod.ClaimKey(wanted);
    const CachedClaim* claim = options_.claims.Find(claim_key);
    if (claim == nullptr) {
      return Status::Unresolvable(StrCat("could not find ResourceClaim ", Quote(claim_key)));
    }
    if (claim->latest->is_being_deleted()) {
      return Status::Unresolvable(
          StrCat("resourceclaim ", Quote(wanted.claim_name), " is being deleted"));
    }
    if (wanted.from_template && !claims::IsMadeFor(claim->latest->root(), pod.uid)) {
      return Status::Unresolvable(StrCat("ResourceClaim ", claim_key, " was not created for Pod ",
                                         pod.key, " (Pod is not owner)"));
    }
  }
  return Status::Success();
}

Status DynamicResources::PreEnqueue(const PodInfo& pod) {
  return CheckClaims(pod);
}

Status DynamicResources::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  if (pod.claims.empty()) return Status::Skip();
  if (Status status = CheckClaims(pod); !status.ok()) return status;
  auto state = std::make_unique<PodDevices>();
  std::vector<std::shared_ptr<const device::Claim>> specs;
  for (const PodClaim& wanted : pod.claims) {
    if (wanted.state == PodClaim::State::kNotNeeded) continue;
    std::string claim_key = pod.ClaimKey(wanted);
    const CachedClaim& claim = *options_.claims.Find(claim_key);
    if (!claim.problem.empty()) {
      return Status::Unresolvable(StrCat("claim ", claim_key, ": ", claim.problem));
    }
    // Two entries may name the same claim.
    if (std::any_of(state->items.begin(), state->items.end(),
                    [&](const auto& item) { return item.key == claim_key; })) {
      continue;
    }
    PodDevices::Item& item = state->items.emplace_back();
    item.key = std::move(claim_key);
    item.uid = std::string(claim.latest->uid());
    if (claim.is_being_released) {
      return Status::Unschedulable(
          StrCat("resource claim ", item.key, " is in the process of being deallocated"));
    }
    if (claim.allocation != nullptr) continue;
    if (claim.pending != nullptr) {
      return Status::Unschedulable(
          StrCat("resource claim ", item.key, " is in the process of being allocated"));
    }
    for (const device::Request& request : claim.spec->requests) {
      const auto missing = [&](const device::RequestSpec& spec) {
        return !options_.devices.HasClass(spec.device_class);
      };
      const device::RequestSpec* without_class = nullptr;
      if (request.exactly && missing(*request.exactly)) without_class = &*request.exactly;
      for (const device::RequestSpec& spec : request.first_available) {
        if (without_class == nullptr && missing(spec)) without_class = &spec;
      }
      if (without_class != nullptr) {
        return Status::Unresolvable(StrCat("request ", request.name, ": device class ",
                                           without_class->device_class, " does not exist"));
      }
    }
    item.to_allocate = true;
    specs.push_back(claim.spec);
  }
  if (state->items.empty()) return Status::Skip();
  if (!specs.empty()) {
    state->problem = options_.devices.allocator().Prepare(
        specs, [this](std::string_view name) { return options_.devices.FindClass(name); });
    state->has_problem = true;
  }
  cycle.states[id] = std::move(state);
  return Status::Success();
}

bool DynamicResources::IsUsable(const CachedClaim& claim) const {
  if (!options_.gates.BindingConditions()) return true;
  const BindingState binding = EvaluateBinding(claim);
  if (binding.kind == BindingState::Kind::kFailed) return false;
  return binding.kind != BindingState::Kind::kWaiting || !IsPastDeadline(claim);
}

void DynamicResources::FilterAllocated(const CachedClaim& claim, bool usable,
                                       NodeSet& nodes) const {
  if (!usable) {
    nodes.Clear();
    return;
  }
  const bool needs_feature =
      std::any_of(claim.allocation->results.begin(), claim.allocation->results.end(),
                  [](const auto& result) { return result.skip_node_operations.SkipsAny(); });
  const auto& selector = claim.allocation->node_selector;
  if (!selector && !needs_feature) return;
  if (selector) {
    if (const std::string_view name = device::FindOnlyNode(*selector); !name.empty()) {
      const NodeIndex node = options_.nodes.Find(name);
      const bool there = node != kNoNode && nodes.Contains(node);
      nodes.Clear();
      if (there) nodes.Add(node);
    }
  }
  const NodeSet left = nodes;
  left.ForEach([&](NodeIndex node) {
    const device::Node& known = options_.devices.NodeAt(node);
    bool fits = !needs_feature || DeclaresOptionalOperations(known);
    if (fits && selector) {
      const Result<bool> matches = device::Matches(*selector, known);
      fits = matches.ok() && *matches;
    }
    if (!fits) nodes.Remove(node);
  });
}

allocator::SearchBudget DynamicResources::MakeBudget() const {
  allocator::SearchBudget budget;
  if (options_.filter_timeout > Duration::zero()) {
    const Clock* clock = &options_.loop.clock();
    const MonotonicTime end = clock->Monotonic() + options_.filter_timeout;
    budget.should_stop = [clock, end] { return clock->Monotonic() >= end; };
  }
  return budget;
}

Status DynamicResources::Filter(Cycle& cycle, NodeSet& nodes) {
  PodDevices& state = StateOf(cycle);
  const NodeSet before = nodes;
  for (PodDevices::Item& item : state.items) {
    if (item.to_allocate) continue;
    const CachedClaim& claim = *options_.claims.Find(item.key);
    const NodeSet left = nodes;
    FilterAllocated(claim, IsUsable(claim), nodes);
    NodeSet lost = left;
    lost.RemoveAll(nodes);
    item.unavailable = !lost.IsEmpty();
  }
  state.unavailable = before;
  state.unavailable.RemoveAll(nodes);
  if (!state.has_problem || nodes.IsEmpty()) return Status::Success();
  return FilterUnallocated(cycle, state, nodes);
}

Status DynamicResources::FilterUnallocated(Cycle& cycle, PodDevices& state, NodeSet& nodes) {
  const allocator::SearchBudget budget = MakeBudget();
  {
    const Avoiding avoiding(*this, cycle.pod->uid);
    options_.devices.allocator().Filter(state.problem, budget, verdicts_);
    state.avoiding = avoiding.any();
  }
  if (state.avoiding && !AnyFits(nodes)) {
    // Better a device that failed once than none.
    state.avoiding = false;
    options_.devices.allocator().Filter(state.problem, budget, verdicts_);
    // All had their turn: the next round begins, in which again each has one. Always taking the
    // first would mean that one that never works keeps the pod from the others for good.
    if (AnyFits(nodes)) {
      Avoided& avoided = avoided_[cycle.pod->uid];
      avoided.round_began = avoided.next;
    }
  }
  kinds_.clear();
  for (const Verdict& verdict : verdicts_.distinct) kinds_.push_back(verdict.kind);
  if (std::all_of(kinds_.begin(), kinds_.end(),
                  [](Verdict::Kind kind) { return kind == Verdict::Kind::kFits; })) {
    return Status::Success();
  }
  for (std::size_t word = 0; word < nodes.word_count(); ++word) {
    std::uint64_t bits = nodes.word(word);
    std::uint64_t kept = bits;
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(bits));
      const auto node = static_cast<NodeIndex>(word * 64 + bit);
      const std::uint32_t at = verdicts_.by_node[options_.devices.NumberOf(node)];
      switch (kinds_[at]) {
        case Verdict::Kind::kFits:
          continue;
        case Verdict::Kind::kUnsatisfiable:
          break;
        case Verdict::Kind::kBudgetExceeded:
          return Status::Error(
              StrCat("node ", options_.nodes.name(node), ": timed out trying to allocate devices"));
        case Verdict::Kind::kFatal:
          return Status::Error(verdicts_.distinct[at].error->message);
      }
      kept &= ~(std::uint64_t{1} << bit);
    }
    nodes.set_word(word, kept);
  }
  return Status::Success();
}

bool DynamicResources::AnyFits(const NodeSet& nodes, bool at_once) const {
  bool fits = false;
  nodes.ForEach([&](NodeIndex node) {
    const Verdict& verdict = verdicts_.distinct[verdicts_.by_node[options_.devices.NumberOf(node)]];
    fits = fits || (verdict.kind == Verdict::Kind::kFits && !(at_once && verdict.waits));
  });
  return fits;
}

void DynamicResources::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const PodDevices& state = StateOf(cycle);
  std::string unavailable = "resourceclaim not available on the node";
  for (const PodDevices::Item& item : state.items) {
    if (!item.unavailable) continue;
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || IsUsable(*claim)) continue;
    // Which condition it is that makes a claim unusable: KEP-5007 wants it seen.
    const BindingState binding = EvaluateBinding(*claim);
    unavailable += StrCat(": ", binding.kind == BindingState::Kind::kFailed
                                    ? DescribeBindingFailure(*claim, binding)
                                    : DescribeBindingTimeout(*claim, binding));
    break;
  }
  // Counted by verdict first: there are few, whatever the number of nodes.
  std::size_t unavailable_count = 0;
  std::vector<std::size_t> counts(verdicts_.distinct.size(), 0);
  rejected.ForEach([&](NodeIndex node) {
    if (state.unavailable.Contains(node)) {
      ++unavailable_count;
    } else {
      ++counts[verdicts_.by_node[options_.devices.NumberOf(node)]];
    }
  });
  if (unavailable_count > 0) diagnosis.Count(unavailable, unavailable_count);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) diagnosis.Count(verdicts_.distinct[i].why.message, counts[i]);
  }
}

std::optional<allocator::Explanation> DynamicResources::ExplainDevices(Cycle& cycle,
                                                                       NodeIndex node) const {
  if (cycle.states[id] == nullptr || !StateOf(cycle).has_problem) return std::nullopt;
  Result<allocator::Explanation> explanation = options_.devices.allocator().Explain(
      StateOf(cycle).problem, options_.nodes.name(node), MakeBudget());
  if (!explanation.ok()) return std::nullopt;
  return std::move(*explanation);
}

std::vector<std::string> DynamicResources::DescribeWait(Cycle& cycle, NodeIndex node) const {
  std::vector<std::string> waits;
  if (cycle.states[id] == nullptr || !options_.gates.BindingConditions()) return waits;
  const PodDevices& state = StateOf(cycle);
  const auto add = [&](const device::DeviceId& device, std::string_view condition) {
    waits.push_back(StrCat("condition ", condition, " of device ", device.ToString()));
  };
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || item.to_allocate) continue;
    for (const PendingCondition& each : PendingConditions(*claim)) add(each.device, each.condition);
  }
  if (!state.has_problem) return waits;
  const Result<allocator::Outcome> outcome =
      options_.devices.allocator().Allocate(state.problem, options_.nodes.name(node), MakeBudget());
  if (!outcome.ok()) return waits;
  const auto* allocation = std::get_if<allocator::Allocation>(&*outcome);
  if (allocation == nullptr) return waits;
  for (const device::AllocationResult& result : allocation->results) {
    for (const device::DeviceResult& device : result.results) {
      for (const std::string& condition : device.binding_conditions) add(device.id, condition);
    }
  }
  return waits;
}

Status DynamicResources::PostFilter(Cycle& cycle) {
  PodDevices& state = StateOf(cycle);
  const std::string& uid = cycle.pod->uid;
  bool any = false;
  for (const PodDevices::Item& item : state.items) {
    if (!item.unavailable) continue;
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    const bool spoiled = !IsUsable(*claim);
    bool in_use = false;
    for (api::Value consumer : claim->latest->root()["status"]["reservedFor"].elements()) {
      const std::string_view other = consumer["uid"].str();
      // A claim whose devices failed is of no use to others that wait for it either.
      in_use = in_use || (other != uid && (!spoiled || options_.is_bound(other)));
    }
    if (in_use) continue;
    any = true;
    if (spoiled) {
      Avoid(uid, EvaluateBinding(*claim).device);
      if (!cycle.pod->nominated_node.empty()) NoteFailedNode(uid, cycle.pod->nominated_node);
    }
    // A conflict or failure is no harm: the pod is tried again later. But not before the outcome is
    // known: else it could be bound with what a late write takes away.
    options_.claims.SetBeingReleased(item.key, item.uid, true);
    writer_.Run(
        item.key, item.uid,
        spoiled ? PlanRelease(uid, claim->allocation, options_.is_bound) : PlanDeallocate(uid),
        [this, claim_key = item.key, claim_uid = item.uid](std::string) {
          options_.claims.SetBeingReleased(claim_key, claim_uid, false);
          options_.notify({EventKind::kClaimUpdate, nullptr, nullptr, claim_key});
        });
  }
  return any ? Status::Unschedulable("deallocation of ResourceClaim completed") : Status::Success();
}

void DynamicResources::Prefer(Cycle& cycle, NodeSet& nodes) {
  const PodDevices& state = StateOf(cycle);
  if (!state.has_problem) return;
  const bool any_waits = std::any_of(verdicts_.distinct.begin(), verdicts_.distinct.end(),
                                     [](const Verdict& verdict) { return verdict.waits; });
  if (!any_waits) return;
  for (const PodDevices::Item& item : state.items) {
    if (item.to_allocate) continue;
    const CachedClaim* claim = options_.claims.Find(item.key);
    // Its devices are being attached to the node that the pod is nominated for.
    if (claim != nullptr && EvaluateBinding(*claim).kind == BindingState::Kind::kWaiting) return;
  }
  if (PreferReady(nodes)) PreferUntried(cycle.pod->uid, nodes);
}

bool DynamicResources::PreferReady(NodeSet& nodes) const {
  const auto verdict_of = [this](NodeIndex node) -> const Verdict& {
    return verdicts_.distinct[verdicts_.by_node[options_.devices.NumberOf(node)]];
  };
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::int64_t best_ready = kNone;
  std::int64_t best_waiting = kNone;
  nodes.ForEach([&](NodeIndex node) {
    const Verdict& verdict = verdict_of(node);
    std::int64_t& best = verdict.waits ? best_waiting : best_ready;
    best = std::max(best, verdict.score);
  });
  const bool wait = best_waiting > best_ready;
  NodeSet preferred = nodes;
  nodes.ForEach([&](NodeIndex node) {
    const Verdict& verdict = verdict_of(node);
    if (wait ? verdict.score <= best_ready : verdict.waits) preferred.Remove(node);
  });
  nodes = preferred;
  return wait;
}

void DynamicResources::PreferUntried(const std::string& pod_uid, NodeSet& nodes) const {
  const auto found = avoided_.find(pod_uid);
  if (found == avoided_.end() || found->second.nodes.empty()) return;
  NodeSet untried = nodes;
  NodeIndex oldest = kNoNode;
  std::uint64_t oldest_failure = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [name, failures] : found->second.nodes) {
    const NodeIndex node = options_.nodes.Find(name);
    if (node == kNoNode || !nodes.Contains(node)) continue;
    untried.Remove(node);
    if (failures.last >= oldest_failure) continue;
    oldest = node;
    oldest_failure = failures.last;
  }
  if (!untried.IsEmpty()) {
    nodes = untried;
  } else if (oldest != kNoNode) {
    nodes.Clear();
    nodes.Add(oldest);
  }
}

bool DynamicResources::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                             std::span<std::int64_t> scores) {
  const PodDevices& state = StateOf(cycle);
  if (!state.has_problem || !options_.gates.Enabled(Gate::kDRAPrioritizedList)) return false;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = 0;
  for (const Verdict& verdict : verdicts_.distinct) {
    if (verdict.kind != Verdict::Kind::kFits) continue;
    lowest = std::min(lowest, verdict.score);
    highest = std::max(highest, verdict.score);
  }
  if (lowest >= highest) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t at = verdicts_.by_node[options_.devices.NumberOf(nodes[i])];
    scores[i] = verdicts_.distinct[at].score * 100 / highest;
  }
  return true;
}

Status DynamicResources::Reserve(Cycle& cycle) {
  PodDevices& state = StateOf(cycle);
  if (!state.has_problem) return Status::Success();
  Result<allocator::Outcome> outcome = [&] {
    std::optional<Avoiding> avoiding;
    if (state.avoiding) avoiding.emplace(*this, cycle.pod->uid);
    return options_.devices.allocator().Allocate(state.problem, cycle.node_name, MakeBudget());
  }();
  if (!outcome.ok()) return Status::Error(outcome.error().message);
  allocator::Allocation* allocation = std::get_if<allocator::Allocation>(&*outcome);
  if (allocation == nullptr) return Status::Error("claim allocation not found for node");
  std::size_t next = 0;
  for (PodDevices::Item& item : state.items) {
    if (!item.to_allocate) continue;
    item.chosen =
        std::make_shared<const device::AllocationResult>(std::move(allocation->results[next++]));
    if (!options_.claims.SetPending(item.key, item.chosen, cycle.pod->uid)) {
      return Status::Error(StrCat("claim ", item.key, " got allocated elsewhere in the meantime"));
    }
  }
  return Status::Success();
}

void DynamicResources::Unreserve(Cycle& cycle) {
  bool freed = false;
  for (const PodDevices::Item& item : StateOf(cycle).items) {
    if (item.to_allocate) freed |= options_.claims.ClearPending(item.key, cycle.pod->uid);
  }
  // What is written already stays: whether the pod was bound may be unknown, it finds its claims
  // again if it was not, and if it goes away the claim controller frees them.
  if (freed) options_.notify({EventKind::kClaimUpdate, nullptr, nullptr, {}});
}

}  // namespace drakkar::scheduler
