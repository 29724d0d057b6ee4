// The part of the plugin that writes claims and waits for binding conditions.
#include <algorithm>
#include <utility>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "client/event_recorder.h"
#include "features/gates/feature_gates.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/dynamic_resources/barred_devices.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

namespace drakkar::scheduler {
namespace {

// Describes which parts of the item's allocation the server did not store, for the event; empty if
// it stored everything. A server with other feature gates drops fields silently, and that must not
// cause a pod to be bound without waiting.
std::string FindDropped(const ClaimItem& item, const CachedClaim* claim) {
  // The claim was deleted or deallocated since; the wait will notice.
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

std::string_view ResultOf(ConditionWaits::End end) {
  switch (end) {
    case ConditionWaits::End::kReady:
      return "success";
    case ConditionWaits::End::kFailed:
      return "failure";
    case ConditionWaits::End::kTimeout:
      return "timeout";
    case ConditionWaits::End::kGone:
    case ConditionWaits::End::kDeleted:
    case ConditionWaits::End::kNodeLost:
    case ConditionWaits::End::kCancelled:
      break;
  }
  return "error";
}

}  // namespace

struct DynamicResources::Failure {
  CyclePtr cycle;
  ConditionWaits::Outcome outcome;
  StatusCallback done;
  bool is_news = false;  // a device failed for the first time, or no device failed
};

void DynamicResources::PreBind(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  state.pre_bind_started = context_.clock().Monotonic();
  state.has_conditions = wait_policy_.HasConditions(state.items);
  StatusCallback measured = [this, cycle, done = std::move(done)](Status status) {
    const PodDevices& finished = StateOf(*cycle);
    // A deleted pod or claim says nothing about devices.
    const bool is_void = !status.ok() && (finished.cancelled || finished.claim_gone);
    const std::string_view result = status.ok()          ? "success"
                                    : is_void            ? "cancelled"
                                    : finished.timed_out ? "timeout"
                                                         : "failure";
    if (finished.has_conditions && !is_void) context_.metrics.CountBindingConditions(result);
    context_.metrics.ObserveDraPreBind(result, finished.has_conditions,
                                       context_.clock().Monotonic() - finished.pre_bind_started);
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
    for (const ClaimItem& item : state.items) {
      if (item.to_allocate) context_.claims.ClearPending(item.key, cycle->pod->uid);
    }
    StartWait(std::move(cycle), std::move(done));
    return;
  }
  const ClaimItem& item = state.items[at];
  if (item.is_extended && item.key.empty()) {
    CreateExtended(at, std::move(cycle), std::move(done));
    return;
  }
  std::string timestamp;
  // Others use the timestamp, which has whole seconds. Our own deadline counts from this time.
  const MonotonicTime allocated_at = context_.clock().Monotonic();
  if (context_.gates.BindingConditions()) timestamp = api::FormatTime(context_.clock().Now());
  writer_.Run(item.key, item.uid,
              PlanAllocateAndReserve(item.chosen, std::move(timestamp), item.consumer),
              [this, at, allocated_at, cycle, done = std::move(done)](std::string error) mutable {
                PodDevices& written = StateOf(*cycle);
                if (!error.empty()) {
                  written.claim_gone = wait_policy_.IsGone(written.items);
                  done(Status::Error(std::move(error)));
                  return;
                }
                const ClaimItem& now = written.items[at];
                if (now.chosen != nullptr) {
                  std::string dropped = FindDropped(now, context_.claims.Find(now.key));
                  if (!dropped.empty()) {
                    TakeBack(at, std::move(dropped), std::move(cycle), std::move(done));
                    return;
                  }
                  context_.claims.NoteWait(now.key, allocated_at);
                }
                if (now.is_extended) {
                  RecordExtended(at, std::move(cycle), std::move(done));
                } else {
                  WriteClaim(at + 1, std::move(cycle), std::move(done));
                }
              });
}

void DynamicResources::CreateExtended(std::size_t at, CyclePtr cycle, StatusCallback done) {
  const PodInfo& pod = *cycle->pod;
  extended_.Create(
      pod, *StateOf(*cycle).chosen_extended,
      [this, at, cycle, done = std::move(done)](Result<ExtendedClaims::Created> created) mutable {
        if (!created.ok()) {
          done(Status::Error(created.error().message));
          return;
        }
        ClaimItem& item = StateOf(*cycle).items[at];
        item.key = std::move(created->key);
        item.uid = std::move(created->uid);
        if (!context_.claims.HandOver(cycle->pod->uid, item.key)) {
          done(Status::Error(
              StrCat("claim ", item.key, " got allocated elsewhere in the meantime")));
          return;
        }
        WriteClaim(at, std::move(cycle), std::move(done));
      });
}

void DynamicResources::RecordExtended(std::size_t at, CyclePtr cycle, StatusCallback done) {
  const PodDevices& state = StateOf(*cycle);
  const std::string& claim_key = state.items[at].key;
  extended_.Record(*cycle->pod, std::string_view(claim_key).substr(claim_key.find('/') + 1),
                   *state.chosen_extended,
                   [this, at, cycle, done = std::move(done)](std::string error) mutable {
                     if (error.empty()) {
                       WriteClaim(at + 1, std::move(cycle), std::move(done));
                     } else {
                       done(Status::Error(std::move(error)));
                     }
                   });
}

void DynamicResources::TakeBack(std::size_t at, std::string why, CyclePtr cycle,
                                StatusCallback done) {
  const ClaimItem& item = StateOf(*cycle).items[at];
  context_.claims.ClearPending(item.key, cycle->pod->uid);
  writer_.Run(item.key, item.uid, PlanDeallocate(item.consumer.uid),
              [why = std::move(why), done = std::move(done)](std::string) {
                // If the write fails, the next attempt finds the claim unchanged.
                done(Status::Error(why));
              });
}

void DynamicResources::StartWait(CyclePtr cycle, StatusCallback done) {
  PodDevices& state = StateOf(*cycle);
  const WaitPolicy::Plan plan = wait_policy_.MakePlan(state.items);
  if (!plan.missing_claim.empty()) {
    state.claim_gone = true;
    done(Status::Error(StrCat("claim ", plan.missing_claim, " got deleted in the meantime")));
    return;
  }
  std::vector<ConditionWaits::Claim> claims;
  for (const WaitPolicy::Plan::Claim& claim : plan.claims) {
    if (claim.began) context_.claims.NoteWait(claim.key, *claim.began);
    claims.push_back(claim);
  }
  if (!plan.has_conditions) {
    Conclude(std::move(cycle), std::move(done));
    return;
  }
  state.wait_started = context_.clock().Monotonic();
  if (!plan.is_ready) {
    context_.events.Record(cycle->pod->pod, client::EventKind::kNormal, "BindingConditionsPending",
                           wait_policy_.Describe(state.items, cycle->node_name), "Scheduling");
    context_.nominate(*cycle->pod, cycle->node_name);
  }
  const std::string uid = cycle->pod->uid;
  waits_.Wait(uid, std::move(claims),
              [this, cycle, done = std::move(done)](ConditionWaits::Outcome outcome) mutable {
                OnWaitEnded(std::move(cycle), std::move(outcome), std::move(done));
              });
  if (!state.node_lost.empty()) waits_.EndForNode(uid, state.node_lost);
  context_.on_wait_began();
}

void DynamicResources::Conclude(CyclePtr cycle, StatusCallback done) {
  for (const ClaimItem& item : StateOf(*cycle).items) {
    if (context_.devices.allocated().contested() == 0) break;
    const CachedClaim* claim = context_.claims.Find(item.key);
    if (claim == nullptr) continue;
    const std::string contender = context_.claims.FindContender(*claim);
    if (contender.empty()) continue;
    std::string why = StrCat("a device of claim ", item.key, " is already allocated to claim ",
                             contender, ", by another scheduler");
    writer_.Run(item.key, item.uid, PlanDeallocate(item.consumer.uid),
                [this, cycle, claim_key = item.key, why = std::move(why),
                 done = std::move(done)](std::string) {
                  // If others have reserved the claim, nothing has changed.
                  const CachedClaim* released = context_.claims.Find(claim_key);
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
  state.claim_gone = (outcome.end == End::kGone || outcome.end == End::kDeleted) &&
                     wait_policy_.IsGone(state.items);
  const Duration waited = context_.clock().Monotonic() - state.wait_started;
  for (const ClaimItem& item : state.items) {
    const CachedClaim* claim = context_.claims.Find(item.key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    for (const device::DeviceResult& device : claim->allocation->results) {
      context_.metrics.ObserveConditionWait(device.id.driver, ResultOf(outcome.end), waited);
    }
  }
  switch (outcome.end) {
    case End::kReady:
      retries_.Forget(cycle->pod->uid);
      Conclude(std::move(cycle), std::move(done));
      return;
    case End::kFailed:
    case End::kTimeout:
      if (!state.cancelled) retries_.NoteNode(cycle->pod->uid, cycle->node_name);
      [[fallthrough]];
    case End::kNodeLost:
    case End::kDeleted:
      ReleaseUnusable(std::make_shared<Failure>(
                          Failure{std::move(cycle), std::move(outcome), std::move(done), false}),
                      0);
      return;
    case End::kGone:
    case End::kCancelled:
      done(Status::Error(std::move(outcome.message)));
      return;
  }
}

void DynamicResources::ReleaseUnusable(std::shared_ptr<Failure> failure, std::size_t at) {
  const std::string& uid = failure->cycle->pod->uid;
  for (; at < failure->outcome.unusable.size(); ++at) {
    const std::string& claim_key = failure->outcome.unusable[at];
    const CachedClaim* claim = context_.claims.Find(claim_key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    const BindingState binding = EvaluateBinding(*claim);
    const bool is_deleted = claim->latest->is_being_deleted();
    if (!is_deleted &&
        (binding.kind == BindingState::Kind::kNone || binding.kind == BindingState::Kind::kReady)) {
      continue;  // reallocated since, or ready just in time for the next attempt
    }
    if (failure->outcome.end == ConditionWaits::End::kNodeLost) {
      failure->is_news = true;
    } else if (!is_deleted && !StateOf(*failure->cycle).cancelled) {
      // The devices of a deleted claim did not fail, and nothing is remembered about a deleted pod.
      const bool is_new = retries_.NoteDevice(uid, binding.device);
      failure->is_news = failure->is_news || is_new;
    }
    // If the write fails, the next attempt finds the claim unusable and releases it then.
    writer_.Run(claim_key, std::string(claim->latest->uid()),
                PlanRelease(uid, claim->allocation, context_.is_bound),
                [this, failure, at](std::string) { ReleaseUnusable(failure, at + 1); });
    return;
  }
  DecideRetry(std::move(failure));
}

void DynamicResources::DecideRetry(std::shared_ptr<Failure> failure) {
  const auto finish = [&] { failure->done(Status::Error(std::move(failure->outcome.message))); };
  if (failure->outcome.end == ConditionWaits::End::kDeleted) return finish();
  const RetryPolicy::Failure failed{
      .pod_uid = failure->cycle->pod->uid,
      .node_name = failure->cycle->node_name,
      .is_node_lost = failure->outcome.end == ConditionWaits::End::kNodeLost,
      .is_news = failure->is_news};
  Retry& retry = failure->cycle->retry;
  // A controller that attaches devices may publish one for this very pod right after it reported
  // that another one failed.
  retry.ended_by = MaskOf(EventKind::kSliceChange);
  std::vector<std::shared_ptr<const device::Claim>> specs;
  NodeSet nodes = context_.nodes.known();
  if (const NodeIndex lost = context_.nodes.Find(failed.node_name);
      failed.is_node_lost && lost != kNoNode) {
    nodes.Remove(lost);
  }
  NodeSet alone = nodes;  // where the pod could go without the claims that only it uses
  for (const ClaimItem& item : StateOf(*failure->cycle).items) {
    const CachedClaim* claim = context_.claims.Find(item.key);
    if (claim == nullptr || claim->spec == nullptr) continue;
    if (claim->allocation == nullptr) {
      specs.push_back(claim->spec);
      continue;
    }
    FilterAllocated(*claim, nodes);
    if (!claims::IsReservedForNoneBut(claim->latest->root(), failed.pod_uid)) {
      FilterAllocated(*claim, alone);
    }
  }
  if (specs.empty()) return finish();
  const allocator::Problem problem = Prepare(specs);
  const auto look = [&](std::vector<const device::DeviceId*> avoided) {
    const BarredDevices barred(context_.devices.allocated(), std::move(avoided));
    verdicts_.Search(problem, MakeBudget());
    const NodeSet untried = retries_.Untried(failed.pod_uid, context_.nodes, alone);
    return RetryPolicy::Prospects{.fits = verdicts_.AnyFits(nodes),
                                  .fits_ready = verdicts_.AnyFitsReady(nodes),
                                  .fits_alone = verdicts_.AnyFits(alone),
                                  .fits_alone_untried = verdicts_.AnyFits(untried)};
  };
  const RetryPolicy::Decision decision = retries_.Decide(
      failed, look(retries_.FailedDevices(failed.pod_uid)), [&] { return look({}); });
  retry.when = decision.when;
  if (!decision.gives_up_claims) return finish();
  ReleaseOthers(std::move(failure), 0);
}

void DynamicResources::ReleaseOthers(std::shared_ptr<Failure> failure, std::size_t at) {
  const std::vector<ClaimItem>& items = StateOf(*failure->cycle).items;
  for (; at < items.size(); ++at) {
    const CachedClaim* claim = context_.claims.Find(items[at].key);
    if (claim == nullptr || claim->allocation == nullptr) continue;
    // What its group uses stays.
    if (items[at].consumer.is_group) continue;
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
