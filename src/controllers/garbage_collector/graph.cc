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

void OwnerGraph::Put(const api::KindSchema& kind, const api::ObjectPtr& object) {
  const std::string uid(object->uid());
  if (auto before = items_.find(uid); before != items_.end()) {
    // Most changes keep the owners.
    if (api::Equal(OwnersOf(*before->second.object), OwnersOf(*object))) {
      before->second = Item{&kind, object};
      return;
    }
    for (api::Value owner : OwnersOf(*before->second.object).elements()) {
      auto found = dependents_.find(std::string(owner["uid"].str()));
      if (found == dependents_.end()) continue;
      found->second.erase(uid);
      if (found->second.empty()) dependents_.erase(found);
    }
  }
  items_[uid] = Item{&kind, object};
  for (api::Value owner : OwnersOf(*object).elements()) {
    dependents_[std::string(owner["uid"].str())].insert(uid);
  }
}

void OwnerGraph::Remove(const api::Object& object) {
  const std::string uid(object.uid());
  for (api::Value owner : OwnersOf(object).elements()) {
    auto found = dependents_.find(std::string(owner["uid"].str()));
    if (found == dependents_.end()) continue;
    found->second.erase(uid);
    if (found->second.empty()) dependents_.erase(found);
  }
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
  // A decision looks at every owner and dependent.
  const auto dependents = dependents_.find(uid);
  WorkBudget::Charge(OwnersOf(object).size() +
                     (dependents == dependents_.end() ? 0 : dependents->second.size()));
  if (object.is_being_deleted()) {
    if (HasFinalizer(object, api::kOrphanFinalizer)) {
      decision.uids = Dependents(uid);
      decision.action = decision.uids.empty() ? Action::kRemoveOrphan : Action::kOrphanDependents;
    } else if (HasFinalizer(object, api::kForegroundFinalizer)) {
      for (const std::string& dependent : Dependents(uid)) {
        if (!Find(dependent)->object->is_being_deleted()) decision.uids.push_back(dependent);
      }
      if (Dependents(uid).empty()) {
        decision.action = Action::kRemoveForeground;
      } else if (!decision.uids.empty()) {
        decision.action = Action::kDeleteDependents;
      }
    }
    return decision;
  }
  std::size_t alive = 0, waiting = 0;
  std::vector<std::string> gone;
  for (api::Value owner : OwnersOf(object).elements()) {
    const std::string owner_uid(owner["uid"].str());
    const Item* found = Find(owner_uid);
    if (found != nullptr) {
      // An owner in foreground deletion, which waits for its dependents, counts as being deleted.
      const bool going = found->object->is_being_deleted() &&
                         HasFinalizer(*found->object, api::kForegroundFinalizer);
      ++(going ? waiting : alive);
    } else if (certainly_gone.contains(owner_uid)) {
      gone.push_back(owner_uid);
    } else {
      decision.unknown_owners.push_back(owner_uid);
    }
  }
  if (!decision.unknown_owners.empty()) return decision;
  if (gone.empty() && waiting == 0) return decision;
  if (alive > 0) {
    if (gone.empty()) return decision;
    decision.action = Action::kDropDeadOwners;
    decision.uids = std::move(gone);
  } else {
    decision.action = Action::kDelete;
  }
  return decision;
}

}  // namespace drakkar::controllers
