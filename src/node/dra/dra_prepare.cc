#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/exec/wakefulness.h"
#include "base/text/text.h"
#include "base/text/truncate.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "features/gates/feature_gates.h"
#include "node/dra/dra_manager.h"
#include "node/dra/pod_claims.h"
#include "node/dra/skip_operations.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.dra");

std::string QualifiedName(Value object) {
  return StrCat(object["metadata"]["namespace"].str(), "/", object["metadata"]["name"].str());
}

// Limits for what a driver returns for a claim, which is kept in memory and in the checkpoint.
Result<void> CheckSize(const std::vector<rpc::PreparedDevice>& devices) {
  std::size_t bytes = 0;
  auto add = [&](const std::string& text) { bytes += text.size() + 1; };
  for (const rpc::PreparedDevice& device : devices) {
    add(device.pool_name);
    add(device.device_name);
    add(device.share_id.value_or(""));
    for (const std::string& name : device.request_names) add(name);
    for (const std::string& id : device.cdi_device_ids) add(id);
  }
  if (devices.size() > DraManager::kMaxPreparedDevices) {
    return Internal(StrCat("returned ", devices.size(), " devices for one claim, more than ",
                           DraManager::kMaxPreparedDevices));
  }
  if (bytes > DraManager::kMaxPreparedBytes) {
    return Internal(StrCat("returned devices with ", bytes, " bytes of names for one claim, ",
                           "more than ", DraManager::kMaxPreparedBytes));
  }
  return Ok();
}

}  // namespace

struct DraManager::PrepareOperation {
  StateMachine<kPrepareTable> stage{PrepareStage::kListing};
  api::ObjectPtr pod;
  Done done;
  std::unique_ptr<Wakefulness::Hold> awake;
  MonotonicTime started;
  MonotonicTime recorded_until;
  std::vector<PodClaim> pod_claims;
  std::vector<std::optional<client::Reply>> fetched;  // parallel to pod_claims
  std::size_t missing = 0;                            // replies still expected
  std::vector<ClaimInfo> fresh;                       // parallel to pod_claims
  std::vector<std::pair<std::string, std::vector<rpc::ClaimReference>>> batches;  // by driver
  std::size_t next_batch = 0;
  std::vector<std::string> to_mark;  // keys of claims that become prepared
  // Metric updates, deferred until the operation has finished.
  std::vector<absl::AnyInvocable<void(DraMetrics&)>> to_count;
};

void DraManager::Advance(PrepareOperation& operation, PrepareEvent event) {
  const PrepareStage from = operation.stage.state();
  const PrepareStage to = operation.stage.Apply(event);
  kLog.Debug("changed prepare stage", {{"pod", operation.pod->qualified_name()},
                                       {"podUID", operation.pod->uid()},
                                       {"from", Name(from)},
                                       {"event", Name(event)},
                                       {"to", Name(to)}});
}

void DraManager::Prepare(const api::ObjectPtr& pod, Done done) {
  options_.loop.AssertInLoop();
  auto operation = std::make_shared<PrepareOperation>();
  operation->pod = pod;
  operation->done = std::move(done);
  operation->started = options_.loop.clock().Monotonic();
  operation->recorded_until = operation->started;
  auto claims = ListPodClaims(pod->root());
  if (!claims.ok() || claims->empty()) {
    if (claims.ok()) Advance(*operation, PrepareEvent::kNoClaims);
    options_.loop.Post(lifetime_.Guard(
        [this, operation, result = claims.ok() ? Ok() : Result<void>(claims.error())] {
          FinishPrepare(*operation, result);
        }));
    return;
  }
  // The prepare passes through a dozen threads and processes, each for microseconds, so keep the
  // processors awake.
  if (options_.wakefulness != nullptr) operation->awake = options_.wakefulness->Begin();
  operation->pod_claims = std::move(*claims);
  FetchClaims(operation);
}

void DraManager::FetchClaims(const std::shared_ptr<PrepareOperation>& operation) {
  Advance(*operation, PrepareEvent::kClaimsListed);
  const auto* kind = api::FindResource("resource.k8s.io", "v1", "resourceclaims");
  operation->missing = operation->pod_claims.size();
  operation->fetched.resize(operation->missing);
  for (std::size_t i = 0; i < operation->pod_claims.size(); ++i) {
    options_.client.Get(
        {kind, std::string(operation->pod->namespace_()), operation->pod_claims[i].claim_name, ""},
        lifetime_.Guard([this, operation, i](client::Reply reply) {
          operation->fetched[i] = std::move(reply);
          if (--operation->missing == 0) OnClaimsFetched(operation);
        }));
  }
}

