// The part of the plugin that writes claims and waits for binding conditions.
#include <algorithm>
#include <utility>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "features/gates/feature_gates.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/dynamic_resources/pod_devices.h"

namespace drakkar::scheduler {

struct DynamicResources::Failure {
  CyclePtr cycle;
  ConditionWaits::Outcome outcome;
  StatusCallback done;
  bool worth_a_retry = false;  // a device failed that had not before, or it was not the device
};

bool DynamicResources::NeedsConditions(const PodDevices& state) const {
  if (!options_.gates.BindingConditions()) return false;
  for (const PodDevices::Item& item : state.items) {
    AllocationPtr allocation = item.chosen;
    if (allocation == nullptr) {
      const CachedClaim* claim = options_.claims.Find(item.key);
      if (claim != nullptr) allocation = claim->allocation;
    }
    if (allocation == nullptr) continue;
    for (const device::DeviceResult& result : allocation->results) {
      if (!result.binding_conditions.empty() || !result.binding_failure_conditions.empty()) {
        return true;
      }
    }
  }
  return false;
}

void DynamicResources::PreBind(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  state.pre_bind_started = options_.loop.clock().Monotonic();
  state.needs_conditions = NeedsConditions(state);
  StatusCallback measured = [this, cycle, done = std::move(done)](Status status) {
    const PodDevices& finished = StateOf(*cycle);
    // That somebody deleted pod or claim says nothing about devices.
    const bool is_void = !status.ok() && (finished.cancelled || finished.claim_gone);
    const std::string_view result = status.ok()          ? "success"
                                    : is_void            ? "cancelled"
                                    : finished.timed_out ? "timeout"
                                                         : "failure";
    if (finished.needs_conditions && !is_void) options_.metrics.CountBindingConditions(result);
    options_.metrics.ObserveDraPreBind(
        result, finished.needs_conditions,
        options_.loop.clock().Monotonic() - finished.pre_bind_started);
    done(std::move(status));
  };
  WriteClaim(0, std::move(cycle), std::move(measured));
}

void DynamicResources::WriteClaim(std::size_t at, CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  if (state.cancelled) {
    done(Status::Error("the pod is gone"));
    return;
  }
  if (at == state.items.size()) {
    for (const PodDevices::Item& item : state.items) {
      if (item.to_allocate) options_.claims.ClearPending(item.key, cycle->pod->uid);
    }
    StartWait(std::move(cycle), std::move(done));
    return;
  }
  const PodDevices::Item& item = state.items[at];
  std::string timestamp;
  // Its whole seconds are for others; our own deadline counts from here.
  const MonotonicTime allocated_at = options_.loop.clock().Monotonic();
  if (options_.gates.BindingConditions()) {
    timestamp = api::FormatTime(options_.loop.clock().Now());
  }
  writer_.Run(item.key, item.uid,
              PlanAllocateAndReserve(item.chosen, std::move(timestamp),
                                     {std::string(cycle->pod->name()), cycle->pod->uid}),
              [this, at, allocated_at, cycle, done = std::move(done)](std::string error) mutable {
                PodDevices& written = StateOf(*cycle);
                if (!error.empty()) {
                  written.claim_gone = IsGone(written);
                  done(Status::Error(std::move(error)));
                  return;
                }
                const PodDevices::Item& now = written.items[at];
                if (now.chosen != nullptr) {
                  if (std::string lost = FindLost(written, at); !lost.empty()) {
                    TakeBack(at, std::move(lost), std::move(cycle), std::move(done));
                    return;
                  }
                  options_.claims.NoteWait(now.key, allocated_at);
                }
                WriteClaim(at + 1, std::move(cycle), std::move(done));
              });
}

std::string DynamicResources::FindLost(const PodDevices& state, std::size_t at) const {
  const PodDevices::Item& item = state.items[at];
  const CachedClaim* claim = options_.claims.Find(item.key);
  // Gone or taken away since: whoever waits for it finds out.
  if (claim == nullptr || claim->latest->uid() != item.uid || claim->allocation == nullptr ||
      claim->allocation->results.size() != item.chosen->results.size()) {
    return {};
  }
  for (std::size_t i = 0; i < item.chosen->results.size(); ++i) {
    const device::DeviceResult& sent = item.chosen->results[i];
    const device::DeviceResult& stored = claim->allocation->results[i];
    if (stored.id != sent.id) return {};
    std::string_view field;
    std::string_view gate;
    if (stored.binding_conditions != sent.binding_conditions) {
      field = "bindingConditions";
      gate = "DRADeviceBindingConditions";
    } else if (stored.binding_failure_conditions != sent.binding_failure_conditions) {
      field = "bindingFailureConditions";
      gate = "DRADeviceBindingConditions";
    } else if (stored.skip_node_operations.SkipsAny() != sent.skip_node_operations.SkipsAny()) {
      field = "skipNodeOperations";
      gate = "DRAOptionalNodePreparation";
    } else if (stored.share_id != sent.share_id) {
      field = "shareID";
      gate = "DRAConsumableCapacity";
    } else if (stored.consumed_capacity.size() != sent.consumed_capacity.size()) {
      field = "consumedCapacity";
      gate = "DRAConsumableCapacity";
    } else if (stored.admin_access != sent.admin_access) {
      field = "adminAccess";
      gate = "DRAAdminAccess";
    } else {
      continue;
    }
    return StrCat("the API server did not store ", field, " of device ", sent.id.ToString(),
                  " in claim ", item.key, ": the feature gate ", gate,
                  " must be the same there and in the scheduler");
  }
  return {};
}

void DynamicResources::TakeBack(std::size_t at, std::string why, CyclePtr cycle,
                                StatusCallback done) {
  const PodDevices::Item& item = StateOf(*cycle).items[at];
  options_.claims.ClearPending(item.key, cycle->pod->uid);
  writer_.Run(item.key, item.uid, PlanDeallocate(cycle->pod->uid),
              [why = std::move(why), done = std::move(done)](std::string) {
                // If it cannot be written now, the next attempt finds the claim as it is.
                done(Status::Error(why));
              });
}

bool DynamicResources::IsGone(const PodDevices& state) const {
  return std::any_of(state.items.begin(), state.items.end(), [&](const PodDevices::Item& item) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    return claim == nullptr || claim->latest->uid() != item.uid ||
           claim->latest->is_being_deleted();
  });
}

