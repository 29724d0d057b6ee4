#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "device/node_selector.h"
#include "features/gates/feature_gates.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/cache/extended_resources.h"
#include "scheduler/framework/pod_state.h"
#include "scheduler/plugins/dynamic_resources/barred_devices.h"

namespace drakkar::scheduler {

DynamicResources::DynamicResources(const PluginContext& context, const Args& args)
    : context_(context),
      filter_timeout_(context.gates.Enabled(Gate::kDRASchedulerFilterTimeout) ? args.filter_timeout
                                                                              : Duration::zero()),
      wait_policy_({.clock = context.clock(),
                    .claims = context.claims,
                    .is_enabled = context.gates.BindingConditions(),
                    .timeout = args.binding_timeout}),
      verdicts_(context.nodes, context.devices),
      writer_(context.loop, context.random, context.client, context.claims),
      extended_(context.loop, context.client, context.claims, writer_),
      waits_(context.loop, context.claims) {}

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
      return device::CanSkipOperations(event.after->root()) &&
             !device::CanSkipOperations(event.before->root());
    case EventKind::kClaimDelete:
      return event.before == nullptr || claims::IsAllocated(event.before->root()) ||
             (claims::IsForExtendedResources(event.before->root()) &&
              claims::IsMadeFor(event.before->root(), pod.uid));
    case EventKind::kClaimAdd:
      return true;  // only users of the claim get this event
    case EventKind::kClaimUpdate:
      if (event.before == nullptr || event.after == nullptr) return true;
      if (claims::IsAllocated(event.before->root()) && !claims::IsAllocated(event.after->root())) {
        return true;  // devices were freed
      }
      // For a user of the claim: a retry is pointless while something else is missing.
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
    const CachedClaim* claim = context_.claims.Find(claim_key);
    if (claim == nullptr) {
      return Status::Unresolvable(StrCat("could not find ResourceClaim ", Quote(claim_key)));
    }
    if (claim->latest->is_being_deleted()) {
      return Status::Unresolvable(
          StrCat("resourceclaim ", Quote(wanted.claim_name), " is being deleted"));
    }
    // Empty: claims of groups are not accepted.
    const std::string_view group = context_.gates.Enabled(Gate::kDRAWorkloadResourceClaims)
                                       ? claims::PodGroupOf(pod.pod->root())
                                       : std::string_view();
    if (wanted.from_template && !claims::IsMadeFor(claim->latest->root(), pod.uid) &&
        !claims::IsMadeForGroup(claim->latest->root(), group)) {
      const std::string why = group.empty()
                                  ? "Pod is not owner"
                                  : StrCat("neither Pod nor PodGroup ", group, " is the owner");
      return Status::Unresolvable(StrCat("ResourceClaim ", claim_key, " was not created for Pod ",
                                         pod.key, " (", why, ")"));
    }
  }
  return Status::Success();
}

claims::Consumer DynamicResources::ConsumerOf(const PodInfo& pod, const PodClaim& entry) const {
  const std::string_view name = claims::PodGroupOf(pod.pod->root());
  if (!name.empty() && context_.gates.Enabled(Gate::kDRAWorkloadResourceClaims)) {
    const api::ObjectPtr group = context_.pod_groups.Find(StrCat(pod.ns(), "/", name));
    for (const api::Value each : pod.spec()["resourceClaims"].elements()) {
      if (group == nullptr || each["name"].str() != entry.entry ||
          !claims::IsEntryOfGroup(group->root(), each)) {
        continue;
      }
      return {std::string(group->name()), std::string(group->uid()), true};
    }
  }
  return {std::string(pod.name()), pod.uid};
}

Status DynamicResources::PreEnqueue(const PodInfo& pod) {
  return CheckClaims(pod);
}

