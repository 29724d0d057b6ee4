#include "controllers/resource_claim/controller.h"

#include <algorithm>

#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::controllers {

namespace {

constexpr std::size_t kMaxConfirmedGone = 100'000;

const api::KindSchema* Claims() {
  static const api::KindSchema* kind = api::FindKind("resource.k8s.io", "v1", "ResourceClaim");
  return kind;
}

const api::KindSchema* Pods() {
  static const api::KindSchema* kind = api::FindKind("", "v1", "Pod");
  return kind;
}

client::ResourceRef RefOf(const api::KindSchema* kind, const api::Object& object,
                          std::string subresource = {}) {
  return {kind, std::string(object.namespace_()), std::string(object.name()),
          std::move(subresource)};
}

Counter& CountOfClaims(Metrics& metrics, const char* status) {
  return metrics.GetCounter("dynamic_resource_allocation_resourceclaim_creates_total",
                            "Claims created for pods, by outcome.", {{"status", status}});
}

// Not found is success; any other error is retried.
Result<void> Accept(const client::Reply& reply) {
  if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return Ok();
  return *reply.error;
}

}  // namespace

ResourceClaimController::ResourceClaimController(Options options)
    : options_(std::move(options)),
      claims_made_(CountOfClaims(options_.metrics, "success")),
      claims_failed_(CountOfClaims(options_.metrics, "failure")),
      queue_(options_.loop, options_.random, {"resource-claim"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }) {
  options_.pods.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { OnPod(pod); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& pod) { OnPod(pod); },
       .on_delete = [this](const api::ObjectPtr& pod) { OnPodGone(pod); }});
  options_.claims.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& claim) { OnClaim(nullptr, claim); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& claim) { OnClaim(before, claim); },
       .on_delete = [this](const api::ObjectPtr& claim) { OnClaimGone(claim); }});
  options_.templates.AddHandlers({.on_add = [this](const api::ObjectPtr& claim_template) {
    auto waiting = waiting_for_template_.find(claim_template->qualified_name());
    if (waiting == waiting_for_template_.end()) return;
    for (const std::string& pod : waiting->second) queue_.Add("pod:" + pod);
    waiting_for_template_.erase(waiting);
  }});
  // Objects that arrived before the other informer had synced are processed again.
  options_.pods.OnSynced(lifetime_.Guard([this] {
    for (const auto& [key, claim] : options_.claims.objects()) queue_.Add("claim:" + key);
  }));
  options_.claims.OnSynced(lifetime_.Guard([this] {
    for (const auto& [key, pod] : options_.pods.objects()) {
      if (!pod->root()["spec"]["resourceClaims"].empty()) queue_.Add("pod:" + key);
    }
  }));
}

void ResourceClaimController::OnPod(const api::ObjectPtr& pod) {
  const std::string name = pod->qualified_name();
  if (!confirmed_gone_.empty()) confirmed_gone_.erase(name);
  if (!pod->root()["spec"]["resourceClaims"].empty()) queue_.Add("pod:" + name);
  if (IsPodTerminal(*pod) || pod->is_being_deleted()) QueueClaimsOf(*pod);
}

void ResourceClaimController::QueueClaimsOf(const api::Object& pod) {
  if (const auto claims = reserved_by_pod_.find(pod.qualified_name());
      claims != reserved_by_pod_.end()) {
    for (const std::string& claim : claims->second) queue_.Add("claim:" + claim);
  }
  if (const auto owned = owned_.find(std::string(pod.uid())); owned != owned_.end()) {
    for (const auto& [claim, object] : owned->second) queue_.Add("claim:" + claim);
  }
}

void ResourceClaimController::OnPodGone(const api::ObjectPtr& pod) {
  made_.erase(std::string(pod->uid()));
  RememberGone(pod->qualified_name());
  QueueClaimsOf(*pod);
}

void ResourceClaimController::RememberGone(const std::string& pod) {
  if (confirmed_gone_.size() >= kMaxConfirmedGone) confirmed_gone_.clear();
  confirmed_gone_.insert(pod);
}