void DraManager::OnClaimsFetched(const std::shared_ptr<PrepareOperation>& operation) {
  RecordTime(*operation, "claims");
  if (auto checked = CheckClaims(*operation); !checked.ok()) {
    return FinishPrepare(*operation, checked);
  }
  if (auto attached = Attach(*operation); !attached.ok()) {
    return FinishPrepare(*operation, attached);
  }
  Advance(*operation, PrepareEvent::kClaimsAttached);
  options_.checkpoint.Store(lifetime_.Guard([this, operation](Result<void> stored) {
    RecordTime(*operation, "checkpoint");
    if (!stored.ok()) {
      return FinishPrepare(*operation, stored.error().Prefixed("checkpoint ResourceClaim cache"));
    }
    Advance(*operation, PrepareEvent::kIntentWritten);
    CallNextPrepare(operation);
  }));
  Announce(*operation);
}

Result<void> DraManager::CheckClaims(PrepareOperation& operation) {
  const Value pod = operation.pod->root();
  for (std::size_t i = 0; i < operation.pod_claims.size(); ++i) {
    const client::Reply& reply = *operation.fetched[i];
    const PodClaim& pod_claim = operation.pod_claims[i];
    if (!reply.ok()) {
      return reply.error->Prefixed(StrCat("fetch ResourceClaim ", pod_claim.claim_name));
    }
    ASSIGN_OR_RETURN(ClaimInfo info, CheckClaim(pod, pod_claim, reply.object->root()));
    operation.fresh.push_back(std::move(info));
  }
  return Ok();
}

Result<ClaimInfo> DraManager::CheckClaim(Value pod, const PodClaim& pod_claim, Value claim) {
  const std::string& name = pod_claim.claim_name;
  const std::string_view pod_uid = pod["metadata"]["uid"].str();
  // Empty: claims of groups are not accepted.
  const std::string_view group = options_.gates.Enabled(Gate::kDRAWorkloadResourceClaims)
                                     ? claims::PodGroupOf(pod)
                                     : std::string_view();
  if (pod_claim.from_template && !claims::IsMadeFor(claim, pod_uid) &&
      !claims::IsMadeForGroup(claim, group)) {
    const std::string why = group.empty()
                                ? "Pod is not owner"
                                : StrCat("neither Pod nor PodGroup ", group, " is the owner");
    return FailedPrecondition(StrCat("ResourceClaim ", QualifiedName(claim),
                                     " was not created for Pod ", QualifiedName(pod), " (", why,
                                     ")"));
  }
  if (!claims::IsReservedFor(claim, pod_uid) && !claims::IsReservedForGroup(claim, group)) {
    return FailedPrecondition(StrCat("pod ", pod["metadata"]["name"].str(), " (", pod_uid,
                                     ") is not allowed to use ResourceClaim ", name, " (",
                                     claim["metadata"]["uid"].str(), ")"));
  }
  const Value allocation = claim["status"]["allocation"];
  if (!allocation.has_value()) {
    return FailedPrecondition(StrCat("ResourceClaim ", name, ": not allocated"));
  }
  ClaimInfo info;
  info.uid = std::string(claim["metadata"]["uid"].str());
  info.name = name;
  info.namespace_name = std::string(claim["metadata"]["namespace"].str());

  const bool known = options_.gates.Known(Gate::kDRAOptionalNodePreparation);
  std::map<std::string, std::vector<std::vector<std::string>>> skips;
  for (Value result : allocation["devices"]["results"].elements()) {
    const std::string driver(result["driver"].str());
    std::vector<std::string> operations;
    if (known) operations = ReadSkipField(result["skipNodeOperations"]);
    if (!operations.empty() && !options_.gates.Enabled(Gate::kDRAOptionalNodePreparation)) {
      return FailedPrecondition(
          StrCat("ResourceClaim ", name, ": DRAOptionalNodePreparationDisabled: device ",
                 result["device"].str(), " of driver ", driver,
                 " skips node operations, and the feature gate DRAOptionalNodePreparation is "
                 "disabled on this node"));
    }
    if (Skips(operations, kSkipPrepare)) {
      rpc::PreparedDevice& device = info.drivers[driver].devices.emplace_back();
      device.request_names = {std::string(result["request"].str())};
      device.pool_name = std::string(result["pool"].str());
      device.device_name = std::string(result["device"].str());
      if (const Value share = result["shareID"]; share.has_value())
        device.share_id = std::string(share.str());
    }
    skips[driver].push_back(std::move(operations));
  }
  for (const auto& [driver, operations] : skips) {
    info.drivers[driver].skip_node_operations = AggregateSkips(operations);
  }
  // Decisions made when the claim was first prepared stay in effect.
  const ClaimInfo* cached = cache_.Find(ClaimCache::Key(info.namespace_name, info.name));
  const ClaimInfo& effective = cached != nullptr && cached->uid == info.uid ? *cached : info;
  for (const auto& [driver, state] : effective.drivers) {
    if (Skips(state.skip_node_operations, kSkipPrepare)) continue;
    auto plugin = options_.plugins.GetPlugin(driver);
    if (!plugin.ok()) return plugin.error();
  }
  return info;
}