Status DynamicResources::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  if (pod.claims.empty() && pod.requests.others.empty()) return Status::Skip();
  if (Status status = CheckClaims(pod); !status.ok()) return status;
  auto state = std::make_unique<PodDevices>();
  for (const PodClaim& wanted : pod.claims) {
    if (wanted.state == PodClaim::State::kNotNeeded) continue;
    std::string claim_key = pod.ClaimKey(wanted);
    const CachedClaim& claim = *context_.claims.Find(claim_key);
    if (!claim.problem.empty()) {
      return Status::Unresolvable(StrCat("claim ", claim_key, ": ", claim.problem));
    }
    // Two entries may name the same claim.
    if (std::any_of(state->items.begin(), state->items.end(),
                    [&](const auto& item) { return item.key == claim_key; })) {
      continue;
    }
    ClaimItem& item = state->items.emplace_back();
    item.key = std::move(claim_key);
    item.uid = std::string(claim.latest->uid());
    item.consumer = ConsumerOf(pod, wanted);
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
        return !context_.devices.HasClass(spec.device_class);
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
    state->specs.push_back(claim.spec);
  }
  for (const auto& [resource, amount] : pod.requests.others) {
    const std::string* device_class = context_.devices.FindClassOf(resource);
    if (device_class != nullptr) state->extended.emplace(resource, *device_class);
  }
  if (!state->extended.empty()) {
    const CachedClaim* leftover = context_.claims.FindExtended(pod.uid);
    if (leftover != nullptr) state->leftover = leftover->key;
  }
  if (state->items.empty() && state->extended.empty()) return Status::Skip();
  state->has_problem = !state->specs.empty() || !state->extended.empty();
  cycle.states[id()] = std::move(state);
  return Status::Success();
}

PodDevices::Variant& DynamicResources::VariantOn(NodeIndex node, const PodInfo& pod,
                                                 PodDevices& state) const {
  std::string needed;
  for (const auto& [resource, device_class] : state.extended) {
    needed += IsGivenAsDevices(context_.nodes, context_.devices, node, resource) ? '1' : '0';
  }
  const auto [found, is_new] = state.variants.try_emplace(needed);
  PodDevices::Variant& variant = found->second;
  if (!is_new) return variant;
  std::vector<std::shared_ptr<const device::Claim>> specs = state.specs;
  std::map<std::string, std::string, std::less<>> classes;
  std::size_t at = 0;
  for (const auto& entry : state.extended) {
    if (needed[at++] == '1') classes.insert(entry);
  }
  device::ExtendedResources extended = device::ResolveExtendedResources(pod.spec(), classes);
  if (!extended.requests.empty()) {
    variant.extended = std::make_shared<const device::ExtendedResources>(std::move(extended));
    auto claim = std::make_shared<device::Claim>();
    claim->ns = pod.ns();
    claim->name = device::kPlannedClaim;
    claim->requests = variant.extended->requests;
    specs.push_back(std::move(claim));
  }
  variant.has_problem = !specs.empty();
  if (variant.has_problem) variant.problem = Prepare(specs);
  return variant;
}

allocator::Problem DynamicResources::Prepare(
    std::span<const std::shared_ptr<const device::Claim>> specs) const {
  return context_.devices.allocator().Prepare(
      specs, [this](std::string_view name) { return context_.devices.FindClass(name); });
}

void DynamicResources::FilterAllocated(const CachedClaim& claim, NodeSet& nodes) const {
  if (!wait_policy_.IsUsable(claim)) {
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
      const NodeIndex node = context_.nodes.Find(name);
      const bool there = nodes.Contains(node);
      nodes.Clear();
      if (there) nodes.Add(node);
    }
  }
  const NodeSet left = nodes;
  left.ForEach([&](NodeIndex node) {
    const device::Node& known = context_.devices.NodeAt(node);
    bool fits = !needs_feature || device::CanSkipOperations(known);
    if (fits && selector) {
      const Result<bool> matches = device::Matches(*selector, known);
      fits = matches.ok() && *matches;
    }
    if (!fits) nodes.Remove(node);
  });
}