void ResourceClaimController::OnClaim(const api::ObjectPtr& before, const api::ObjectPtr& claim) {
  const std::string name = claim->qualified_name();
  const api::Value status = claim->root()["status"];
  const api::Value old_status = before == nullptr ? api::Value() : before->root()["status"];
  const bool same_consumers =
      before != nullptr && api::Equal(old_status["reservedFor"], status["reservedFor"]);
  if (!same_consumers) SetConsumers(name, *claim);
  if (const std::optional<claims::OwnerPod> owner = claims::FindOwnerPod(claim->root())) {
    owned_[owner->uid][name] = claim;
    if (const auto made = made_.find(owner->uid); made != made_.end()) {
      std::erase_if(made->second, [&](const auto& each) { return each.second == claim->name(); });
      if (made->second.empty()) made_.erase(made);
    }
    // Later changes matter to the pod only if it may have lost the claim or still lacks a
    // reservation.
    if (before == nullptr || claim->is_being_deleted() ||
        (claims::IsAllocated(claim->root()) && !claims::IsReservedFor(claim->root(), owner->uid))) {
      queue_.Add("pod:" + owner->key);
    }
  }
  // What the claim's plan depends on, apart from pods, whose changes queue the claim themselves.
  const bool same = same_consumers && !claim->is_being_deleted() &&
                    status["allocation"].has_value() == old_status["allocation"].has_value();
  if (!same) queue_.Add("claim:" + name);
}

void ResourceClaimController::SetConsumers(const std::string& name, const api::Object& claim) {
  std::set<std::string> pods;
  for (api::Value consumer : claim["status"]["reservedFor"].elements()) {
    if (!claims::IsPod(consumer)) continue;
    pods.insert(StrCat(claim.namespace_(), "/", consumer["name"].str()));
  }
  std::set<std::string>& before = pods_of_claim_[name];
  for (const std::string& pod : before) {
    const auto claims = reserved_by_pod_.find(pod);
    if (pods.contains(pod) || claims == reserved_by_pod_.end()) continue;
    claims->second.erase(name);
    if (claims->second.empty()) reserved_by_pod_.erase(claims);
  }
  for (const std::string& pod : pods) reserved_by_pod_[pod].insert(name);
  before = std::move(pods);
}

void ResourceClaimController::OnClaimGone(const api::ObjectPtr& claim) {
  const std::string name = claim->qualified_name();
  for (const std::string& pod : pods_of_claim_[name]) {
    auto claims = reserved_by_pod_.find(pod);
    if (claims == reserved_by_pod_.end()) continue;
    claims->second.erase(name);
    if (claims->second.empty()) reserved_by_pod_.erase(claims);
  }
  pods_of_claim_.erase(name);
  if (std::optional<claims::OwnerPod> owner = claims::FindOwnerPod(claim->root())) {
    auto owned = owned_.find(owner->uid);
    if (owned != owned_.end()) {
      owned->second.erase(name);
      if (owned->second.empty()) owned_.erase(owned);
    }
    queue_.Add("pod:" + owner->key);
  }
}

void ResourceClaimController::Sync(const std::string& key, Done done) {
  if (key.starts_with("pod:")) return SyncPod(key.substr(4), std::move(done));
  SyncClaim(key.substr(6), std::move(done));
}

void ResourceClaimController::SyncPod(const std::string& key, Done done) {
  api::ObjectPtr pod = options_.pods.Find(key);
  // Before the claims have synced they would look missing and be created twice.
  if (pod == nullptr || !options_.claims.has_synced()) return done(Ok());
  std::vector<api::ObjectPtr> owned;
  if (auto found = owned_.find(std::string(pod->uid())); found != owned_.end()) {
    for (const auto& [name, claim] : found->second) owned.push_back(claim);
  }
  auto made = made_.find(std::string(pod->uid()));
  const PodPlan plan = PlanPod(
      *pod, [this](const std::string& claim) { return options_.claims.Find(claim); }, owned,
      made == made_.end() ? std::vector<std::pair<std::string, std::string>>() : made->second);
  if (!plan.create.empty()) return CreateClaims(pod, plan.create, std::move(done));
  if (plan.statuses) return WriteStatuses(pod, *plan.statuses, std::move(done));
  if (!plan.reserve.empty()) return Reserve(pod, plan.reserve, std::move(done));
  done(Ok());
}

