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

// A local copy of a collection, kept current by a list and then a watch. After a failure it backs
// off and watches again; if the version has expired it lists again and reports the differences.
// Objects are shared with the server's cache if that is in the same process.
//
// Handlers see each object's versions in order, each at most once, and deletions with the last
// known version. Nothing is reported twice across a relist. Loop-bound. As large as the collection.
class Informer {
 public:
  struct Options {
    ResourceRef collection;
    std::string label_selector;
    std::string field_selector;
    // If the server does not know the kind, the collection counts as empty and synced. The server
    // is asked again every kMissingPause.
    bool may_be_missing = false;
  };
  static constexpr Duration kMissingPause = std::chrono::minutes(1);
  Informer(EventLoop& loop, Random& random, Client& client, Options options);
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Before Start only.
  void AddHandlers(InformerHandlers handlers);
  void Start();

  // True after the first list, once its objects have been reported.
  bool has_synced() const { return synced_; }
  // Runs once, when has_synced becomes true; if it already is, in the next turn of the loop.
  void OnSynced(std::function<void()> callback);

  // Null if there is none. `qualified_name` is "namespace/name" or "name".
  api::ObjectPtr Find(std::string_view qualified_name) const;
  const IndexedMap<api::ObjectPtr>::Ordered& objects() const { return objects_.ordered(); }
  const api::KindSchema& kind() const { return *options_.collection.kind; }
  // The version of the copy; never goes back.
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
  std::uint64_t generation_ = 0;  // of the list in flight; answers to older ones are dropped
  std::vector<std::function<void()>> synced_callbacks_;
  std::unique_ptr<WatchHandle> watch_;
  TimerHandle retry_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