// Attaches the pod to its claims and plans the driver calls. Nothing has been changed before this.
Result<void> DraManager::Attach(PrepareOperation& operation) {
  for (const ClaimInfo& fresh : operation.fresh) {
    const ClaimInfo* cached = cache_.Find(ClaimCache::Key(fresh.namespace_name, fresh.name));
    if (cached == nullptr) continue;
    if (cached->uid != fresh.uid) {
      return FailedPrecondition(StrCat("old ResourceClaim with same name ", fresh.name,
                                       " and different UID ", cached->uid,
                                       " still exists (previous pod force-deleted?!)"));
    }
    if (cached->phase.state() == ClaimPhase::kUnpreparing) {
      return FailedPrecondition(StrCat("ResourceClaim ", fresh.name, " is being unprepared"));
    }
  }
  std::map<std::string, std::vector<rpc::ClaimReference>> batches;
  for (ClaimInfo& fresh : operation.fresh) {
    const std::string key = ClaimCache::Key(fresh.namespace_name, fresh.name);
    ClaimInfo* info = cache_.Find(key);
    if (info == nullptr) info = &cache_.Add(fresh);
    info->pod_uids.insert(std::string(operation.pod->uid()));
    if (info->phase.state() == ClaimPhase::kPrepared) continue;
    operation.to_mark.push_back(key);
    for (auto& [driver, state] : info->drivers) {
      // A checkpoint written by a kubelet does not list devices that skip preparation.
      if (Skips(state.skip_node_operations, kSkipPrepare) && state.devices.empty() &&
          fresh.drivers.contains(driver)) {
        state.devices = fresh.drivers.at(driver).devices;
      }
      if (!Skips(state.skip_node_operations, kSkipPrepare)) {
        batches[driver].push_back(info->reference());
      }
    }
  }
  operation.batches.assign(batches.begin(), batches.end());
  return Ok();
}

void DraManager::Announce(const PrepareOperation& operation) {
  for (const auto& [driver, claims] : operation.batches) {
    const auto plugin = options_.plugins.GetPlugin(driver);
    if (!plugin.ok() || !(*plugin)->takes_announcements || !(*plugin)->client->IsConnected())
      continue;
    std::vector<rpc::AnnouncedClaim> announced;
    std::size_t bytes = 0;
    for (const rpc::ClaimReference& claim : claims) {
      announced.push_back({.reference = claim});
      for (std::size_t i = 0; i < operation.fresh.size(); ++i) {
        if (operation.fresh[i].uid != claim.uid) continue;
        const std::shared_ptr<const std::string> object = operation.fetched[i]->object->json();
        bytes += object->size();
        if (bytes <= kMaxAnnouncedBytes) announced.back().object = *object;
        break;
      }
    }
    (*plugin)->client->AnnouncePrepare(announced, kCallTimeout);
  }
}

void DraManager::CallNextPrepare(const std::shared_ptr<PrepareOperation>& operation) {
  if (operation->next_batch == operation->batches.size()) {
    Advance(*operation, PrepareEvent::kAllAnswered);
    return FinishPrepare(*operation, Ok());
  }
  const auto& [driver, claims] = operation->batches[operation->next_batch++];
  auto plugin = options_.plugins.GetPlugin(driver);
  if (!plugin.ok()) return FinishPrepare(*operation, plugin.error());
  const MonotonicTime started = options_.loop.clock().Monotonic();
  (*plugin)->client->Prepare(
      claims, kCallTimeout,
      lifetime_.Guard([this, operation, driver = driver, asked = claims, instance = *plugin,
                       started](Result<rpc::PrepareResults> results) {
        RecordTime(*operation, "driver");
        operation->to_count.emplace_back(
            [instance, code = DraMetrics::CodeOf(results.ok() ? nullptr : &results.error()),
             took = options_.loop.clock().Monotonic() - started](DraMetrics& metrics) {
              metrics.Call(*instance, "NodePrepareResources", code, took);
            });
        if (!results.ok()) {
          return FinishPrepare(*operation, results.error().Prefixed("NodePrepareResources"));
        }
        if (auto taken = TakePrepareAnswer(*operation, driver, asked, std::move(*results));
            !taken.ok()) {
          return FinishPrepare(*operation, taken);
        }
        Advance(*operation, PrepareEvent::kDriverAnswered);
        CallNextPrepare(operation);
      }));
}

