#include "base/text/text.h"
#include "base/text/truncate.h"
#include "node/dra/dra_manager.h"
#include "node/dra/skip_operations.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.dra");

}  // namespace

struct DraManager::UnprepareOperation {
  StateMachine<kUnprepareTable> stage{UnprepareStage::kDetaching};
  std::string pod_uid;
  MonotonicTime started;
  std::vector<std::string> keys;                             // claims to erase
  std::vector<std::pair<std::string, std::string>> skipped;  // claim key, driver
  std::vector<std::string> given_up;                         // drivers declared gone
  std::vector<std::pair<std::string, std::vector<rpc::ClaimReference>>> batches;
  std::size_t next_batch = 0;
};

void DraManager::Advance(UnprepareOperation& operation, UnprepareEvent event) {
  const UnprepareStage from = operation.stage.state();
  const UnprepareStage to = operation.stage.Apply(event);
  kLog.Debug("changed unprepare stage", {{"podUID", operation.pod_uid},
                                         {"from", Name(from)},
                                         {"event", Name(event)},
                                         {"to", Name(to)}});
}

void DraManager::Unprepare(const std::string& pod_uid, Done done) {
  options_.loop.AssertInLoop();
  auto [entry, first] = unpreparing_pods_.try_emplace(pod_uid);
  entry->second.push_back(std::move(done));
  if (!first) return;

  auto operation = std::make_shared<UnprepareOperation>();
  operation->pod_uid = pod_uid;
  operation->started = options_.loop.clock().Monotonic();
  std::map<std::string, std::vector<rpc::ClaimReference>> batches;
  bool released = false;
  for (const std::string& key : cache_.KeysOfPod(pod_uid)) {
    ClaimInfo& info = *cache_.Find(key);
    if (info.pod_uids.size() > 1) {
      info.pod_uids.erase(pod_uid);
      released = true;
      continue;
    }
    info.phase.Apply(ClaimEvent::kUnprepareBegun);
    operation->keys.push_back(key);
    for (const auto& [driver, state] : info.drivers) {
      if (Skips(state.skip_node_operations, kSkipUnprepare)) {
        operation->skipped.emplace_back(key, driver);
      } else {
        batches[driver].push_back(info.reference());
      }
    }
  }
  if (released) options_.checkpoint.StoreEventually();
  operation->batches.assign(batches.begin(), batches.end());
  Advance(*operation, UnprepareEvent::kDetached);
  options_.loop.Post(lifetime_.Guard([this, operation] { CallNextUnprepare(operation); }));
}

void DraManager::CallNextUnprepare(const std::shared_ptr<UnprepareOperation>& operation) {
  if (operation->next_batch == operation->batches.size()) {
    Advance(*operation, UnprepareEvent::kAllAnswered);
    return FinishUnprepare(*operation, Ok());
  }
  const auto& [driver, claims] = operation->batches[operation->next_batch++];
  // A killed driver may have left its sockets behind and still be registered.
  if (forgotten_drivers_.contains(driver) && !options_.plugins.IsUsable(driver)) {
    kLog.Warning("skipped unprepare call: driver was declared gone",
                 {{"driver", driver}, {"claims", claims.size()}});
    operation->given_up.push_back(driver);
    Advance(*operation, UnprepareEvent::kDriverGivenUp);
    return CallNextUnprepare(operation);
  }
  auto plugin = options_.plugins.GetPlugin(driver);
  if (!plugin.ok()) return FinishUnprepare(*operation, plugin.error());
  const MonotonicTime started = options_.loop.clock().Monotonic();
  (*plugin)->client->Unprepare(
      claims, kCallTimeout,
      lifetime_.Guard([this, operation, asked = claims, instance = *plugin,
                       started](Result<rpc::UnprepareResults> results) {
        metrics_.Call(*instance, "NodeUnprepareResources",
                      DraMetrics::CodeOf(results.ok() ? nullptr : &results.error()),
                      options_.loop.clock().Monotonic() - started);
        if (!results.ok()) {
          return FinishUnprepare(*operation, results.error().Prefixed("NodeUnprepareResources"));
        }
        if (auto checked = CheckUnprepareAnswer(asked, *results); !checked.ok()) {
          return FinishUnprepare(*operation, checked);
        }
        Advance(*operation, UnprepareEvent::kDriverAnswered);
        CallNextUnprepare(operation);
      }));
}

Result<void> DraManager::CheckUnprepareAnswer(const std::vector<rpc::ClaimReference>& asked,
                                              const rpc::UnprepareResults& results) {
  std::map<std::string, std::string> names;
  for (const rpc::ClaimReference& claim : asked) names[claim.uid] = claim.name;
  for (const auto& [uid, result] : results) {
    const auto found = names.find(uid);
    if (found == names.end()) {
      return Internal(StrCat("NodeUnprepareResources returned result for unknown claim UID ",
                             TruncateMessage(uid, kMaxDriverTextBytes)));
    }
    if (!result.error.empty()) {
      return FailedPrecondition(StrCat("NodeUnprepareResources failed for ResourceClaim ",
                                       found->second, ": ",
                                       TruncateMessage(result.error, kMaxDriverTextBytes)));
    }
  }
  if (results.size() < asked.size()) {
    return Internal(StrCat("NodeUnprepareResources skipped ", asked.size() - results.size(),
                           " ResourceClaims"));
  }
  return Ok();
}

void DraManager::FinishUnprepare(UnprepareOperation& operation, Result<void> result) {
  if (!result.ok()) Advance(operation, UnprepareEvent::kError);
  CHECK(operation.stage.state() ==
        (result.ok() ? UnprepareStage::kSucceeded : UnprepareStage::kFailed));
  if (result.ok() && !operation.keys.empty()) {
    for (const auto& [key, driver] : operation.skipped) metrics_.UnprepareSkipped(driver);
    for (const std::string& key : operation.keys) {
      ClaimInfo* info = cache_.Find(key);
      CHECK(info != nullptr);  // only this operation unprepares claims of this pod
      info->phase.Apply(ClaimEvent::kUnprepared);
      cache_.Erase(key);
    }
    // After a crash, a claim that is still in the file is unprepared again, which is harmless.
    options_.checkpoint.StoreEventually();
    metrics_.ClaimsInUse(cache_);
    for (const std::string& driver : operation.given_up) {
      if (options_.on_given_up) options_.on_given_up(driver, operation.pod_uid);
    }
  }
  metrics_.Operation("UnprepareResources", !result.ok(),
                     options_.loop.clock().Monotonic() - operation.started);
  if (!result.ok()) result = result.error().Prefixed("unprepare dynamic resources");
  auto waiting = std::move(unpreparing_pods_[operation.pod_uid]);
  unpreparing_pods_.erase(operation.pod_uid);
  for (Done& done : waiting) done(result);
}

}  // namespace drakkar::node
