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
// Guarantees: claims are first checked against the live object, and a pod that fails this check
// leaves no trace. The intent to prepare is on disk before the first driver call (an announcement,
// which has no effect, may precede it). One call per driver covers all claims of the pod. A shared
// claim is unprepared with its last pod; until that has finished, no pod can attach to it. Calls
// for one pod must not overlap, which its worker ensures. Stages and transitions are in
// dra_stages.h. Loop-bound; bounded by the pods of the node.
class DraManager {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    PluginStore& plugins;
    CheckpointFile& checkpoint;
    const FeatureGates& gates;
    Metrics* metrics = nullptr;
    Wakefulness* wakefulness = nullptr;  // held during a prepare
    // A claim of the pod was unprepared without this driver, which was declared gone. May be empty.
    std::function<void(const std::string& driver, const std::string& pod_uid)> on_given_up;
  };
  static constexpr Duration kCallTimeout = std::chrono::seconds(45);
  // Byte limit for claims sent ahead in an announcement. The driver fetches any that were omitted.
  static constexpr std::size_t kMaxAnnouncedBytes = 1 << 20;
  // Limits of what one driver may return for one claim; beyond them the call counts as failed. An
  // allocation has at most 32 devices.
  static constexpr std::size_t kMaxPreparedDevices = 1'024;
  static constexpr std::size_t kMaxPreparedBytes = 1 << 20;
  // A driver's error text is truncated to this in events, statuses and logs.
  static constexpr std::size_t kMaxDriverTextBytes = 4'096;
  static constexpr Duration kReconcileEvery = std::chrono::seconds(60);

  using Done = std::function<void(Result<void>)>;

  explicit DraManager(Options options);
  ~DraManager();

  // Reads the checkpoint. Fails if it cannot be read: forgetting prepared claims would be worse.
  Result<void> Load();

  // Prepares all claims of the pod. Errors start with `prepare dynamic resources: `.
  void Prepare(const api::ObjectPtr& pod, Done done);
  // Unprepares all claims that the pod holds. Errors start with `unprepare dynamic resources: `.
  // Concurrent calls for one pod share one attempt.
  void Unprepare(const std::string& pod_uid, Done done);

  // The CDI ids of exactly the requests that the container names, in its order.
  Result<std::vector<std::string>> CdiDevices(api::Value pod, api::Value container) const;

  // Whether every claim of the pod was prepared since this process started. Required for a new
  // sandbox.
  bool IsPrepared(api::Value pod) const;
  // Whether the devices of every claim of the pod are known, from this process or the previous one.
  // Enough for a container in an existing sandbox.
  bool KnowsDevices(api::Value pod) const;
  // A cached claim of the pod that skips node operations although the gate is off. After a restart,
  // admission rejects such a pod.
  std::optional<std::string> FindDisallowedSkip(const std::string& pod_uid) const;

  // Unprepares, now and every minute, the claims of pods that are not in `active_pods`.
  // `active_pods` returns nothing until the pods of this node are known.
  void StartReconcile(std::function<std::optional<std::set<std::string>>()> active_pods);

  // Reconciles now instead of at the next interval: the pods have become known, or a driver
  // connected or was declared gone.
  void ReconcileNow();

  // Drivers that were declared gone: while they are not connected, claims are unprepared without
  // them.
  void SetForgottenDrivers(std::set<std::string> drivers) {
    forgotten_drivers_ = std::move(drivers);
  }
  bool IsForgotten(const std::string& driver) const { return forgotten_drivers_.contains(driver); }

  const ClaimCache& cache() const { return cache_; }

 private:
  // Whether the pod holds every claim it names and `is_fit` accepts each.
  bool HoldsAll(api::Value pod, const std::function<bool(const ClaimInfo&)>& is_fit) const;
  struct PrepareOperation;
  struct UnprepareOperation;

  void Advance(PrepareOperation& operation, PrepareEvent event);
  void FetchClaims(const std::shared_ptr<PrepareOperation>& operation);
  void OnClaimsFetched(const std::shared_ptr<PrepareOperation>& operation);
  Result<void> CheckClaims(PrepareOperation& operation);
  Result<ClaimInfo> CheckClaim(api::Value pod, const struct PodClaim& pod_claim, api::Value claim);
  Result<void> Attach(PrepareOperation& operation);
  // Sends the claims ahead to drivers that accept announcements, while the intent is being written.
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
