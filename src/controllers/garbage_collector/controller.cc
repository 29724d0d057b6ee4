#include "controllers/garbage_collector/controller.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::controllers {

namespace {

constexpr Logger kLog("garbage-collector");
constexpr std::size_t kMaxGone = 100'000;
constexpr std::size_t kDependentsAtATime = 100;
// The claim controller releases and deletes a pod's claims at once. We collect only what it leaves
// behind.
constexpr Duration kClaimControllersTurn = std::chrono::seconds(1);

// How often to look for new kinds, and how long to wait after discovery failed.
constexpr Duration kDiscoverAgain = std::chrono::seconds(30);
constexpr Duration kDiscoverAfterFailure = std::chrono::seconds(2);

bool CanBeCollected(const api::KindSchema& kind) {
  auto has = [&](std::string_view verb) {
    return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
  };
  // Events own nothing and expire on their own.
  return has("list") && has("watch") && has("delete") && kind.kind != "Event";
}

client::ResourceRef RefOf(const OwnerGraph::Item& item) {
  return {item.kind, std::string(item.object->namespace_()), std::string(item.object->name()), ""};
}

Result<void> Accept(const client::Reply& reply) {
  if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return Ok();
  return *reply.error;
}

}  // namespace

GarbageCollector::GarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                                   std::vector<client::Informer*> shared)
    : loop_(loop),
      random_(random),
      client_(client),
      queue_(loop, random, {"garbage-collector"},
             [this](const std::string& uid, Done done) { Sync(uid, std::move(done)); }),
      shared_(std::move(shared)) {
  for (client::Informer* informer : shared_) Watch(informer->kind(), *informer);
}

void GarbageCollector::Watch(const api::KindSchema& kind, client::Informer& informer) {
  informer.AddHandlers(
      {.on_add = [this, &kind](const api::ObjectPtr& object) { OnObject(kind, nullptr, object); },
       .on_update = [this, &kind](const api::ObjectPtr& before,
                                  const api::ObjectPtr& object) { OnObject(kind, before, object); },
       .on_delete = [this](const api::ObjectPtr& object) { OnGone(object); }});
  informer.OnSynced(lifetime_.Guard([this] { SweepOnce(); }));
}

// Collects what was left behind before we started.
void GarbageCollector::SweepOnce() {
  if (swept_ || !AllSynced()) return;
  swept_ = true;
  const auto sweep = [this](const client::Informer& informer) {
    for (const auto& [name, object] : informer.objects()) {
      if (!OwnersOf(*object).empty() || object->is_being_deleted()) {
        queue_.Add(std::string(object->uid()));
      }
    }
  };
  for (const client::Informer* each : shared_) sweep(*each);
  for (const auto& each : own_) sweep(*each);
}

void GarbageCollector::Start() {
  Discover();
}

void GarbageCollector::Discover() {
  client_.Discover(lifetime_.Guard([this](Result<client::ServedKinds> served) {
    if (served.ok()) return OnDiscovered(std::move(*served));
    kLog.Warning("discovery failed; retrying", {{"error", served.error().message}});
    next_discovery_ = loop_.RunAfter(kDiscoverAfterFailure, [this] { Discover(); });
  }));
}

void GarbageCollector::OnDiscovered(client::ServedKinds served) {
  if (!served.fixed) next_discovery_ = loop_.RunAfter(kDiscoverAgain, [this] { Discover(); });
  if (!served.unreachable.empty()) {
    // Kinds of these groups are missing from the answer, but may still exist.
    kLog.Warning("some API groups did not answer discovery", {{"groups", served.unreachable}});
    for (const api::KindSchema* kind : served_) {
      if (std::find(served.kinds.begin(), served.kinds.end(), kind) == served.kinds.end()) {
        served.kinds.push_back(kind);
      }
    }
  }
  served_ = std::move(served.kinds);
  // If a kind is no longer served, its objects are gone too.
  std::erase_if(own_, [this](const std::unique_ptr<client::Informer>& informer) {
    if (std::find(served_.begin(), served_.end(), &informer->kind()) != served_.end()) return false;
    for (const auto& [name, object] : informer->objects()) OnGone(object);
    return true;
  });
  for (const api::KindSchema* kind : served_) {
    const auto watches = [kind](const auto& informer) { return &informer->kind() == kind; };
    if (!CanBeCollected(*kind) || std::any_of(shared_.begin(), shared_.end(), watches) ||
        std::any_of(own_.begin(), own_.end(), watches)) {
      continue;
    }
    own_.push_back(std::make_unique<client::Informer>(
        loop_, random_, client_, client::Informer::Options{.collection = {kind, "", "", ""}}));
    Watch(*kind, *own_.back());
    own_.back()->Start();
  }
  SweepOnce();
}

