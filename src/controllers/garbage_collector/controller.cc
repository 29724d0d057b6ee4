#include "controllers/garbage_collector/controller.h"

#include <algorithm>

#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::controllers {

namespace {

constexpr Logger kLog("garbage-collector");
constexpr std::size_t kMaxGone = 100'000;
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
  for (api::Value owner : OwnersOf(*object).elements()) {
    // An owner that waits for its dependents is checked again when one of them changes.
    const OwnerGraph::Item* item = graph_.Find(std::string(owner["uid"].str()));
    if (item != nullptr && item->object->is_being_deleted()) {
      queue_.Add(std::string(owner["uid"].str()));
    }
  }
  if (!OwnersOf(*object).empty() || object->is_being_deleted()) {
    queue_.Add(std::string(object->uid()));
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
    return ConfirmOwner(uid, decision.unknown_owners.front(), std::move(done));
  }
  using Action = OwnerGraph::Decision::Action;
  switch (decision.action) {
    case Action::kNothing:
      return done(Ok());
    case Action::kDelete:
      return Delete(item, std::move(done));
    case Action::kDropDeadOwners:
      return DropOwners(item, decision.uids, std::move(done));
    case Action::kRemoveForeground:
      return RemoveFinalizer(item, api::kForegroundFinalizer, std::move(done));
    case Action::kRemoveOrphan:
      return RemoveFinalizer(item, api::kOrphanFinalizer, std::move(done));
    case Action::kDeleteDependents:
    case Action::kOrphanDependents: {
      // The owner is queued again by each reply and by each dependent's event.
      const OwnerGraph::Item next = *graph_.Find(decision.uids.front());
      auto again = lifetime_.Guard([this, uid, done = std::move(done)](Result<void> result) {
        queue_.Add(uid);
        done(std::move(result));
      });
      if (decision.action == Action::kDeleteDependents) return Delete(next, std::move(again));
      return DropOwners(next, {uid}, std::move(again));
    }
  }
}

void GarbageCollector::ConfirmOwner(const std::string& uid, const std::string& owner_uid,
                                    Done done) {
  const OwnerGraph::Item item = *graph_.Find(uid);
  api::Value reference;
  for (api::Value each : OwnersOf(*item.object).elements()) {
    if (each["uid"].str() == owner_uid) reference = each;
  }
  auto owner_is_gone = [this, uid, owner_uid] {
    if (gone_.size() >= kMaxGone) gone_.clear();
    gone_.insert(owner_uid);
    queue_.Add(uid);
  };
  const api::KindSchema* kind = FindServed(reference["apiVersion"].str(), reference["kind"].str());
  // The server does not serve this kind, so the owner may exist elsewhere: keep its dependents.
  if (kind == nullptr) return done(Ok());
  client::ResourceRef ref{kind, kind->namespaced ? std::string(item.object->namespace_()) : "",
                          std::string(reference["name"].str()), ""};
  client_.Get(std::move(ref), lifetime_.Guard([owner_uid, owner_is_gone,
                                               done = std::move(done)](client::Reply reply) {
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
    // A different UID means that the name was reused.
    if (!reply.ok() || reply.object->uid() != owner_uid) owner_is_gone();
    done(Ok());
  }));
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
    for (std::size_t i = references->size(); i-- > 0;) {
      const std::string uid(references->at(i)["uid"].str());
      if (std::find(owners.begin(), owners.end(), uid) != owners.end()) references->RemoveAt(i);
    }
    if (references->size() == 0) metadata.Remove("ownerReferences");
  }
  client_.Update(
      RefOf(item), draft.Freeze(), {},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

void GarbageCollector::Delete(const OwnerGraph::Item& item, Done done) {
  client_.Delete(
      RefOf(item),
      {.propagation_policy = "Background", .precondition_uid = std::string(item.object->uid())},
      lifetime_.Guard([done = std::move(done)](client::Reply reply) { done(Accept(reply)); }));
}

}  // namespace drakkar::controllers
