#include "controllers/garbage_collector/controller.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

constexpr std::size_t kMaxGone = 100'000;
// A pod's claims are released and deleted by the claim controller at once; only what it leaves, for
// whatever reason, is ours.
constexpr Duration kClaimControllersTurn = std::chrono::seconds(1);

bool CanBeCollected(const api::KindSchema& kind) {
  auto has = [&](std::string_view verb) {
    return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
  };
  // Events own nothing and expire by themselves.
  return kind.storage_version && has("list") && has("watch") && has("delete") &&
         kind.kind != "Event";
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
      client_(client),
      queue_(loop, random, {"garbage-collector"},
             [this](const std::string& uid, Done done) { Sync(uid, std::move(done)); }) {
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (!CanBeCollected(kind)) continue;
    const auto found = std::find_if(shared.begin(), shared.end(),
                                    [&](const auto* each) { return &each->kind() == &kind; });
    if (found != shared.end()) {
      informers_.push_back(*found);
    } else {
      own_.push_back(std::make_unique<client::Informer>(
          loop, random, client, client::Informer::Options{.collection = {&kind, "", "", ""}}));
      informers_.push_back(own_.back().get());
    }
    informers_.back()->AddHandlers(
        {.on_add = [this, &kind](const api::ObjectPtr& object) { OnObject(kind, nullptr, object); },
         .on_update =
             [this, &kind](const api::ObjectPtr& before, const api::ObjectPtr& object) {
               OnObject(kind, before, object);
             },
         .on_delete = [this](const api::ObjectPtr& object) { OnGone(object); }});
  }
}

GarbageCollector::~GarbageCollector() {
  *alive_ = false;
}

void GarbageCollector::Start() {
  for (client::Informer* informer : informers_) {
    informer->OnSynced([this, alive = alive_] {
      if (!*alive || !AllSynced()) return;
      // What was left behind before we started.
      for (const client::Informer* each : informers_) {
        for (const auto& [name, object] : each->objects()) {
          if (!object->root()["metadata"]["ownerReferences"].empty() ||
              object->is_being_deleted()) {
            queue_.Add(std::string(object->uid()));
          }
        }
      }
    });
  }
  for (auto& informer : own_) informer->Start();
}

bool GarbageCollector::AllSynced() {
  all_synced_ = all_synced_ || std::all_of(informers_.begin(), informers_.end(),
                                           [](const auto* each) { return each->has_synced(); });
  return all_synced_;
}

void GarbageCollector::OnObject(const api::KindSchema& kind, const api::ObjectPtr& before,
                                const api::ObjectPtr& object) {
  graph_.Put(kind, object);
  // Nearly every change touches nothing that a decision looks at.
  if (before != nullptr && !object->is_being_deleted() && !before->is_being_deleted() &&
      api::Equal(before->root()["metadata"]["ownerReferences"],
                 object->root()["metadata"]["ownerReferences"])) {
    return;
  }
  for (api::Value owner : object->root()["metadata"]["ownerReferences"].elements()) {
    // An owner that waits for its dependents hears that one of them changed.
    const OwnerGraph::Item* item = graph_.Find(std::string(owner["uid"].str()));
    if (item != nullptr && item->object->is_being_deleted()) {
      queue_.Add(std::string(owner["uid"].str()));
    }
  }
  if (!object->root()["metadata"]["ownerReferences"].empty() || object->is_being_deleted()) {
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
  for (api::Value owner : object->root()["metadata"]["ownerReferences"].elements()) {
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
    case Action::kNothing: return done(Ok());
    case Action::kDelete: return Delete(item, std::move(done));
    case Action::kDropDeadOwners: return DropOwners(item, decision.uids, std::move(done));
    case Action::kRemoveForeground:
      return RemoveFinalizer(item, "foregroundDeletion", std::move(done));
    case Action::kRemoveOrphan: return RemoveFinalizer(item, "orphan", std::move(done));
    case Action::kDeleteDependents:
    case Action::kOrphanDependents: {
      // Each answer, and each dependent's own event, brings the owner back.
      const OwnerGraph::Item next = *graph_.Find(decision.uids.front());
      auto again = [this, alive = alive_, uid, done = std::move(done)](Result<void> result) {
        if (!*alive) return;
        queue_.Add(uid);
        done(std::move(result));
      };
      if (decision.action == Action::kDeleteDependents) return Delete(next, std::move(again));
      return DropOwners(next, {uid}, std::move(again));
    }
  }
}

void GarbageCollector::ConfirmOwner(const std::string& uid, const std::string& owner_uid,
                                    Done done) {
  const OwnerGraph::Item item = *graph_.Find(uid);
  api::Value reference;
  for (api::Value each : item.object->root()["metadata"]["ownerReferences"].elements()) {
    if (each["uid"].str() == owner_uid) reference = each;
  }
  auto owner_is_gone = [this, uid, owner_uid] {
    if (gone_.size() >= kMaxGone) gone_.clear();
    gone_.insert(owner_uid);
    queue_.Add(uid);
  };
  const api::KindSchema* kind =
      api::FindKindByApiVersion(reference["apiVersion"].str(), reference["kind"].str());
  // A kind we do not serve may exist elsewhere: leave its dependents alone.
  if (kind == nullptr) return done(Ok());
  client::ResourceRef ref{kind, kind->namespaced ? std::string(item.object->namespace_()) : "",
                          std::string(reference["name"].str()), ""};
  client_.Get(std::move(ref), [alive = alive_, owner_uid, owner_is_gone,
                               done = std::move(done)](client::Reply reply) {
    if (!*alive) return;
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
    // Another uid: the name was given to another object.
    if (!reply.ok() || reply.object->uid() != owner_uid) owner_is_gone();
    done(Ok());
  });
}

void GarbageCollector::RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer,
                                       Done done) {
  api::Draft draft(item.object->tree());
  api::Draft& metadata = draft["metadata"];
  if (api::Draft* finalizers = metadata.Find("finalizers"); finalizers != nullptr) {
    for (std::size_t i = finalizers->size(); i-- > 0;) {
      if (finalizers->at(i).str() == finalizer) finalizers->RemoveAt(i);
    }
    if (finalizers->size() == 0) metadata.Remove("finalizers");
  }
  client_.Update(RefOf(item), draft.Freeze(), {},
                 [alive = alive_, done = std::move(done)](client::Reply reply) {
                   if (*alive) done(Accept(reply));
                 });
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
  client_.Update(RefOf(item), draft.Freeze(), {},
                 [alive = alive_, done = std::move(done)](client::Reply reply) {
                   if (*alive) done(Accept(reply));
                 });
}

void GarbageCollector::Delete(const OwnerGraph::Item& item, Done done) {
  client_.Delete(RefOf(item),
                 {.propagation_policy = "Background",
                  .precondition_uid = std::string(item.object->uid())},
                 [alive = alive_, done = std::move(done)](client::Reply reply) {
                   if (*alive) done(Accept(reply));
                 });
}

}  // namespace drakkar::controllers
