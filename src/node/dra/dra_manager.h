#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "node/checkpoint/checkpoint_file.h"
#include "node/dra/claim_cache.h"
#include "node/dra/dra_metrics.h"
#include "node/dra/dra_stages.h"
#include "node/plugins/plugin_store.h"

namespace drakkar {
class FeatureGates;
class Wakefulness;
}  // namespace drakkar

namespace drakkar::node {

// Prepares the claims of pods through their drivers before the pods run, and unprepares them after
// their containers have stopped (KEP-4381, KEP-5945).
//
// Guarantees: claims are checked against the live object first, and a pod that fails there leaves
// no trace; the intent to prepare is on disk before the first driver call (an announcement, which
// changes nothing, may come before); one call per driver has all claims of the pod; a claim shared
// by pods is unprepared with the last of them, and while that goes on no pod may attach to it.
// Calls of one pod must not overlap: its worker sees to that. Loop-bound. Bounded by the pods of
// the node.
class DraManager {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    PluginStore& plugins;
    CheckpointFile& checkpoint;
    const FeatureGates& gates;
    Metrics* metrics = nullptr;
    Wakefulness* wakefulness = nullptr;  // held while a prepare is under way
    // A claim of the pod was unprepared without this driver, which was declared gone. May be empty.
    std::function<void(const std::string& driver, const std::string& pod_uid)> on_given_up;
  };
  static constexpr Duration kCallTimeout = std::chrono::seconds(45);
  // Byte limit for claims sent ahead in an announcement. The driver fetches any that were omitted.
  static constexpr std::size_t kMaxAnnouncedBytes = 1 << 20;
  static constexpr Duration kReconcileEvery = std::chrono::seconds(60);

  using Done = std::function<void(Result<void>)>;

  explicit DraManager(Options options);
  ~DraManager();

  // Reads the checkpoint. Fails rather than forget what is prepared.
  Result<void> Load();

  // Errors read `prepare dynamic resources: ...`.
  void Prepare(const api::ObjectPtr& pod, Done done);
  // Of all claims the pod holds. Errors read `unprepare dynamic resources: ...`. Several callers
  // for one pod share one attempt.
  void Unprepare(const std::string& pod_uid, Done done);

  // The CDI ids for exactly the requests the container names, in its order.
  Result<std::vector<std::string>> CdiDevices(api::Value pod, api::Value container) const;

  // Whether every claim of the pod was prepared since this process started: what a new sandbox
  // needs.
  bool IsPrepared(api::Value pod) const;
  // Whether it is known which devices every claim of the pod has, from this process or from the one
  // before: what a container in a sandbox that is there already needs.
  bool KnowsDevices(api::Value pod) const;
  bool HoldsClaims(const std::string& pod_uid) const;
  // A cached claim of the pod that skips node operations although the gate is off: admission
  // rejects such a pod after a restart.
  std::optional<std::string> FindDisallowedSkip(const std::string& pod_uid) const;

  // From now on and every minute, claims of pods that `active_pods` does not know are unprepared.
  // It gives nothing while the pods of this node are not known yet.
  void StartReconcile(std::function<std::optional<std::set<std::string>>()> active_pods);

  // Unprepares at once what Reconcile would find only later: the pods are known now, or a driver
  // has come or was given up.
  void ReconcileNow();

  // Drivers that are gone for good: claims are unprepared without them while they are not
  // connected.
  void SetForgottenDrivers(std::set<std::string> drivers) {
    forgotten_drivers_ = std::move(drivers);
  }
  bool IsForgotten(const std::string& driver) const { return forgotten_drivers_.contains(driver); }

  const ClaimCache& cache() const { return cache_; }

 private:
  // Whether the pod is on every claim it names, and each is fit.
  bool HoldsAll(api::Value pod, const std::function<bool(const ClaimInfo&)>& is_fit) const;
  struct PrepareOperation;
  struct UnprepareOperation;

  void Advance(PrepareOperation& operation, PrepareEvent event);
  void FetchClaims(const std::shared_ptr<PrepareOperation>& operation);
  void OnClaimsFetched(const std::shared_ptr<PrepareOperation>& operation);
  Result<void> CheckClaims(PrepareOperation& operation);
  Result<ClaimInfo> CheckClaim(api::Value pod, const struct PodClaim& pod_claim, api::Value claim);
  Result<void> Attach(PrepareOperation& operation);
  // Drivers that wish it are told of the claims, and what they say, while the intent to prepare
  // them is being written.
  void Announce(const PrepareOperation& operation);
  void CallNextPrepare(const std::shared_ptr<PrepareOperation>& operation);
  Result<void> TakePrepareAnswer(PrepareOperation& operation, const std::string& driver,
                                 const std::vector<rpc::ClaimReference>& asked,
                                 rpc::PrepareResults results);
  // Counts the time since the last call under the metric label `stage`.
  void RecordTime(PrepareOperation& operation, std::string_view stage);
  void FinishPrepare(PrepareOperation& operation, Result<void> result);

  void Advance(UnprepareOperation& operation, UnprepareEvent event);
  void CallNextUnprepare(const std::shared_ptr<UnprepareOperation>& operation);
  static Result<void> CheckUnprepareAnswer(const std::vector<rpc::ClaimReference>& asked,
                                           const rpc::UnprepareResults& results);
  void FinishUnprepare(UnprepareOperation& operation, Result<void> result);

  const Options options_;
  ClaimCache cache_;
  DraMetrics metrics_;
  std::set<std::string> forgotten_drivers_;
  std::map<std::string, std::vector<Done>> unpreparing_pods_;
  std::function<std::optional<std::set<std::string>>()> active_pods_;
  TimerHandle reconcile_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