allocator::SearchBudget DynamicResources::MakeBudget() const {
  allocator::SearchBudget budget;
  if (filter_timeout_ > Duration::zero()) {
    const Clock* clock = &context_.loop.clock();
    const MonotonicTime end = clock->Monotonic() + filter_timeout_;
    budget.should_stop = [clock, end] { return clock->Monotonic() >= end; };
  }
  return budget;
}

Status DynamicResources::Filter(Cycle& cycle, NodeSet& nodes) {
  PodDevices& state = StateOf(cycle);
  const NodeSet before = nodes;
  if (!state.leftover.empty()) {
    nodes.Clear();
    return Status::Success();
  }
  for (ClaimItem& item : state.items) {
    if (item.to_allocate) continue;
    const CachedClaim& claim = *context_.claims.Find(item.key);
    const NodeSet left = nodes;
    FilterAllocated(claim, nodes);
    NodeSet lost = left;
    lost.RemoveAll(nodes);
    item.unavailable = !lost.IsEmpty();
  }
  state.unavailable = before;
  state.unavailable.RemoveAll(nodes);
  if (!state.has_problem || nodes.IsEmpty()) return Status::Success();
  FilterUnallocated(*cycle.pod, state, nodes);
  return verdicts_.Restrict(nodes);
}

void DynamicResources::FilterUnallocated(const PodInfo& pod, PodDevices& state,
                                         const NodeSet& nodes) {
  const std::string& pod_uid = pod.uid;
  const allocator::SearchBudget budget = MakeBudget();
  std::vector<NodeVerdicts::Part> parts;
  if (!state.extended.empty()) {
    for (auto& [needed, variant] : state.variants) variant.nodes.Clear();
    nodes.ForEach([&](NodeIndex node) {
      NodeSet& same = VariantOn(node, pod, state).nodes;
      same.Resize(context_.nodes.size());
      same.Add(node);
    });
    for (const auto& [needed, variant] : state.variants) {
      if (variant.nodes.IsEmpty()) continue;
      parts.push_back({variant.has_problem ? &variant.problem : nullptr, variant.nodes});
    }
  }
  const auto search = [&] {
    if (parts.empty()) {
      verdicts_.Search(VariantOn(kNoNode, pod, state).problem, budget);
    } else {
      verdicts_.Search(parts, budget);
    }
  };
  {
    std::vector<const device::DeviceId*> failed = retries_.FailedDevices(pod_uid);
    state.avoids_failed = !failed.empty();
    const BarredDevices barred(context_.devices.allocated(), std::move(failed));
    search();
  }
  if (!state.avoids_failed || verdicts_.AnyFits(nodes)) return;
  // A device that failed once is better than none.
  state.avoids_failed = false;
  search();
  // All devices have been tried, so start a new round in which each is retried. If the first
  // one were always taken, a device that never works would block the others forever.
  if (verdicts_.AnyFits(nodes)) retries_.BeginRound(pod_uid);
}

void DynamicResources::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const PodDevices& state = StateOf(cycle);
  if (!state.leftover.empty()) {
    diagnosis.Count("cannot schedule extended resource claim", rejected.Count());
    return;
  }
  std::string unavailable = "resourceclaim not available on the node";
  for (const ClaimItem& item : state.items) {
    if (!item.unavailable) continue;
    const CachedClaim& claim = *context_.claims.Find(item.key);
    if (wait_policy_.IsUsable(claim)) continue;
    // KEP-5007 requires the condition that makes a claim unusable to be reported.
    const BindingState binding = EvaluateBinding(claim);
    unavailable += StrCat(": ", binding.kind == BindingState::Kind::kFailed
                                    ? DescribeBindingFailure(claim, binding)
                                    : DescribeBindingTimeout(claim, binding));
    break;
  }
  NodeSet without_claims = rejected;
  without_claims.IntersectWith(state.unavailable);
  NodeSet without_devices = rejected;
  without_devices.RemoveAll(state.unavailable);
  if (!without_claims.IsEmpty()) diagnosis.Count(unavailable, without_claims.Count());
  if (!without_devices.IsEmpty()) verdicts_.Explain(without_devices, diagnosis);
}