Result<void> DraManager::TakePrepareAnswer(PrepareOperation& operation, const std::string& driver,
                                           const std::vector<rpc::ClaimReference>& asked,
                                           rpc::PrepareResults results) {
  std::map<std::string, const rpc::ClaimReference*> by_uid;
  for (const rpc::ClaimReference& claim : asked) by_uid[claim.uid] = &claim;
  for (auto& [uid, result] : results) {
    auto found = by_uid.find(uid);
    if (found == by_uid.end()) {
      return Internal(StrCat("NodePrepareResources returned result for unknown claim UID ",
                             TruncateMessage(uid, kMaxDriverTextBytes)));
    }
    const rpc::ClaimReference& claim = *found->second;
    if (!result.error.empty()) {
      return FailedPrecondition(StrCat("NodePrepareResources failed for ResourceClaim ", claim.name,
                                       ": ", TruncateMessage(result.error, kMaxDriverTextBytes)));
    }
    if (auto checked = CheckSize(result.devices); !checked.ok()) {
      return checked.error().Prefixed("NodePrepareResources");
    }
    ClaimInfo* info = cache_.Find(ClaimCache::Key(claim.namespace_name, claim.name));
    if (info == nullptr || info->uid != uid) {
      return Internal(StrCat("internal error: unable to get claim info for ResourceClaim ",
                             claim.name, " in namespace ", claim.namespace_name));
    }
    // Replace, do not append: a repeated call must not duplicate the devices.
    ClaimDriver& state = info->drivers[driver];
    state.devices = std::move(result.devices);
    state.answered = true;
    // A driver may omit devices that skip preparation.
    for (const ClaimInfo& fresh : operation.fresh) {
      const auto allocated = fresh.drivers.find(driver);
      if (fresh.uid != uid || allocated == fresh.drivers.end()) continue;
      for (const rpc::PreparedDevice& device : allocated->second.devices) {
        const bool known = std::ranges::any_of(state.devices, [&](const auto& each) {
          return each.pool_name == device.pool_name && each.device_name == device.device_name;
        });
        if (!known) state.devices.push_back(device);
      }
    }
  }
  if (results.size() < asked.size()) {
    return Internal(
        StrCat("NodePrepareResources skipped ", asked.size() - results.size(), " ResourceClaims"));
  }
  return Ok();
}

void DraManager::RecordTime(PrepareOperation& operation, std::string_view stage) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  operation.to_count.emplace_back([stage, took = now - operation.recorded_until](
                                      DraMetrics& metrics) { metrics.PrepareStage(stage, took); });
  operation.recorded_until = now;
}

void DraManager::FinishPrepare(PrepareOperation& operation, Result<void> result) {
  if (!result.ok()) Advance(operation, PrepareEvent::kError);
  CHECK(operation.stage.state() ==
        (result.ok() ? PrepareStage::kSucceeded : PrepareStage::kFailed));
  if (result.ok() && !operation.to_mark.empty()) {
    for (const std::string& key : operation.to_mark) {
      ClaimInfo* info = cache_.Find(key);
      // Another pod with the same claim may have finished first.
      if (info == nullptr || !info->phase.Accepts(ClaimEvent::kPrepared)) continue;
      info->phase.Apply(ClaimEvent::kPrepared);
      for (const auto& [driver, state] : info->drivers) {
        if (!Skips(state.skip_node_operations, kSkipPrepare)) continue;
        operation.to_count.emplace_back(
            [driver = driver](DraMetrics& metrics) { metrics.PrepareSkipped(driver); });
      }
    }
    // The intent is on disk. If the process dies before the result is written, the worker that
    // adopts the pod prepares again, which is idempotent.
    options_.checkpoint.StoreEventually();
    operation.to_count.emplace_back([this](DraMetrics& metrics) { metrics.ClaimsInUse(cache_); });
  }
  const Duration took = options_.loop.clock().Monotonic() - operation.started;
  operation.to_count.emplace_back([is_error = !result.ok(), took](DraMetrics& metrics) {
    metrics.Operation("PrepareResources", is_error, took);
  });
  // Count metrics after the pod has continued.
  options_.loop.Post(lifetime_.Guard([this, awake = std::move(operation.awake),
                                      to_count = std::move(operation.to_count)]() mutable {
    for (auto& count : to_count) count(metrics_);
  }));
  if (!result.ok()) result = result.error().Prefixed("prepare dynamic resources");
  auto done = std::move(operation.done);
  done(std::move(result));
}

}  // namespace drakkar::node