const api::KindSchema* GarbageCollector::FindServed(std::string_view api_version,
                                                    std::string_view kind) const {
  const std::size_t slash = api_version.find('/');
  const std::string_view group =
      slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  for (const api::KindSchema* each : served_) {
    if (each->group == group && each->kind == kind) return each;
  }
  return nullptr;
}

bool GarbageCollector::AllSynced() {
  const auto synced = [](const auto& each) { return each->has_synced(); };
  all_synced_ =
      all_synced_ || (!served_.empty() && std::all_of(shared_.begin(), shared_.end(), synced) &&
                      std::all_of(own_.begin(), own_.end(), synced));
  return all_synced_;
}

void GarbageCollector::OnObject(const api::KindSchema& kind, const api::ObjectPtr& before,
                                const api::ObjectPtr& object) {
  graph_.Put(kind, object);
  // Most changes do not affect any decision.
  if (before != nullptr && !object->is_being_deleted() && !before->is_being_deleted() &&
      api::Equal(OwnersOf(*before), OwnersOf(*object))) {
    return;
  }
  QueueDyingOwners(*object);
  if (before != nullptr) QueueDyingOwners(*before);
  if (WaitsForDependents(*object) && (before == nullptr || !WaitsForDependents(*before))) {
    // Each of them decides for itself: it may have other owners.
    for (std::string& dependent : graph_.Dependents(std::string(object->uid()))) {
      queue_.Add(std::move(dependent));
    }
  }
  if (!OwnersOf(*object).empty() || object->is_being_deleted()) {
    queue_.Add(std::string(object->uid()));
  }
}

// An owner that waits for its dependents is checked again when one of them changes.
void GarbageCollector::QueueDyingOwners(const api::Object& dependent) {
  for (api::Value owner : OwnersOf(dependent).elements()) {
    const OwnerGraph::Item* item = graph_.Find(std::string(owner["uid"].str()));
    if (item != nullptr && item->object->is_being_deleted()) {
      queue_.Add(std::string(owner["uid"].str()));
    }
  }
}

void GarbageCollector::OnGone(const api::ObjectPtr& object) {
  const std::string uid(object->uid());
  graph_.Remove(*object);
  const std::vector<std::string> dependents = graph_.Dependents(uid);
  if (!dependents.empty()) {
    if (gone_.size() >= kMaxGone) gone_.clear();
    gone_.insert(uid);
  }
  for (const std::string& dependent : dependents) {
    if (graph_.Find(dependent)->kind->kind == "ResourceClaim" && object->kind() == "Pod") {
      queue_.AddAfter(dependent, kClaimControllersTurn);
    } else {
      queue_.Add(dependent);
    }
  }
  for (api::Value owner : OwnersOf(*object).elements()) {
    queue_.Add(std::string(owner["uid"].str()));
  }
}

void GarbageCollector::Sync(const std::string& uid, Done done) {
  if (!AllSynced()) return done(Ok());
  const OwnerGraph::Decision decision = graph_.Decide(uid, gone_);
  const OwnerGraph::Item* found = graph_.Find(uid);
  if (found == nullptr) return done(Ok());
  const OwnerGraph::Item item = *found;
  if (!decision.unknown_owners.empty()) {
    return ConfirmOwners(uid, decision.unknown_owners, std::move(done));
  }
  using Action = OwnerGraph::Decision::Action;
  switch (decision.action) {
    case Action::kNothing:
      return done(Ok());
    case Action::kDelete:
      if (!decision.unblock_owners) return Delete(item, decision.propagation, std::move(done));
      return UnblockOwners(item, [this, item, propagation = decision.propagation,
                                  done = std::move(done)](Result<void> unblocked) {
        if (!unblocked.ok()) return done(std::move(unblocked));
        Delete(item, propagation, done);
      });
    case Action::kDropDeadOwners:
      return DropOwners(item, decision.uids, std::move(done));
    case Action::kRemoveForeground:
      return RemoveFinalizer(item, api::kForegroundFinalizer, std::move(done));
    case Action::kRemoveOrphan:
      return RemoveFinalizer(item, api::kOrphanFinalizer, std::move(done));
    case Action::kOrphanDependents: {
      // The owner is queued again by the last reply and by each dependent's event. Deciding looks
      // at all dependents, so that many are handled per decision.
      const std::size_t count = std::min(decision.uids.size(), kDependentsAtATime);
      auto open = std::make_shared<std::size_t>(count);
      auto first_error = std::make_shared<Result<void>>(Ok());
      auto again = lifetime_.Guard([this, uid, open, first_error, done](Result<void> result) {
        if (!result.ok() && first_error->ok()) *first_error = std::move(result);
        if (--*open > 0) return;
        queue_.Add(uid);
        done(std::move(*first_error));
      });
      for (std::size_t i = 0; i < count; ++i) {
        const OwnerGraph::Item* next = graph_.Find(decision.uids[i]);
        // A reply to an earlier one may have removed it.
        if (next == nullptr) {
          again(Ok());
        } else {
          DropOwners(OwnerGraph::Item(*next), {uid}, again);
        }
      }
      return;
    }
  }
}