MonotonicTime DynamicResources::WaitBegan(const CachedClaim& claim) const {
  if (claim.wait_began) return *claim.wait_began;
  // The time stamp is wall time, of whoever allocated; from here on only time that passes counts,
  // and a stamp from the future is no excuse to wait longer.
  // It has whole seconds and stands for any moment of its second: the last one counts, so that no
  // wait is cut short.
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const auto since = api::ParseTime(claim.allocation->allocation_timestamp);
  if (!since.ok()) return now;
  return now - std::max(options_.loop.clock().Now() - (*since + std::chrono::seconds(1)),
                        Duration::zero());
}

bool DynamicResources::IsPastDeadline(const CachedClaim& claim) const {
  return DeadlineOf(claim) <= options_.loop.clock().Monotonic();
}

void DynamicResources::StartWait(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  if (!options_.gates.BindingConditions()) {
    Conclude(std::move(cycle), std::move(done));
    return;
  }
  std::vector<ConditionWaits::Claim> claims;
  bool ready = true;
  bool any_conditions = false;
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->latest->uid() != item.uid) {
      state.claim_gone = true;
      done(Status::Error(StrCat("claim ", item.key, " got deleted in the meantime")));
      return;
    }
    const BindingState binding = EvaluateBinding(*claim);
    if (claim->allocation != nullptr && binding.kind == BindingState::Kind::kNone) {
      // Nothing to wait for, but if it is deleted there is no point in waiting for the others.
      claims.push_back({item.key, item.uid, ConditionWaits::kNoDeadline});
      continue;
    }
    any_conditions = true;
    ready = ready && binding.kind == BindingState::Kind::kReady;
    MonotonicTime deadline{};
    if (claim->allocation != nullptr) {
      options_.claims.NoteWait(item.key, WaitBegan(*claim));
      deadline = DeadlineOf(*claim);
    }
    claims.push_back({item.key, item.uid, deadline});
  }
  if (!any_conditions) {
    Conclude(std::move(cycle), std::move(done));
    return;
  }
  state.wait_started = options_.loop.clock().Monotonic();
  if (!ready) {
    TellWait(*cycle, state);
    options_.nominate(*cycle->pod, cycle->node_name);
  }
  const std::string uid = cycle->pod->uid;
  waits_.Wait(uid, std::move(claims),
              [this, cycle, done = std::move(done)](ConditionWaits::Outcome outcome) mutable {
                OnWaitEnded(std::move(cycle), std::move(outcome), std::move(done));
              });
  if (!state.node_lost.empty()) waits_.EndForNode(uid, state.node_lost);
  options_.on_wait_began();
}