void ResourceClaimController::CreateClaims(const api::ObjectPtr& pod,
                                           std::vector<PodPlan::Create> wanted, Done done) {
  // One at a time: a pod has only a few, and the first error is the one to report.
  const PodPlan::Create next = wanted.back();
  wanted.pop_back();
  const std::string template_key = StrCat(pod->namespace_(), "/", next.template_name);
  api::ObjectPtr claim_template = options_.templates.Find(template_key);
  if (claim_template == nullptr) {
    const Error error = NotFound(StrCat("resource claim template ", Quote(next.template_name),
                                        ": resourceclaimtemplate.resource.k8s.io ",
                                        Quote(next.template_name), " not found"));
    waiting_for_template_[template_key].insert(pod->qualified_name());
    FailCreation(pod, next.entry, error);
    return done(Ok());  // the pod is queued again when the template appears
  }
  options_.client.Create({Claims(), std::string(pod->namespace_()), "", ""},
                         ClaimFromTemplate(*pod, next.entry, *claim_template),
                         {.field_manager = "ResourceClaimController"},
                         lifetime_.Guard([this, pod, next, wanted = std::move(wanted),
                                          done = std::move(done)](client::Reply reply) mutable {
                           (reply.ok() ? claims_made_ : claims_failed_).Add();
                           if (!reply.ok()) {
                             const Error error = reply.error->Prefixed("create ResourceClaim ");
                             FailCreation(pod, next.entry, error);
                             return done(error);
                           }
                           const std::string name(reply.object->name());
                           auto owned = owned_.find(std::string(pod->uid()));
                           const bool seen =
                               owned != owned_.end() &&
                               owned->second.contains(StrCat(pod->namespace_(), "/", name));
                           if (!seen) made_[std::string(pod->uid())].emplace_back(next.entry, name);
                           if (!wanted.empty())
                             return CreateClaims(pod, std::move(wanted), std::move(done));
                           SyncPod(pod->qualified_name(), std::move(done));
                         }));
}

void ResourceClaimController::FailCreation(const api::ObjectPtr& pod, const std::string& entry,
                                           const Error& error) {
  if (!options_.warn) return;
  options_.warn(pod, "FailedResourceClaimCreation",
                StrCat("PodResourceClaim ", entry, ": ", error.message));
}

