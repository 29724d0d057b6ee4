#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"

namespace drakkar::client {

// A client for many components of one kind in one process, such as a thousand simulated nodes. Each
// of them lists and watches its own part of a few collections ("pods of node 17"). One watch of the
// whole collection serves them all; everything else is passed to the underlying client.
//
// To the components it is an ordinary client: a watch continues where the list ended, or ends with
// kExpired. Loop-bound; keeps each shared collection once.
class SharedWatches final : public Client {
 public:
  // `beneath` must outlive this object.
  SharedWatches(EventLoop& loop, Random& random, Client& beneath);
  ~SharedWatches() override;

  // Lists and watches of this kind over all namespaces are shared if their field selector has
  // `field`=VALUE; with an empty field, those without a selector. Starts the watch.
  void Share(const api::KindSchema* kind, std::string field);

  void Get(ResourceRef ref, ReplyCallback done) override;
  void List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) override;
  void Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override;
  void Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override;
  void Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
             ReplyCallback done) override;
  void Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) override;
  void DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                        ReplyCallback done) override;
  std::unique_ptr<WatchHandle> Watch(ResourceRef ref, WatchOptions options,
                                     WatchCallbacks callbacks) override;
  void Discover(std::function<void(Result<ServedKinds>)> done) override;

 private:
  struct Collection;
  struct Subscription;
  class Handle;
  using Selector = std::vector<std::pair<std::string, std::string>>;  // field, value

  // The shared collection and the value that selects its part; null: not shared.
  Collection* Find(const ResourceRef& ref, const std::string& label_selector,
                   const std::string& field_selector, Selector& rest, std::string& value);
  void Deliver(Collection& collection, const std::string& value, EventType type,
               const api::ObjectPtr& object);

  EventLoop& loop_;
  Random& random_;
  Client& beneath_;
  std::vector<std::unique_ptr<Collection>> collections_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
