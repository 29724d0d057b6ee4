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
// Whether the object is in foreground deletion: it goes once no dependent blocks that.
bool WaitsForDependents(const api::Object& object);

// The ownership graph, by UID, and the decisions that follow from it. Pure: no I/O. As large as the
// set of objects that own or are owned.
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
      kDelete,            // every owner is gone or waits for its dependents
      kDropDeadOwners,    // some are, others stay: remove the references to the former
      kRemoveForeground,  // foreground deletion, and no dependent blocks it any more
      kOrphanDependents,  // remove this owner from its dependents' references
      kRemoveOrphan,
    };
    Action action = Action::kNothing;
    std::vector<std::string> uids;                // of dead owners, or of dependents
    std::vector<std::string> unknown_owners;      // UIDs to look up on the server first
    std::string_view propagation = "Background";  // for kDelete
    // For kDelete: the object is in a circle of owners, of which one waits for it. It must not
    // block the deletion of its own owners any more.
    bool unblock_owners = false;
  };
  // `certainly_gone` holds the UIDs that are known to be gone. An owner that is neither in the
  // graph nor known to be gone is reported in unknown_owners, and nothing is deleted because of it.
  Decision Decide(const std::string& uid, const Uids& certainly_gone) const;

 private:
  std::unordered_map<std::string, Item> items_;
  void Link(const std::string& uid, const api::Object& object);
  void Unlink(const std::string& uid, const api::Object& object);

  // UIDs of dependents by that of their owner: all, and those that block its foreground deletion.
  std::unordered_map<std::string, Uids> dependents_;
  std::unordered_map<std::string, Uids> blocking_;
};

}  // namespace drakkar::controllers
