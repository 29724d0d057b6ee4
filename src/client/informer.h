#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/container/indexed_map.h"
#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::client {

struct InformerHandlers {
  std::function<void(const api::ObjectPtr& object)> on_add;
  std::function<void(const api::ObjectPtr& before, const api::ObjectPtr& after)> on_update;
  std::function<void(const api::ObjectPtr& last)> on_delete;
};

// A local, current copy of a collection: one list, then a watch, and again after a failure (with
// backoff) or when the server has forgotten the version (a new list, reported as the differences).
// Objects are shared with the server's cache where that is in the same process.
//
// Guarantees: handlers see each object's versions in order, each at most once, deletions included
// (with the last version known); nothing is reported twice across a relist.
// Loop-bound. Its size is the collection's.
class Informer {
 public:
  struct Options {
    ResourceRef collection;
    std::string label_selector;
    std::string field_selector;
    // A server that does not know the kind has no objects of it: that counts as a list, and it is
    // asked again every kMissingPause.
    bool may_be_missing = false;
  };
  static constexpr Duration kMissingPause = std::chrono::minutes(1);
  Informer(EventLoop& loop, Random& random, Client& client, Options options);
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Before Start only.
  void AddHandlers(InformerHandlers handlers);
  void Start();

  // True after the first list; its objects have been reported by then.
  bool has_synced() const { return synced_; }
  // Runs once, when has_synced becomes true (at the next turn of the loop if it already is).
  void OnSynced(std::function<void()> callback);

  // Null if there is none. `qualified_name` is "namespace/name" or "name".
  api::ObjectPtr Find(std::string_view qualified_name) const;
  const IndexedMap<api::ObjectPtr>::Ordered& objects() const { return objects_.ordered(); }
  const api::KindSchema& kind() const { return *options_.collection.kind; }
  // Where the copy is; grows.
  std::int64_t resource_version() const { return resource_version_; }

 private:
  void List();
  void OnListed(std::uint64_t generation, ListReply reply);
  void TakeOver(ListReply reply);
  void StartWatch();
  void OnEvents(std::vector<WatchEvent> events);
  void OnClosed(Error error);
  void RetryLater(void (Informer::*step)());
  void Put(api::ObjectPtr object);
  void Erase(std::string_view qualified_name);

  EventLoop& loop_;
  Client& client_;
  const Options options_;
  std::vector<InformerHandlers> handlers_;

  IndexedMap<api::ObjectPtr> objects_;
  std::int64_t resource_version_ = 0;
  bool synced_ = false;
  Backoff backoff_;
  std::uint64_t generation_ = 0;  // of the list under way: a late answer of an older one is dropped
  std::vector<std::function<void()>> synced_callbacks_;
  std::unique_ptr<WatchHandle> watch_;
  TimerHandle retry_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