void DynamicResources::TellWait(const Cycle& cycle, const PodDevices& state) const {
  // More than fit an event are counted.
  constexpr std::size_t kMaxNamed = 4;
  std::vector<std::string> named;
  std::size_t more = 0;
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr) continue;
    for (const PendingCondition& pending : PendingConditions(*claim)) {
      if (named.size() == kMaxNamed) {
        ++more;
        continue;
      }
      named.push_back(StrCat("claim=", claim->latest->name(), ", device=",
                             pending.device.ToString(), ", condition=", pending.condition));
    }
  }
  std::string message =
      StrCat("waiting for binding conditions for device on node ", cycle.node_name);
  if (!named.empty()) message += StrCat(": ", Join(named, "; "));
  if (more > 0) message += StrCat("; and ", more, " more");
  options_.events.Record(cycle.pod->pod, client::EventKind::kNormal, "BindingConditionsPending",
                         std::move(message), "Scheduling");
}

void DynamicResources::Conclude(CyclePtr cycle, StatusCallback done) {
  for (const PodDevices::Item& item : StateOf(*cycle).items) {
    if (options_.devices.allocated().contested() == 0) break;
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr) continue;
    const std::string contender = options_.claims.FindContender(*claim);
    if (contender.empty()) continue;
    std::string why = StrCat("a device of claim ", item.key, " is already allocated to claim ",
                             contender, ", by another scheduler");
    writer_.Run(item.key, item.uid, PlanDeallocate(cycle->pod->uid),
                [this, cycle, claim_key = item.key, why = std::move(why),
                 done = std::move(done)](std::string) {
                  // Others may have the claim reserved: then nothing has changed.
                  const CachedClaim* released = options_.claims.Find(claim_key);
                  if (released != nullptr && released->allocation == nullptr) {
                    cycle->retry.when = Retry::When::kAtOnce;
                  }
                  done(Status::Error(why));
                });
    return;
  }
  done(Status::Success());
}

void DynamicResources::OnWaitEnded(CyclePtr cycle, ConditionWaits::Outcome outcome,
                                   StatusCallback done) {
  using End = ConditionWaits::End;
  PodDevices& state = StateOf(*cycle);
  state.timed_out = outcome.end == End::kTimeout;
  state.claim_gone = (outcome.end == End::kGone || outcome.end == End::kDeleted) && IsGone(state);
  const std::string_view result = outcome.end == End::kReady     ? "success"
                                  : outcome.end == End::kFailed  ? "failure"
                                  : outcome.end == End::kTimeout ? "timeout"
                                                                 : "error";
  const Duration waited = options_.loop.clock().Monotonic() - state.wait_started;
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    for (const device::DeviceResult& device : claim->allocation->results) {
      options_.metrics.ObserveConditionWait(device.id.driver, result, waited);
    }
  }
  switch (outcome.end) {
    case End::kReady:
      avoided_.erase(cycle->pod->uid);
      Conclude(std::move(cycle), std::move(done));
      return;
    case End::kFailed:
    case End::kTimeout:
      if (!state.cancelled) NoteFailedNode(cycle->pod->uid, cycle->node_name);
      [[fallthrough]];
    case End::kNodeLost:
    case End::kDeleted:
      ReleaseSpoiled(std::make_shared<Failure>(
                         Failure{std::move(cycle), std::move(outcome), std::move(done), false}),
                     0);
      return;
    case End::kGone:
    case End::kCancelled:
      done(Status::Error(std::move(outcome.message)));
      return;
  }
}

