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

// Creates claims from templates for pods, removes pods from reservedFor once they are done or gone,
// and deallocates a claim that has no consumers left. Never allocates.
//
// Loop-bound. The given informers are shared and must outlive it.
class ResourceClaimController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    // Records an event about the pod, with a reason and a message.
    std::function<void(const api::ObjectPtr& pod, std::string_view reason, std::string message)>
        warn;
    Metrics& metrics;
    client::Informer& pods;
    client::Informer& claims;
    client::Informer& templates;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit ResourceClaimController(Options options);

 private:
  using Done = client::WorkQueue::Done;

  void Sync(const std::string& key, Done done);
  void SyncPod(const std::string& key, Done done);
  void SyncClaim(const std::string& key, Done done);
  void CreateClaims(const api::ObjectPtr& pod, std::vector<PodPlan::Create> wanted, Done done);
  void WriteStatuses(const api::ObjectPtr& pod,
                     const std::vector<std::pair<std::string, std::string>>& statuses, Done done);
  void Reserve(const api::ObjectPtr& pod, std::vector<std::string> claims, Done done);
  void Confirm(const std::string& claim_key, const std::vector<std::string>& pods, Done done);
  void Release(const api::ObjectPtr& claim, const ClaimPlan& plan, Done done);
  enum class Then { kNothing, kDelete, kRemoveFinalizer };
  void RemoveFinalizer(api::ObjectPtr claim, Then then, Done done);
  void DeleteClaim(const api::ObjectPtr& claim, Then then, Done done);

  void OnPod(const api::ObjectPtr& pod);
  void OnPodGone(const api::ObjectPtr& pod);
  void OnClaim(const api::ObjectPtr& before, const api::ObjectPtr& claim);
  void OnClaimGone(const api::ObjectPtr& claim);
  void SetConsumers(const std::string& name, const api::Object& claim);
  void QueueClaimsOf(const api::Object& pod);
  void RememberGone(const std::string& pod);
  void FailCreation(const api::ObjectPtr& pod, const std::string& entry, const Error& error);

  Options options_;
  Counter& claims_made_;
  Counter& claims_failed_;
  client::WorkQueue queue_;
  // Claims we created that the informer may not show yet, by pod UID: entry and claim name.
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> made_;
  // Claims by the UID of the owning pod.
  std::unordered_map<std::string, std::map<std::string, api::ObjectPtr>> owned_;
  // Claims ("namespace/name") by the pod ("namespace/name") they are reserved for.
  std::unordered_map<std::string, std::set<std::string>> reserved_by_pod_;
  std::unordered_map<std::string, std::set<std::string>> pods_of_claim_;
  // Pods by the missing template ("namespace/name") they wait for.
  std::map<std::string, std::set<std::string>> waiting_for_template_;
  // Pods that the server confirmed as gone, until one of that name appears. Bounded; a dropped
  // entry costs one request.
  std::unordered_set<std::string> confirmed_gone_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
