#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "base/container/indexed_map.h"
#include "storage/store.h"

namespace drakkar::apiserver {

enum class ChangeType { kAdded, kModified, kDeleted, kBookmark };

// One change of one object, as watchers see it.
struct Change {
  ChangeType type = ChangeType::kAdded;
  api::ObjectPtr object;    // for a deletion: the last state, with the revision of the deletion
  api::ObjectPtr previous;  // null when it was created
  storage::Revision revision = 0;
  std::size_t size_bytes = 0;  // of the object's JSON
};

// True if an object is selected by a watcher or list.
using Selection = std::function<bool(const api::Object&)>;

struct CacheWatchOptions {
  std::string namespace_;  // empty: all
  std::string name;        // empty: all
  Selection selection;     // empty: all
  storage::Revision after = 0;
  storage::Mark mark = storage::Mark::kDurable;
};

struct CacheWatchCallbacks {
  // Changes in order, already filtered by the selection (an object that leaves it is kDeleted).
  std::function<void(const std::vector<Change>& changes)> on_changes;
  // Nothing follows: the store failed (only with Mark::kDurable), or the cache was replaced
  // (kExpired: list again). May be null.
  std::function<void(const Error& why)> on_closed = {};
};

// The current objects of one resource and its recent changes, in memory. Every read is served from
// here.
//
// With Holds::kBytes it has only the encoded objects, which it shares with the store, and decodes
// one when it is asked for. That suits events: they are many, written once and seldom read.
//
// A watcher sees each change after its revision once, in order. Watchers with Mark::kDurable see a
// change only once it is durable.
//
// Bounds: keeps kMaxChanges recent changes, and no more than kMaxChangeBytes of them (with
// Holds::kBytes kMaxChangeBytesOfBytes); a watch from before them is rejected, and the client lists
// again. Bound to the API server's loop.
class WatchCache {
 public:
  static constexpr std::size_t kMaxChanges = 20'000;
  static constexpr std::size_t kMaxChangeBytes = std::size_t{32} << 20;
  static constexpr std::size_t kMaxChangeBytesOfBytes = std::size_t{4} << 20;

  enum class Holds { kObjects, kBytes };

  class Watcher {
   public:
    virtual ~Watcher() = default;
  };

  explicit WatchCache(Holds holds = Holds::kObjects);
  ~WatchCache();

  // "namespace/name", or "name" for cluster-scoped resources.
  api::ObjectPtr Find(const std::string& key) const;
  // Empty with Holds::kBytes: list the store instead.
  const IndexedMap<api::ObjectPtr>::Ordered& objects() const { return objects_.ordered(); }
  Holds holds() const { return holds_; }
  std::size_t size() const { return objects_.size() + encoded_.size(); }

  // An object of a cache with Holds::kBytes.
  struct Encoded {
    storage::Bytes bytes;
    storage::Revision revision = 0;
  };
  const Encoded* FindEncoded(const std::string& key) const;
  const std::unordered_map<std::string, Encoded>& encoded() const { return encoded_; }
  std::size_t encoded_bytes() const { return encoded_bytes_; }

  // Initial load: records no changes. `revision` is the store's revision of the load. `bytes` are
  // those of the object, in the store.
  void Load(const std::string& key, api::ObjectPtr object, const storage::Bytes& bytes);
  void FinishLoad(storage::Revision revision);

  // A change of a transaction that was just applied; revisions only rise.
  void Apply(const std::string& key, Change change);
  // Everything up to `revision` is durable.
  void AdvanceDurable(storage::Revision revision);
  // Nothing becomes durable any more: closes the watchers that wait for it.
  void CloseDurable(const Error& why);
  // Replaces the contents with those of the store at `revision`, by key, after changes were missed.
  // CloseAll must follow, or watchers would have a gap.
  struct Loaded {
    std::string key;
    api::ObjectPtr object;
    storage::Bytes bytes;
  };
  void Replace(std::vector<Loaded> objects, storage::Revision revision);
  void CloseAll(const Error& why);

  // Null if `after` is older than the kept changes (and not 0, which means "from now").
  std::unique_ptr<Watcher> StartWatch(CacheWatchOptions options, CacheWatchCallbacks callbacks);

  // For a caller that filters on behalf of others: every change from now on, once it has the mark,
  // in order. `readers` is what it counts for in watcher_count.
  std::unique_ptr<Watcher> StartFeed(std::shared_ptr<const std::size_t> readers, storage::Mark mark,
                                     CacheWatchCallbacks callbacks) const;
  // The kept changes that a watcher with these options has been given so far; `after` is not 0.
  std::vector<Change> Backlog(const CacheWatchOptions& options) const;
  // How a watcher sees a change; nullopt if the object was not and is not in its selection. Pure.
  static std::optional<ChangeType> TypeFor(const CacheWatchOptions& options, const Change& change);
  // The object to send for a change that TypeFor calls a deletion but that is none: its last state
  // in the selection, with the revision at which it left. A new object each time.
  static api::ObjectPtr LeavingObject(const Change& change);
  static bool IsLeaving(ChangeType seen, const Change& change) {
    return seen == ChangeType::kDeleted && change.type != ChangeType::kDeleted;
  }

  storage::Revision oldest_watchable() const { return forgotten_up_to_; }
  // The revision of the newest change or of the load: the objects have not changed since.
  storage::Revision last_change() const {
    return changes_.empty() ? forgotten_up_to_ : changes_.back().revision;
  }
  std::size_t watcher_count() const;
  std::size_t change_count() const { return changes_.size(); }
  std::size_t change_bytes() const { return change_bytes_; }
  std::size_t change_bytes_max() const {
    return holds_ == Holds::kBytes ? kMaxChangeBytesOfBytes : kMaxChangeBytes;
  }

 private:
  struct WatcherState;
  class WatcherHandle;

  void Deliver(storage::Mark mark, std::size_t first, std::size_t last);
  void Close(const Error& why, bool applied_too);
  void Put(const std::string& key, api::ObjectPtr object, storage::Bytes bytes);
  void Erase(const std::string& key);

  const Holds holds_;
  IndexedMap<api::ObjectPtr> objects_;
  std::unordered_map<std::string, Encoded> encoded_;  // never iterated to decide anything
  std::size_t encoded_bytes_ = 0;
  std::deque<Change> changes_;
  std::size_t change_bytes_ = 0;
  std::uint64_t first_index_ = 0;    // number of dropped changes: the index of changes_[0]
  std::uint64_t durable_index_ = 0;  // changes before it were delivered to durable watchers
  storage::Revision forgotten_up_to_ = 0;
  std::shared_ptr<std::list<WatcherState>> watchers_;
  int delivering_ = 0;  // nesting depth: watchers that end meanwhile are only marked
};

}  // namespace drakkar::apiserver
