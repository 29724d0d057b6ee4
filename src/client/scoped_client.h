#pragma once

#include <memory>

#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::client {

// A client for one component. It forwards calls to the underlying client, and once it is destroyed
// with its component none of the component's callbacks runs. The underlying client must outlive it.
class ScopedClient final : public Client {
 public:
  explicit ScopedClient(Client& beneath) : beneath_(beneath) {}
  ScopedClient(const ScopedClient&) = delete;
  ScopedClient& operator=(const ScopedClient&) = delete;

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
  Client& beneath_;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