std::optional<allocator::Explanation> DynamicResources::ExplainDevices(Cycle& cycle,
                                                                       NodeIndex node) const {
  if (!HasProblem(cycle)) return std::nullopt;
  const PodDevices::Variant& variant = VariantOn(node, *cycle.pod, StateOf(cycle));
  if (!variant.has_problem) return std::nullopt;
  Result<allocator::Explanation> explanation = context_.devices.allocator().Explain(
      variant.problem, context_.nodes.name(node), MakeBudget());
  if (!explanation.ok()) return std::nullopt;
  return std::move(*explanation);
}

std::vector<std::string> DynamicResources::DescribeWait(Cycle& cycle, NodeIndex node) const {
  std::vector<std::string> waits;
  if (cycle.states[id()] == nullptr || !context_.gates.BindingConditions()) return waits;
  PodDevices& state = StateOf(cycle);
  const auto add = [&](const device::DeviceId& device, std::string_view condition) {
    waits.push_back(StrCat("condition ", condition, " of device ", device.ToString()));
  };
  for (const ClaimItem& item : state.items) {
    if (item.to_allocate) continue;
    const CachedClaim& claim = *context_.claims.Find(item.key);
    for (const PendingCondition& each : PendingConditions(claim)) add(each.device, each.condition);
  }
  const PodDevices::Variant& variant = VariantOn(node, *cycle.pod, state);
  if (!variant.has_problem) return waits;
  const Result<allocator::Outcome> outcome = context_.devices.allocator().Allocate(
      variant.problem, context_.nodes.name(node), MakeBudget());
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
  if (const CachedClaim* leftover = context_.claims.Find(state.leftover); leftover != nullptr) {
    extended_.Delete(*cycle.pod, leftover->key, std::string(leftover->latest->uid()));
    return Status::Unschedulable("deletion of ResourceClaim completed");
  }
  bool any = false;
  for (const ClaimItem& item : state.items) {
    if (!item.unavailable) continue;
    const CachedClaim& claim = *context_.claims.Find(item.key);
    const bool is_usable = wait_policy_.IsUsable(claim);
    bool in_use = false;
    for (api::Value consumer : claim.latest->root()["status"]["reservedFor"].elements()) {
      const std::string_view other = consumer["uid"].str();
      // Other waiters cannot use a claim whose devices failed either.
      if (other == uid) continue;
      // The pod's own group does not use a claim as long as none of its pods runs.
      const bool is_own_group = item.consumer.is_group && other == item.consumer.uid;
      in_use = in_use || (is_usable && !is_own_group) || context_.is_bound(other);
    }
    if (in_use) continue;
    any = true;
    if (!is_usable) {
      retries_.NoteDevice(uid, EvaluateBinding(claim).device);
      if (!cycle.pod->nominated_node.empty()) retries_.NoteNode(uid, cycle.pod->nominated_node);
    }
    // A conflict or failure is harmless, because the pod is retried later. But it must not be
    // retried before the outcome is known: otherwise it could be bound with an allocation that a
    // late write removes.
    context_.claims.SetBeingReleased(item.key, item.uid, true);
    writer_.Run(item.key, item.uid,
                is_usable ? PlanDeallocate(item.consumer.uid)
                          : PlanRelease(uid, claim.allocation, context_.is_bound),
                [this, claim_key = item.key, claim_uid = item.uid](std::string) {
                  context_.claims.SetBeingReleased(claim_key, claim_uid, false);
                  context_.notify({EventKind::kClaimUpdate, nullptr, nullptr, claim_key});
                });
  }
  return any ? Status::Unschedulable("deallocation of ResourceClaim completed") : Status::Success();
}