bool DynamicResources::Avoid(const std::string& pod_uid, const device::DeviceId& device) {
  Avoided& avoided = avoided_[pod_uid];
  const bool is_full = avoided.failures.size() >= kMaxAvoidedDevices;
  const auto [at, is_new] = avoided.failures.try_emplace(device);
  at->second = avoided.next++;
  if (is_new && is_full) {
    avoided.failures.erase(
        std::min_element(avoided.failures.begin(), avoided.failures.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  // What is not remembered for good must not lead to a retry at once again and again.
  return is_new && !is_full;
}

void DynamicResources::NoteFailedNode(const std::string& pod_uid, const std::string& node_name) {
  Avoided& avoided = avoided_[pod_uid];
  Avoided::NodeFailures& failures = avoided.nodes[node_name];
  failures.last = avoided.next++;
  ++failures.count;
  if (avoided.nodes.size() <= kMaxFailedNodes) return;
  avoided.nodes.erase(
      std::min_element(avoided.nodes.begin(), avoided.nodes.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

bool DynamicResources::ShouldLeaveNode(const std::string& pod_uid, const std::string& node_name,
                                       const NodeSet& elsewhere) const {
  const auto found = avoided_.find(pod_uid);
  if (found == avoided_.end()) return false;
  const auto here = found->second.nodes.find(node_name);
  if (here == found->second.nodes.end() || here->second.count < kFailuresToLeaveNode) return false;
  NodeSet untried = elsewhere;
  for (const auto& [name, failures] : found->second.nodes) {
    const NodeIndex node = options_.nodes.Find(name);
    if (node != kNoNode && untried.Contains(node)) untried.Remove(node);
  }
  return AnyFits(untried);
}

void DynamicResources::ReleaseSpoiled(std::shared_ptr<Failure> failure, std::size_t at) {
  const std::string& uid = failure->cycle->pod->uid;
  for (; at < failure->outcome.spoiled.size(); ++at) {
    const std::string& claim_key = failure->outcome.spoiled[at];
    const CachedClaim* claim = options_.claims.Find(claim_key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    const BindingState binding = EvaluateBinding(*claim);
    const bool is_deleted = claim->latest->is_being_deleted();
    if (!is_deleted &&
        (binding.kind == BindingState::Kind::kNone || binding.kind == BindingState::Kind::kReady)) {
      continue;  // allocated anew, or late but in time for the next attempt
    }
    if (failure->outcome.end == ConditionWaits::End::kNodeLost) {
      failure->worth_a_retry = true;
    } else if (is_deleted) {
      // Nothing is wrong with its devices.
    } else if (!StateOf(*failure->cycle).cancelled && Avoid(uid, binding.device)) {
      failure->worth_a_retry = true;  // of a pod that is gone nothing is remembered any more
    }
    // If it cannot be written now, the next attempt finds the claim unusable and clears it then.
    writer_.Run(claim_key, std::string(claim->latest->uid()),
                PlanRelease(uid, claim->allocation, options_.is_bound),
                [this, failure, at](std::string) { ReleaseSpoiled(failure, at + 1); });
    return;
  }
  DecideRetry(std::move(failure));
}

// At once if a device fits that waits for nothing, or if the node was at fault; soon if another one
// fits that has to be waited for; else after a growing pause. A new slice ends the pause: whoever
// attaches devices may publish one for this very pod, just after it said that another failed. A
// device that failed before, or two retries at once in a row, make no hot loop.
void DynamicResources::DecideRetry(std::shared_ptr<Failure> failure) {
  const std::string& uid = failure->cycle->pod->uid;
  const std::string& node_name = failure->cycle->node_name;
  const bool node_lost = failure->outcome.end == ConditionWaits::End::kNodeLost;
  Retry& retry = failure->cycle->retry;
  const auto finish = [&] { failure->done(Status::Error(std::move(failure->outcome.message))); };
  if (failure->outcome.end == ConditionWaits::End::kDeleted) return finish();
  retry.ended_by = MaskOf(EventKind::kSliceChange);
  std::vector<std::shared_ptr<const device::Claim>> specs;
  NodeSet nodes = options_.nodes.known();
  if (const NodeIndex lost = options_.nodes.Find(node_name); node_lost && lost != kNoNode) {
    nodes.Remove(lost);
  }
  NodeSet without_others = nodes;
  for (const PodDevices::Item& item : StateOf(*failure->cycle).items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->spec == nullptr) continue;
    if (claim->allocation == nullptr) {
      specs.push_back(claim->spec);
      continue;
    }
    FilterAllocated(*claim, IsUsable(*claim), nodes);
    if (!claims::IsReservedForNoneBut(claim->latest->root(), uid)) {
      FilterAllocated(*claim, IsUsable(*claim), without_others);
    }
  }
  if (specs.empty()) return finish();
  const allocator::Problem problem = options_.devices.allocator().Prepare(
      specs, [this](std::string_view name) { return options_.devices.FindClass(name); });
  {
    const Avoiding avoiding(*this, uid);
    options_.devices.allocator().Filter(problem, MakeBudget(), verdicts_);
  }
  const bool was_at_once = [&] {
    const auto found = avoided_.find(uid);
    return found != avoided_.end() && std::exchange(found->second.was_at_once, false);
  }();
  const bool fits_at_once = AnyFits(nodes, /*at_once=*/true) && !was_at_once;
  if (AnyFits(nodes) && (fits_at_once || !ShouldLeaveNode(uid, node_name, without_others))) {
    if (node_lost || fits_at_once) {
      retry.when = Retry::When::kAtOnce;
      if (const auto found = avoided_.find(uid); found != avoided_.end()) {
        found->second.was_at_once = true;
      }
    } else if (failure->worth_a_retry) {
      retry.when = Retry::When::kSoon;
    }
    return finish();
  }
  bool fits_without_others = AnyFits(without_others);
  if (!fits_without_others) {
    // Every device had its turn. A node that had none may get on with them better.
    options_.devices.allocator().Filter(problem, MakeBudget(), verdicts_);
    fits_without_others = ShouldLeaveNode(uid, node_name, without_others);
  }
  if (!fits_without_others) return finish();
  // Devices fit, but not where the pod's other claims are: they are of no use to it.
  retry.when = node_lost                ? Retry::When::kAtOnce
               : failure->worth_a_retry ? Retry::When::kSoon
                                        : Retry::When::kLater;
  ReleaseOthers(std::move(failure), 0);
}

void DynamicResources::ReleaseOthers(std::shared_ptr<Failure> failure, std::size_t at) {
  const std::vector<PodDevices::Item>& items = StateOf(*failure->cycle).items;
  for (; at < items.size(); ++at) {
    const CachedClaim* claim = options_.claims.Find(items[at].key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    writer_.Run(items[at].key, items[at].uid, PlanDeallocate(failure->cycle->pod->uid),
                [this, failure, at](std::string) { ReleaseOthers(failure, at + 1); });
    return;
  }
  failure->done(Status::Error(std::move(failure->outcome.message)));
}

void DynamicResources::Cancel(Cycle& cycle) {
  StateOf(cycle).cancelled = true;
  waits_.Cancel(cycle.pod->uid);
}

void DynamicResources::OnNodeLost(Cycle& cycle, const std::string& why) {
  StateOf(cycle).node_lost = why;
  waits_.EndForNode(cycle.pod->uid, why);
}

}  // namespace drakkar::scheduler
