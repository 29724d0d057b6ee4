#include "controllers/resource_claim/controller.h"

#include <algorithm>

#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
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

// Whom the claim was made for.
struct Made {
  OwnerKey key;
  std::string uid;
};
std::optional<Made> FindOwner(const api::Object& claim) {
  if (std::optional<claims::Owner> pod = claims::FindOwnerPod(claim.root())) {
    return Made{{false, std::move(pod->key)}, std::move(pod->uid)};
  }
  if (std::optional<claims::Owner> group = claims::FindOwnerGroup(claim.root())) {
    return Made{{true, std::move(group->key)}, std::move(group->uid)};
  }
  return std::nullopt;
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
    for (const OwnerKey& owner : waiting->second) Queue(owner);
    waiting_for_template_.erase(waiting);
  }});
  // Objects that arrived before the other informer had synced are processed again.
  const auto queue_claims = lifetime_.Guard([this] {
    for (const auto& [key, claim] : options_.claims.objects()) queue_.Add("claim:" + key);
  });
  options_.pods.OnSynced(queue_claims);
  if (options_.groups != nullptr) {
    options_.groups->AddHandlers(
        {.on_add = [this](const api::ObjectPtr& group) { OnGroup(group); },
         .on_update = [this](const api::ObjectPtr&,
                             const api::ObjectPtr& group) { OnGroup(group); },
         .on_delete = [this](const api::ObjectPtr& group) { OnGroupGone(group); }});
    options_.groups->OnSynced(queue_claims);
  }
  options_.claims.OnSynced(lifetime_.Guard([this] {
    for (const auto& [key, pod] : options_.pods.objects()) {
      if (!pod->root()["spec"]["resourceClaims"].empty()) Queue({false, key});
    }
    if (options_.groups == nullptr) return;
    for (const auto& [key, group] : options_.groups->objects()) Queue({true, key});
  }));
}

void ResourceClaimController::Queue(const OwnerKey& owner) {
  queue_.Add((owner.is_group ? "group:" : "pod:") + owner.key);
}

void ResourceClaimController::OnPod(const api::ObjectPtr& pod) {
  const OwnerKey key{false, pod->qualified_name()};
  if (!confirmed_gone_.empty()) confirmed_gone_.erase(key);
  if (!pod->root()["spec"]["resourceClaims"].empty()) {
    Queue(key);
    if (const std::string_view group = claims::PodGroupOf(pod->root());
        options_.groups != nullptr && !group.empty()) {
      members_[StrCat(pod->namespace_(), "/", group)].insert(key.key);
    }
  }
  if (IsPodTerminal(*pod) || pod->is_being_deleted()) QueueClaimsOf(key, pod->uid());
}

void ResourceClaimController::QueueClaimsOf(const OwnerKey& key, std::string_view uid) {
  if (const auto claims = reserved_by_.find(key); claims != reserved_by_.end()) {
    for (const std::string& claim : claims->second) queue_.Add("claim:" + claim);
  }
  if (const auto owned = owned_.find(std::string(uid)); owned != owned_.end()) {
    for (const auto& [claim, object] : owned->second) queue_.Add("claim:" + claim);
  }
}

void ResourceClaimController::OnPodGone(const api::ObjectPtr& pod) {
  const OwnerKey key{false, pod->qualified_name()};
  made_.erase(std::string(pod->uid()));
  RememberGone(key);
  QueueClaimsOf(key, pod->uid());
  const auto members =
      members_.find(StrCat(pod->namespace_(), "/", claims::PodGroupOf(pod->root())));
  if (members == members_.end()) return;
  members->second.erase(key.key);
  if (members->second.empty()) members_.erase(members);
}

void ResourceClaimController::OnGroup(const api::ObjectPtr& group) {
  const OwnerKey key{true, group->qualified_name()};
  if (!confirmed_gone_.empty()) confirmed_gone_.erase(key);
  Queue(key);
  // Its claims may have been made for its pods.
  const auto members = members_.find(key.key);
  if (members == members_.end()) return;
  for (const std::string& pod : members->second) Queue({false, pod});
}

void ResourceClaimController::OnGroupGone(const api::ObjectPtr& group) {
  const OwnerKey key{true, group->qualified_name()};
  made_.erase(std::string(group->uid()));
  RememberGone(key);
  QueueClaimsOf(key, group->uid());
}

void ResourceClaimController::RememberGone(const OwnerKey& owner) {
  if (confirmed_gone_.size() >= kMaxConfirmedGone) confirmed_gone_.clear();
  confirmed_gone_.insert(owner);
}