struct GarbageCollector::Confirmation {
  std::string uid;
  std::vector<std::string> owners;
  std::size_t next = 0;
  // The owner references of the dependent, by the owner's UID; they belong to `object`.
  std::unordered_map<std::string_view, api::Value> references;
  OwnerGraph::Item item;
  bool found_gone = false;
  Done done;
};

void GarbageCollector::ConfirmOwners(const std::string& uid, std::vector<std::string> owners,
                                     Done done) {
  auto confirmation = std::make_shared<Confirmation>();
  confirmation->uid = uid;
  confirmation->owners = std::move(owners);
  confirmation->item = *graph_.Find(uid);
  confirmation->done = std::move(done);
  for (api::Value each : OwnersOf(*confirmation->item.object).elements()) {
    confirmation->references[each["uid"].str()] = each;
  }
  ConfirmNext(confirmation);
}

void GarbageCollector::ConfirmNext(const std::shared_ptr<Confirmation>& confirmation) {
  while (confirmation->next < confirmation->owners.size()) {
    const std::string& owner_uid = confirmation->owners[confirmation->next++];
    const api::Value reference = confirmation->references[owner_uid];
    const api::KindSchema* kind =
        FindServed(reference["apiVersion"].str(), reference["kind"].str());
    // The server does not serve this kind, so the owner may exist elsewhere: keep its dependents.
    if (kind == nullptr) continue;
    const api::Object& object = *confirmation->item.object;
    client::ResourceRef ref{kind, kind->namespaced ? std::string(object.namespace_()) : "",
                            std::string(reference["name"].str()), ""};
    return client_.Get(
        std::move(ref), lifetime_.Guard([this, confirmation, owner_uid](client::Reply reply) {
          if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
            return confirmation->done(*reply.error);
          }
          // A different UID means that the name was reused.
          if (!reply.ok() || reply.object->uid() != owner_uid) {
            if (gone_.size() >= kMaxGone) gone_.clear();
            gone_.insert(owner_uid);
            confirmation->found_gone = true;
          }
          // Replies may arrive immediately. Do not continue from here, or the stack would grow with
          // every owner.
          loop_.Post(lifetime_.Guard([this, confirmation] { ConfirmNext(confirmation); }));
        }));
  }
  if (confirmation->found_gone) queue_.Add(confirmation->uid);
  confirmation->done(Ok());
}

void GarbageCollector::RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer,
                                       Done done) {
  api::Draft draft(item.object->tree());
  api::RemoveFinalizer(draft["metadata"], finalizer);
  client_.Update(
      RefOf(item), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void GarbageCollector::DropOwners(const OwnerGraph::Item& item,
                                  const std::vector<std::string>& owners, Done done) {
  api::Draft draft(item.object->tree());
  api::Draft& metadata = draft["metadata"];
  if (api::Draft* references = metadata.Find("ownerReferences"); references != nullptr) {
    const std::unordered_set<std::string_view> dropped(owners.begin(), owners.end());
    std::erase_if(references->MutableElements(),
                  [&](api::Draft& reference) { return dropped.contains(reference["uid"].str()); });
    if (references->size() == 0) metadata.Remove("ownerReferences");
  }
  client_.Update(
      RefOf(item), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void GarbageCollector::UnblockOwners(const OwnerGraph::Item& item, Done done) {
  api::Draft draft(item.object->tree());
  if (api::Draft* references = draft["metadata"].Find("ownerReferences"); references != nullptr) {
    for (api::Draft& reference : references->MutableElements()) {
      reference["blockOwnerDeletion"] = false;
    }
  }
  client_.Update(
      RefOf(item), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void GarbageCollector::Delete(const OwnerGraph::Item& item, std::string_view propagation,
                              Done done) {
  client_.Delete(
      RefOf(item),
      {.propagation_policy = std::string(propagation),
       .precondition_uid = std::string(item.object->uid())},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

}  // namespace drakkar::controllers