void DynamicResources::Prefer(Cycle& cycle, NodeSet& nodes) {
  if (!HasProblem(cycle) || !verdicts_.AnyWaits()) return;
  const PodDevices& state = StateOf(cycle);
  for (const ClaimItem& item : state.items) {
    if (item.to_allocate) continue;
    const CachedClaim& claim = *context_.claims.Find(item.key);
    // Its devices are being attached to the node that the pod is nominated for.
    if (EvaluateBinding(claim).kind == BindingState::Kind::kWaiting) return;
  }
  if (verdicts_.PreferReady(nodes)) {
    retries_.PreferUntried(cycle.pod->uid, context_.nodes, nodes);
  }
}

bool DynamicResources::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                             std::span<std::int64_t> scores) {
  if (!HasProblem(cycle) || !context_.gates.Enabled(Gate::kDRAPrioritizedList)) return false;
  return verdicts_.Score(nodes, scores);
}

Status DynamicResources::Reserve(Cycle& cycle) {
  PodDevices& state = StateOf(cycle);
  if (!state.has_problem) return Status::Success();
  const PodDevices::Variant& variant = VariantOn(cycle.node, *cycle.pod, state);
  if (!variant.has_problem) return Status::Success();
  Result<allocator::Outcome> outcome = [&] {
    std::vector<const device::DeviceId*> failed;
    if (state.avoids_failed) failed = retries_.FailedDevices(cycle.pod->uid);
    const BarredDevices barred(context_.devices.allocated(), std::move(failed));
    return context_.devices.allocator().Allocate(variant.problem, cycle.node_name, MakeBudget());
  }();
  if (!outcome.ok()) return Status::Error(outcome.error().message);
  allocator::Allocation* allocation = std::get_if<allocator::Allocation>(&*outcome);
  if (allocation == nullptr) return Status::Error("claim allocation not found for node");
  if (variant.extended != nullptr) {
    state.chosen_extended = variant.extended;
    state.items.push_back({.key = {},
                           .uid = {},
                           .to_allocate = true,
                           .consumer = {std::string(cycle.pod->name()), cycle.pod->uid},
                           .is_extended = true});
  }
  std::size_t next = 0;
  for (ClaimItem& item : state.items) {
    if (!item.to_allocate) continue;
    item.chosen =
        std::make_shared<const device::AllocationResult>(std::move(allocation->results[next++]));
    if (item.is_extended) {
      context_.claims.Hold(cycle.pod->uid, item.chosen);
      continue;
    }
    if (!context_.claims.SetPending(item.key, item.chosen, cycle.pod->uid)) {
      return Status::Error(StrCat("claim ", item.key, " got allocated elsewhere in the meantime"));
    }
  }
  return Status::Success();
}

void DynamicResources::Unreserve(Cycle& cycle) {
  bool freed = false;
  for (const ClaimItem& item : StateOf(cycle).items) {
    if (item.to_allocate) freed |= context_.claims.ClearPending(item.key, cycle.pod->uid);
    if (!item.is_extended) continue;
    freed |= context_.claims.ReleaseHold(cycle.pod->uid);
    if (!item.key.empty()) extended_.Delete(*cycle.pod, item.key, item.uid);
  }
  // Written allocations of the pod's own claims stay. It may be unknown whether the pod was bound.
  // If it was not, it finds its claims again; if it is deleted, the claim controller frees them.
  if (freed) context_.notify({EventKind::kClaimUpdate, nullptr, nullptr, {}});
}

void DynamicResources::Describe(const std::string& pod_uid, PodState& state) const {
  state.failed_devices = retries_.FailedDevices(pod_uid).size();
  for (const auto& [claim, deadline] : waits_.DeadlinesOf(pod_uid)) {
    state.deadlines[claim] = deadline - context_.clock().Monotonic();
  }
}

}  // namespace drakkar::scheduler