void ResourceClaimController::OnClaim(const api::ObjectPtr& before, const api::ObjectPtr& claim) {
  const std::string name = claim->qualified_name();
  const api::Value status = claim->root()["status"];
  const api::Value old_status = before == nullptr ? api::Value() : before->root()["status"];
  const bool same_consumers =
      before != nullptr && api::Equal(old_status["reservedFor"], status["reservedFor"]);
  if (!same_consumers) SetConsumers(name, *claim);
  if (const std::optional<Made> made_for = FindOwner(*claim)) {
    owned_[made_for->uid][name] = claim;
    if (const auto made = made_.find(made_for->uid); made != made_.end()) {
      std::erase_if(made->second, [&](const auto& each) { return each.second == claim->name(); });
      if (made->second.empty()) made_.erase(made);
    }
    // Later changes matter to the owner only if it may have lost the claim or still lacks a
    // reservation.
    if (before == nullptr || claim->is_being_deleted() ||
        (claims::IsAllocated(claim->root()) &&
         !claims::IsReservedFor(claim->root(), made_for->uid))) {
      Queue(made_for->key);
    }
  }
  // What the claim's plan depends on, apart from its owner, whose changes queue the claim
  // themselves.
  const bool same = same_consumers && !claim->is_being_deleted() &&
                    status["allocation"].has_value() == old_status["allocation"].has_value();
  if (!same) queue_.Add("claim:" + name);
}

void ResourceClaimController::SetConsumers(const std::string& name, const api::Object& claim) {
  std::set<OwnerKey> consumers;
  for (api::Value consumer : claim["status"]["reservedFor"].elements()) {
    const bool is_group = claims::IsPodGroup(consumer);
    if (!is_group && !claims::IsPod(consumer)) continue;
    consumers.insert({is_group, StrCat(claim.namespace_(), "/", consumer["name"].str())});
  }
  std::set<OwnerKey>& before = consumers_of_[name];
  for (const OwnerKey& consumer : before) {
    if (!consumers.contains(consumer)) ForgetConsumer(consumer, name);
  }
  for (const OwnerKey& consumer : consumers) reserved_by_[consumer].insert(name);
  before = std::move(consumers);
}

void ResourceClaimController::ForgetConsumer(const OwnerKey& consumer, const std::string& claim) {
  const auto claims = reserved_by_.find(consumer);
  if (claims == reserved_by_.end()) return;
  claims->second.erase(claim);
  if (claims->second.empty()) reserved_by_.erase(claims);
}

void ResourceClaimController::OnClaimGone(const api::ObjectPtr& claim) {
  const std::string name = claim->qualified_name();
  for (const OwnerKey& consumer : consumers_of_[name]) ForgetConsumer(consumer, name);
  consumers_of_.erase(name);
  const std::optional<Made> made_for = FindOwner(*claim);
  if (!made_for) return;
  auto owned = owned_.find(made_for->uid);
  if (owned != owned_.end()) {
    owned->second.erase(name);
    if (owned->second.empty()) owned_.erase(owned);
  }
  Queue(made_for->key);
}

void ResourceClaimController::Sync(const std::string& key, Done done) {
  if (key.starts_with("pod:")) return SyncOwner({false, key.substr(4)}, std::move(done));
  if (key.starts_with("group:")) return SyncOwner({true, key.substr(6)}, std::move(done));
  SyncClaim(key.substr(6), std::move(done));
}

void ResourceClaimController::SyncOwner(const OwnerKey& key, Done done) {
  const api::ObjectPtr owner = Find(key);
  // Before the claims have synced they would look missing and be created twice.
  if (owner == nullptr || !options_.claims.has_synced()) return done(Ok());
  KnownClaims known{
      .find = [this](const std::string& claim) { return options_.claims.Find(claim); },
      .owned = {}};
  if (auto found = owned_.find(std::string(owner->uid())); found != owned_.end()) {
    for (const auto& [name, claim] : found->second) known.owned.push_back(claim);
  }
  if (auto made = made_.find(std::string(owner->uid())); made != made_.end()) {
    known.made = made->second;
  }
  api::ObjectPtr group;
  if (!key.is_group && options_.groups != nullptr) {
    const std::string_view name = claims::PodGroupOf(owner->root());
    if (!name.empty()) group = Find({true, StrCat(owner->namespace_(), "/", name)});
    // Which claims the pod needs for itself is known once its group is there, which queues it.
    if (!name.empty() && group == nullptr) return done(Ok());
  }
  const OwnerPlan plan = key.is_group ? PlanPodGroup(*owner, known) : PlanPod(*owner, group, known);
  if (!plan.create.empty()) return CreateClaims(key, owner, plan.create, std::move(done));
  if (plan.statuses) return WriteStatuses(key, owner, *plan.statuses, std::move(done));
  if (!plan.reserve.empty()) return Reserve(plan.reserve.back(), std::move(done));
  done(Ok());
}

