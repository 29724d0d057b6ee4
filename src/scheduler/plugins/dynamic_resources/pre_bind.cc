// The part of the plugin that writes claims and waits for binding conditions.
#include "api/meta/time.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/dynamic_resources/pod_devices.h"

namespace drakkar::scheduler {

void DynamicResources::PreBind(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  state.pre_bind_started = options_.loop.clock().Monotonic();
  StatusCallback measured = [this, cycle, done = std::move(done)](Status status) {
    PodDevices& finished = StateOf(*cycle);
    options_.metrics.ObserveDraPreBind(
        status.ok() ? "success" : "failure", finished.had_conditions,
        options_.loop.clock().Monotonic() - finished.pre_bind_started);
    done(std::move(status));
  };
  WriteClaim(0, std::move(cycle), std::move(measured));
}

void DynamicResources::WriteClaim(std::size_t at, CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  if (at == state.items.size()) {
    for (const PodDevices::Item& item : state.items) {
      if (item.to_allocate) options_.claims.ClearPending(item.key, cycle->pod->uid);
    }
    StartWait(std::move(cycle), std::move(done));
    return;
  }
  const PodDevices::Item& item = state.items[at];
  std::string timestamp;
  if (options_.gates.BindingConditions()) {
    timestamp = api::FormatTime(options_.loop.clock().Now());
  }
  writer_.Run(item.key, item.uid,
              PlanAllocateAndReserve(item.chosen, std::move(timestamp),
                                     {std::string(cycle->pod->name()), cycle->pod->uid}),
              [this, at, cycle, done = std::move(done)](std::string error) mutable {
                if (!error.empty()) {
                  done(Status::Error(std::move(error)));
                  return;
                }
                WriteClaim(at + 1, std::move(cycle), std::move(done));
              });
}

MonotonicTime DynamicResources::DeadlineOf(const CachedClaim& claim) const {
  // The time stamp is wall time, of whoever allocated; from here on only time that passes counts.
  Duration left = options_.binding_timeout;
  if (!claim.allocation->allocation_timestamp.empty()) {
    if (const auto since = api::ParseTime(claim.allocation->allocation_timestamp); since.ok()) {
      left = *since + options_.binding_timeout - options_.loop.clock().Now();
    }
  }
  return options_.loop.clock().Monotonic() + left;
}

bool DynamicResources::IsPastDeadline(const CachedClaim& claim) const {
  return DeadlineOf(claim) <= options_.loop.clock().Monotonic();
}

void DynamicResources::StartWait(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  if (!options_.gates.BindingConditions()) {
    done(Status::Success());
    return;
  }
  std::vector<ConditionWaits::Claim> claims;
  bool ready = true;
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim == nullptr || claim->latest->uid() != item.uid) {
      done(Status::Error(StrCat("claim ", item.key, " got deleted in the meantime")));
      return;
    }
    const BindingState binding = EvaluateBinding(*claim);
    if (binding.kind == BindingState::Kind::kNone) continue;
    ready = ready && binding.kind == BindingState::Kind::kReady;
    claims.push_back({item.key, item.uid,
                      claim->allocation != nullptr ? DeadlineOf(*claim) : MonotonicTime{}});
  }
  state.had_conditions = !claims.empty();
  if (claims.empty()) {
    done(Status::Success());
    return;
  }
  state.wait_started = options_.loop.clock().Monotonic();
  if (!ready) {
    options_.events.Record(
        cycle->pod->pod, client::EventKind::kNormal, "BindingConditionsPending",
        StrCat("waiting for binding conditions for device on node ", cycle->node_name),
        "Scheduling");
    options_.nominate(*cycle->pod, cycle->node_name);
  }
  const std::string uid = cycle->pod->uid;
  waits_.Wait(uid, std::move(claims),
              [this, cycle, done = std::move(done)](ConditionWaits::Outcome outcome) mutable {
                OnWaitEnded(std::move(cycle), std::move(outcome), std::move(done));
              });
}

void DynamicResources::OnWaitEnded(CyclePtr cycle, ConditionWaits::Outcome outcome,
                                   StatusCallback done) {
  using End = ConditionWaits::End;
  PodDevices& state = StateOf(*cycle);
  if (outcome.end == End::kCancelled) {
    done(Status::Error(std::move(outcome.message)));
    return;
  }
  const std::string_view result = outcome.end == End::kReady     ? "success"
                                  : outcome.end == End::kTimeout ? "timeout"
                                                                 : "failure";
  options_.metrics.CountBindingConditions(result);
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
      done(Status::Success());
      return;
    case End::kFailed:
    case End::kTimeout:
      ReleaseFailed(0, std::move(cycle), std::move(outcome.message), std::move(done));
      return;
    case End::kGone:
      // Somebody else's wait for the same claim failed first.
      cycle->retry_at_once = true;
      done(Status::Error(std::move(outcome.message)));
      return;
    case End::kCancelled: return;
  }
}

void DynamicResources::ReleaseFailed(std::size_t at, CyclePtr cycle, std::string message,
                                     StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  const std::string& uid = cycle->pod->uid;
  for (; at < state.items.size(); ++at) {
    const CachedClaim* claim = options_.claims.Find(state.items[at].key);
    if (claim == nullptr || claim->allocation == nullptr || IsUsable(*claim)) continue;
    const BindingState binding = EvaluateBinding(*claim);
    std::set<device::DeviceId>& avoided = avoided_[uid];
    if (avoided.size() < kMaxAvoidedDevices) avoided.insert(binding.device);
    const std::string claim_key = state.items[at].key;
    const std::string claim_uid = state.items[at].uid;
    writer_.Run(claim_key, claim_uid, PlanRelease(uid, options_.is_bound),
                [this, at, cycle, message, done = std::move(done)](std::string error) mutable {
                  // If it cannot be written now, the next attempt finds the claim unusable and
                  // clears it then.
                  (void)error;
                  ReleaseFailed(at + 1, std::move(cycle), std::move(message), std::move(done));
                });
    return;
  }
  // At once if another device fits. Each failure adds to what is avoided, so this ends.
  std::vector<std::shared_ptr<const device::Claim>> specs;
  for (const PodDevices::Item& item : state.items) {
    const CachedClaim* claim = options_.claims.Find(item.key);
    if (claim != nullptr && claim->spec != nullptr && claim->allocation == nullptr) {
      specs.push_back(claim->spec);
    }
  }
  if (!specs.empty() && avoided_[uid].size() < kMaxAvoidedDevices) {
    const Avoiding avoiding(*this, uid);
    const allocator::Problem problem = options_.devices.allocator().Prepare(
        specs, [this](std::string_view name) { return options_.devices.FindClass(name); });
    allocator::Allocator::Verdicts verdicts;
    options_.devices.allocator().Filter(problem, MakeBudget(), verdicts);
    for (const allocator::Allocator::Verdict& verdict : verdicts.distinct) {
      cycle->retry_at_once |= verdict.kind == allocator::Allocator::Verdict::Kind::kFits;
    }
  }
  done(Status::Error(std::move(message)));
}

void DynamicResources::Cancel(Cycle& cycle) {
  waits_.Cancel(cycle.pod->uid);
}

}  // namespace drakkar::scheduler
