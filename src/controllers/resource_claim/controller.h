#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/resource_claim/planner.h"

namespace drakkar {
class Counter;
class Metrics;
}  // namespace drakkar

namespace drakkar::controllers {

// Creates claims from templates for pods and PodGroups, removes pods from reservedFor once they are
// done or gone, and groups once they are gone, and deallocates a claim that has no consumers left.
// Never allocates.
//
// Loop-bound. The given informers are shared and must outlive it.
class ResourceClaimController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    // Records an event about the pod or group, with a reason and a message.
    std::function<void(const api::ObjectPtr& owner, std::string_view reason, std::string message)>
        warn;
    Metrics& metrics;
    client::Informer& pods;
    client::Informer* groups;  // PodGroups; null if they share no claims
    client::Informer& claims;
    client::Informer& templates;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit ResourceClaimController(Options options);

 private:
  using Done = client::WorkQueue::Done;

  void Sync(const std::string& key, Done done);
  // A pod or a group, the owner of claims.
  void SyncOwner(const OwnerKey& key, Done done);
  void SyncClaim(const std::string& key, Done done);
  void CreateClaims(const OwnerKey& key, const api::ObjectPtr& owner,
                    std::vector<OwnerPlan::Create> wanted, Done done);
  void WriteStatuses(const OwnerKey& key, const api::ObjectPtr& owner,
                     const std::vector<std::pair<std::string, std::string>>& statuses, Done done);
  void Reserve(const OwnerPlan::Reserve& wanted, Done done);
  void Confirm(const std::string& claim_key, const OwnerKey& owner, Done done);
  void Release(const api::ObjectPtr& claim, const ClaimPlan& plan, Done done);
  enum class Then { kNothing, kDelete, kRemoveFinalizer };
  void RemoveFinalizer(api::ObjectPtr claim, Then then, Done done);
  void DeleteClaim(const api::ObjectPtr& claim, Then then, Done done);

  void OnPod(const api::ObjectPtr& pod);
  void OnPodGone(const api::ObjectPtr& pod);
  void OnGroup(const api::ObjectPtr& group);
  void OnGroupGone(const api::ObjectPtr& group);
  void OnClaim(const api::ObjectPtr& before, const api::ObjectPtr& claim);
  void OnClaimGone(const api::ObjectPtr& claim);
  void SetConsumers(const std::string& name, const api::Object& claim);
  void ForgetConsumer(const OwnerKey& consumer, const std::string& claim);
  void Queue(const OwnerKey& owner);
  void QueueClaimsOf(const OwnerKey& key, std::string_view uid);
  void RememberGone(const OwnerKey& owner);
  void FailCreation(const OwnerKey& key, const api::ObjectPtr& owner, const std::string& entry,
                    const Error& error);
  api::ObjectPtr Find(const OwnerKey& owner) const {
    const client::Informer* informer = owner.is_group ? options_.groups : &options_.pods;
    return informer == nullptr ? nullptr : informer->Find(owner.key);
  }

  Options options_;
  Counter& claims_made_;
  Counter& claims_failed_;
  client::WorkQueue queue_;
  // Claims we created that the informer may not show yet, by UID of the owner: entry and claim
  // name.
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> made_;
  // Claims by the UID of the owner.
  std::unordered_map<std::string, std::map<std::string, api::ObjectPtr>> owned_;
  // Claims ("namespace/name") by whom they are reserved for.
  std::map<OwnerKey, std::set<std::string>> reserved_by_;
  std::unordered_map<std::string, std::set<OwnerKey>> consumers_of_;
  // Owners by the missing template ("namespace/name") they wait for.
  std::map<std::string, std::set<OwnerKey>> waiting_for_template_;
  // Pods ("namespace/name") with claims, by their group ("namespace/name").
  std::map<std::string, std::set<std::string>> members_;
  // Owners that the server confirmed as gone, until one of that name appears. Bounded; a dropped
  // entry costs one request.
  std::set<OwnerKey> confirmed_gone_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