void ResourceClaimController::CreateClaims(const OwnerKey& key, const api::ObjectPtr& owner,
                                           std::vector<OwnerPlan::Create> wanted, Done done) {
  // One at a time: an owner has only a few, and the first error is the one to report.
  const OwnerPlan::Create next = wanted.back();
  wanted.pop_back();
  const std::string template_key = StrCat(owner->namespace_(), "/", next.template_name);
  api::ObjectPtr claim_template = options_.templates.Find(template_key);
  if (claim_template == nullptr) {
    const Error error = NotFound(StrCat("resource claim template ", Quote(next.template_name),
                                        ": resourceclaimtemplate.resource.k8s.io ",
                                        Quote(next.template_name), " not found"));
    waiting_for_template_[template_key].insert(key);
    FailCreation(key, owner, next.entry, error);
    return done(Ok());  // the owner is queued again when the template appears
  }
  options_.client.Create({Claims(), std::string(owner->namespace_()), "", ""},
                         ClaimFromTemplate(*owner, next.entry, *claim_template),
                         {.field_manager = "ResourceClaimController"},
                         lifetime_.Guard([this, key, owner, next, wanted = std::move(wanted),
                                          done = std::move(done)](client::Reply reply) mutable {
                           (reply.ok() ? claims_made_ : claims_failed_).Add();
                           if (!reply.ok()) {
                             const Error error = reply.error->Prefixed("create ResourceClaim ");
                             FailCreation(key, owner, next.entry, error);
                             return done(error);
                           }
                           const std::string uid(owner->uid());
                           const std::string name(reply.object->name());
                           auto owned = owned_.find(uid);
                           const bool seen =
                               owned != owned_.end() &&
                               owned->second.contains(StrCat(owner->namespace_(), "/", name));
                           if (!seen) made_[uid].emplace_back(next.entry, name);
                           if (!wanted.empty()) {
                             return CreateClaims(key, owner, std::move(wanted), std::move(done));
                           }
                           SyncOwner(key, std::move(done));
                         }));
}

void ResourceClaimController::FailCreation(const OwnerKey& key, const api::ObjectPtr& owner,
                                           const std::string& entry, const Error& error) {
  if (!options_.warn) return;
  options_.warn(owner, "FailedResourceClaimCreation",
                StrCat(key.is_group ? "PodGroupResourceClaim " : "PodResourceClaim ", entry, ": ",
                       error.message));
}

void ResourceClaimController::WriteStatuses(
    const OwnerKey& key, const api::ObjectPtr& owner,
    const std::vector<std::pair<std::string, std::string>>& statuses, Done done) {
  // An update is cheaper for the server than a patch. If someone else wrote in between, it fails
  // with a conflict and the owner is processed again.
  api::Draft draft(owner->tree());
  api::Draft list = api::Draft::Array();
  for (const auto& [entry, claim] : statuses) {
    api::Draft status = api::Draft::Object();
    status["name"] = entry;
    if (!claim.empty()) status["resourceClaimName"] = claim;
    list.Append(std::move(status));
  }
  draft["status"]["resourceClaimStatuses"] = std::move(list);
  options_.client.Update(
      RefOf(key.is_group ? &options_.groups->kind() : Pods(), *owner, "status"), draft.Freeze(),
      {.field_manager = "ResourceClaimController"},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void ResourceClaimController::Reserve(const OwnerPlan::Reserve& wanted, Done done) {
  api::ObjectPtr claim = options_.claims.Find(wanted.claim);
  if (claim == nullptr) return done(Ok());
  api::Draft draft(claim->tree());
  claims::AddReservation(draft, wanted.consumer);
  options_.client.Update(
      RefOf(Claims(), *claim, "status"), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void ResourceClaimController::SyncClaim(const std::string& key, Done done) {
  api::ObjectPtr claim = options_.claims.Find(key);
  if (claim == nullptr || !options_.pods.has_synced() ||
      (options_.groups != nullptr && !options_.groups->has_synced())) {
    return done(Ok());
  }
  const ClaimPlan plan = PlanClaim(
      *claim, [this](const OwnerKey& owner) { return Find(owner); },
      [this](const OwnerKey& owner) {
        return confirmed_gone_.contains(owner) ? Confirmed::kGone : Confirmed::kUnknown;
      },
      options_.groups == nullptr ? GroupConsumers::kKept : GroupConsumers::kChecked);
  if (!plan.unknown.empty()) return Confirm(key, plan.unknown.front(), std::move(done));
  if (!plan.drop_uids.empty() || plan.deallocate) return Release(claim, plan, std::move(done));
  if (plan.delete_claim) {
    return DeleteClaim(claim, plan.remove_finalizer ? Then::kRemoveFinalizer : Then::kNothing,
                       std::move(done));
  }
  if (plan.remove_finalizer) return RemoveFinalizer(claim, Then::kNothing, std::move(done));
  done(Ok());
}

void ResourceClaimController::Confirm(const std::string& claim_key, const OwnerKey& owner,
                                      Done done) {
  // Our copy may be stale: only the server can tell that an owner does not exist.
  const std::size_t slash = owner.key.find('/');
  options_.client.Get(
      {owner.is_group ? &options_.groups->kind() : Pods(), owner.key.substr(0, slash),
       owner.key.substr(slash + 1), ""},
      lifetime_.Guard([this, owner, claim_key, done = std::move(done)](client::Reply reply) {
        if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
        // It exists, but may be deleted before our copy ever shows it, and then no event would
        // come.
        if (reply.ok()) {
          return done(Error{ErrorCode::kConflict, owner.is_group ? "the PodGroup informer is behind"
                                                                 : "the pod informer is behind"});
        }
        RememberGone(owner);
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
