#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/meta/object.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::controllers {

// metadata.ownerReferences.
api::Value OwnersOf(const api::Object& object);

// Who owns whom, by uid, and what follows from it: pure knowledge and decisions of the garbage
// collector. Its size is that of the objects that own or are owned.
class OwnerGraph {
 public:
  using Uids = std::unordered_set<std::string>;

  void Put(const api::KindSchema& kind, const api::ObjectPtr& object);
  void Remove(const api::Object& object);

  struct Item {
    const api::KindSchema* kind = nullptr;
    api::ObjectPtr object;
  };
  const Item* Find(const std::string& uid) const;
  std::vector<std::string> Dependents(const std::string& uid) const;

  struct Decision {
    enum class Action {
      kNothing,
      kDelete,            // every owner is gone
      kDropDeadOwners,    // some owners are gone: remove their references
      kRemoveForeground,  // being deleted in the foreground and nothing depends on it any more
      kDeleteDependents,  // being deleted in the foreground: its dependents first
      kOrphanDependents,  // take this owner out of its dependents' references
      kRemoveOrphan,
    };
    Action action = Action::kNothing;
    std::vector<std::string> uids;            // of dead owners, or of dependents
    std::vector<std::string> unknown_owners;  // uids to be confirmed as gone first
  };
  // `is_gone` is what is known for certain; an owner that is neither in the graph nor certainly
  // gone is reported in unknown_owners and nothing is deleted because of it.
  Decision Decide(const std::string& uid, const Uids& certainly_gone) const;

 private:
  std::unordered_map<std::string, Item> items_;
  std::unordered_map<std::string, Uids> dependents_;  // owner uid to dependents' uids
};

}  // namespace drakkar::controllers
