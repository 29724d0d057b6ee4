#include "controllers/workload/owned_index.h"

#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

const OwnedIndex::Objects kNone;

}  // namespace

OwnedIndex::OwnedIndex(client::Informer& objects) : informer_(objects) {
  objects.AddHandlers({.on_add = [this](const api::ObjectPtr& object) { Put(object); },
                       .on_update =
                           [this](const api::ObjectPtr& before, const api::ObjectPtr& after) {
                             if (ControllerOf(*before)["uid"].str() !=
                                 ControllerOf(*after)["uid"].str()) {
                               Remove(before);
                             }
                             Put(after);
                           },
                       .on_delete = [this](const api::ObjectPtr& object) { Remove(object); }});
}

void OwnedIndex::Put(const api::ObjectPtr& object) {
  const std::string_view owner = ControllerOf(*object)["uid"].str();
  Groups& groups = owner.empty() ? orphans_ : by_owner_;
  const std::string_view group = owner.empty() ? object->namespace_() : owner;
  auto found = groups.find(group);
  if (found == groups.end()) found = groups.try_emplace(std::string(group)).first;
  found->second[object->qualified_name()] = object;
}

void OwnedIndex::Remove(const api::ObjectPtr& object) {
  const std::string_view owner = ControllerOf(*object)["uid"].str();
  if (owner.empty()) {
    Erase(orphans_, object->namespace_(), object->qualified_name());
  } else {
    Erase(by_owner_, owner, object->qualified_name());
  }
}

void OwnedIndex::Erase(Groups& groups, std::string_view group, std::string_view name) {
  auto found = groups.find(group);
  if (found == groups.end()) return;
  found->second.Erase(name);
  if (found->second.size() == 0) groups.erase(found);
}

const OwnedIndex::Objects& OwnedIndex::Of(std::string_view owner_uid) const {
  auto found = by_owner_.find(owner_uid);
  return found == by_owner_.end() ? kNone : found->second.ordered();
}

const OwnedIndex::Objects& OwnedIndex::Orphans(std::string_view namespace_) const {
  auto found = orphans_.find(namespace_);
  return found == orphans_.end() ? kNone : found->second.ordered();
}

}  // namespace drakkar::controllers
