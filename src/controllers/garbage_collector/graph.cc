#include "controllers/garbage_collector/graph.h"

#include "api/meta/finalizers.h"
#include "base/exec/work_budget.h"

namespace drakkar::controllers {

namespace {

bool HasFinalizer(const api::Object& object, std::string_view finalizer) {
  return api::HasFinalizer(object["metadata"], finalizer);
}

}  // namespace

api::Value OwnersOf(const api::Object& object) {
  return object["metadata"]["ownerReferences"];
}

bool WaitsForDependents(const api::Object& object) {
  return object.is_being_deleted() && HasFinalizer(object, api::kForegroundFinalizer);
}

void OwnerGraph::Link(const std::string& uid, const api::Object& object) {
  for (api::Value owner : OwnersOf(object).elements()) {
    const std::string owner_uid(owner["uid"].str());
    dependents_[owner_uid].insert(uid);
    if (owner["blockOwnerDeletion"].boolean()) blocking_[owner_uid].insert(uid);
  }
}

void OwnerGraph::Unlink(const std::string& uid, const api::Object& object) {
  for (api::Value owner : OwnersOf(object).elements()) {
    for (auto* links : {&dependents_, &blocking_}) {
      const auto found = links->find(std::string(owner["uid"].str()));
      if (found == links->end()) continue;
      found->second.erase(uid);
      if (found->second.empty()) links->erase(found);
    }
  }
}

void OwnerGraph::Put(const api::KindSchema& kind, const api::ObjectPtr& object) {
  const std::string uid(object->uid());
  if (auto before = items_.find(uid); before != items_.end()) {
    // Most changes keep the owners.
    if (api::Equal(OwnersOf(*before->second.object), OwnersOf(*object))) {
      before->second = Item{&kind, object};
      return;
    }
    Unlink(uid, *before->second.object);
  }
  items_[uid] = Item{&kind, object};
  Link(uid, *object);
}

void OwnerGraph::Remove(const api::Object& object) {
  const std::string uid(object.uid());
  Unlink(uid, object);
  items_.erase(uid);
}

const OwnerGraph::Item* OwnerGraph::Find(const std::string& uid) const {
  auto found = items_.find(uid);
  return found == items_.end() ? nullptr : &found->second;
}

std::vector<std::string> OwnerGraph::Dependents(const std::string& uid) const {
  auto found = dependents_.find(uid);
  if (found == dependents_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

OwnerGraph::Decision OwnerGraph::Decide(const std::string& uid, const Uids& certainly_gone) const {
  using Action = Decision::Action;
  Decision decision;
  const Item* item = Find(uid);
  if (item == nullptr) return decision;
  const api::Object& object = *item->object;
  if (object.is_being_deleted()) {
    WorkBudget::Charge(1);
    if (HasFinalizer(object, api::kOrphanFinalizer)) {
      decision.uids = Dependents(uid);
      WorkBudget::Charge(static_cast<std::int64_t>(decision.uids.size()));
      decision.action = decision.uids.empty() ? Action::kRemoveOrphan : Action::kOrphanDependents;
    } else if (WaitsForDependents(object) && !blocking_.contains(uid)) {
      decision.action = Action::kRemoveForeground;
    }
    return decision;
  }
  WorkBudget::Charge(static_cast<std::int64_t>(OwnersOf(object).size()));
  std::size_t alive = 0, waiting = 0;
  std::vector<std::string> dead;
  for (api::Value owner : OwnersOf(object).elements()) {
    const std::string owner_uid(owner["uid"].str());
    const Item* found = Find(owner_uid);
    if (found != nullptr && WaitsForDependents(*found->object)) {
      ++waiting;
      dead.push_back(owner_uid);
    } else if (found != nullptr) {
      ++alive;
    } else if (certainly_gone.contains(owner_uid)) {
      dead.push_back(owner_uid);
    } else {
      decision.unknown_owners.push_back(owner_uid);
    }
  }
  if (!decision.unknown_owners.empty() || dead.empty()) return decision;
  if (alive > 0) {
    decision.action = Action::kDropDeadOwners;
    decision.uids = std::move(dead);
    return decision;
  }
  decision.action = Action::kDelete;
  const auto dependents = dependents_.find(uid);
  if (HasFinalizer(object, api::kOrphanFinalizer)) {
    decision.propagation = "Orphan";
  } else if (waiting > 0 && dependents != dependents_.end()) {
    // The owner waits for this one, which in turn waits for its dependents.
    decision.propagation = "Foreground";
    WorkBudget::Charge(static_cast<std::int64_t>(dependents->second.size()));
    for (const std::string& each : dependents->second) {
      decision.unblock_owners = decision.unblock_owners || WaitsForDependents(*Find(each)->object);
    }
  } else if (HasFinalizer(object, api::kForegroundFinalizer)) {
    decision.propagation = "Foreground";
  }
  return decision;
}

}  // namespace drakkar::controllers