void ResourceClaimController::WriteStatuses(
    const api::ObjectPtr& pod, const std::vector<std::pair<std::string, std::string>>& statuses,
    Done done) {
  // An update is cheaper for the server than a patch. If someone else wrote in between, it fails
  // with a conflict and the pod is processed again.
  api::Draft draft(pod->tree());
  api::Draft list = api::Draft::Array();
  for (const auto& [entry, claim] : statuses) {
    api::Draft status = api::Draft::Object();
    status["name"] = entry;
    if (!claim.empty()) status["resourceClaimName"] = claim;
    list.Append(std::move(status));
  }
  draft["status"]["resourceClaimStatuses"] = std::move(list);
  options_.client.Update(
      RefOf(Pods(), *pod, "status"), draft.Freeze(), {.field_manager = "ResourceClaimController"},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void ResourceClaimController::Reserve(const api::ObjectPtr& pod, std::vector<std::string> claims,
                                      Done done) {
  api::ObjectPtr claim = options_.claims.Find(claims.back());
  if (claim == nullptr) return done(Ok());
  api::Draft draft(claim->tree());
  claims::AddReservation(draft, pod->name(), pod->uid());
  options_.client.Update(
      RefOf(Claims(), *claim, "status"), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void ResourceClaimController::SyncClaim(const std::string& key, Done done) {
  api::ObjectPtr claim = options_.claims.Find(key);
  if (claim == nullptr || !options_.pods.has_synced()) return done(Ok());
  const ClaimPlan plan = PlanClaim(
      *claim, [this](const std::string& pod) { return options_.pods.Find(pod); },
      [this](const std::string& pod) {
        return confirmed_gone_.contains(pod) ? Confirmed::kGone : Confirmed::kUnknown;
      });
  if (!plan.unknown_pods.empty()) return Confirm(key, plan.unknown_pods, std::move(done));
  if (!plan.drop_uids.empty() || plan.deallocate) return Release(claim, plan, std::move(done));
  if (plan.delete_claim) {
    return DeleteClaim(claim, plan.remove_finalizer ? Then::kRemoveFinalizer : Then::kNothing,
                       std::move(done));
  }
  if (plan.remove_finalizer) return RemoveFinalizer(claim, Then::kNothing, std::move(done));
  done(Ok());
}

void ResourceClaimController::Confirm(const std::string& claim_key,
                                      const std::vector<std::string>& pods, Done done) {
  // Our copy may be stale: only the server can tell that a pod does not exist.
  const std::string pod = pods.front();
  const std::size_t slash = pod.find('/');
  options_.client.Get(
      {Pods(), pod.substr(0, slash), pod.substr(slash + 1), ""},
      lifetime_.Guard([this, pod, claim_key, done = std::move(done)](client::Reply reply) {
        if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
        // It exists, but may be deleted before our copy ever shows it, and then no event would
        // come.
        if (reply.ok()) return done(Error{ErrorCode::kConflict, "the pod informer is behind"});
        RememberGone(pod);
        SyncClaim(claim_key, done);
      }));
}

void ResourceClaimController::Release(const api::ObjectPtr& claim, const ClaimPlan& plan,
                                      Done done) {
  api::Draft draft(claim->tree());
  claims::RemoveReservations(draft, [&](std::string_view uid) {
    return std::find(plan.drop_uids.begin(), plan.drop_uids.end(), uid) != plan.drop_uids.end();
  });
  if (plan.deallocate) claims::ClearAllocation(draft);
  options_.client.Update(
      RefOf(Claims(), *claim, "status"), draft.Freeze(), {},
      lifetime_.Guard([this, plan, done = std::move(done)](client::Reply reply) {
        if (!reply.ok() || !plan.remove_finalizer) return done(Accept(reply));
        RemoveFinalizer(reply.object, plan.delete_claim ? Then::kDelete : Then::kNothing, done);
      }));
}

void ResourceClaimController::RemoveFinalizer(api::ObjectPtr claim, Then then, Done done) {
  api::Draft draft(claim->tree());
  api::RemoveFinalizer(draft["metadata"], claims::kFinalizer);
  options_.client.Update(
      RefOf(Claims(), *claim), draft.Freeze(), {},
      lifetime_.Guard([this, claim, then, done = std::move(done)](client::Reply reply) {
        if (!reply.ok() || then != Then::kDelete) return done(Accept(reply));
        DeleteClaim(claim, Then::kNothing, done);
      }));
}

void ResourceClaimController::DeleteClaim(const api::ObjectPtr& claim, Then then, Done done) {
  options_.client.Delete(
      RefOf(Claims(), *claim), {.precondition_uid = std::string(claim->uid())},
      lifetime_.Guard([this, claim, then, done = std::move(done)](client::Reply reply) {
        // The reply holds the current claim, unless it was deleted completely.
        if (!reply.ok() || then != Then::kRemoveFinalizer || reply.object == nullptr ||
            reply.object->uid() != claim->uid()) {
          return done(Accept(reply));
        }
        RemoveFinalizer(reply.object, Then::kNothing, done);
      }));
}

}  // namespace drakkar::controllers
