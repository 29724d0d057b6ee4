#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "client/client.h"
#include "storage/store.h"

namespace drakkar::simulation {

// Sees every durable change in the store and every write and watch of the clients, and reports what
// must never happen (design, section 7): a watch event that is missing, duplicated or out of order,
// a resource version that goes back, a write to someone else's object, a pod that is bound before
// its devices are ready.
class Referee {
 public:
  // The store has these changes, in whole revisions and in order, up to `up_to`.
  void OnStored(const std::vector<storage::WatchEvent>& events, storage::Revision up_to);
  // The store was compacted and cannot report earlier changes: what watchers saw before is not
  // checked.
  void Forget(storage::Revision up_to);
  storage::Revision up_to() const { return up_to_; }

  // A watch of a whole kind, without selectors, has shown these versions after `after`, and thereby
  // everything up to `up_to`.
  void OnWatched(std::string_view user, const api::KindSchema& kind, std::int64_t after,
                 std::vector<std::int64_t> versions, std::int64_t up_to);
  // A write that the server accepted. `object` is the old object, or else the written one; null if
  // neither is known. `selector` is that of a deletecollection.
  void OnWritten(std::string_view user, std::string_view verb, const client::ResourceRef& ref,
                 const api::ObjectPtr& object, std::string_view selector = {});

  // Checks the watches that can be checked by now.
  void CheckWatches();
  // Whether a pod with this UID was ever stored, as far as the referee knows; covers only durable
  // changes.
  bool HasBeenPod(std::string_view uid) const { return known_from_ > 0 || pods_.contains(uid); }

  std::vector<std::string> violations;

 private:
  struct Watched {
    std::string user;
    std::string kind;  // the prefix of its keys
    std::int64_t after;
    std::vector<std::int64_t> versions;
    std::int64_t up_to;
  };
  static std::string PrefixOf(const api::KindSchema& kind);
  // The pod's node was set: its devices must have had their binding conditions then (KEP-5007).
  void OnBound(api::Value pod);

  storage::Revision up_to_ = 0;
  storage::Revision known_from_ = 0;  // earlier changes are unknown
  std::map<std::string, std::vector<std::int64_t>>
      stored_;                                    // by prefix: the revisions that changed it
  std::vector<Watched> watched_;                  // not checked yet
  std::set<std::string, std::less<>> pods_;       // UIDs
  std::map<std::string, storage::Bytes> claims_;  // by "namespace/name": as last stored
};

}  // namespace drakkar::simulation
