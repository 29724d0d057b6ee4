#include "client/scoped_client.h"

#include <utility>

namespace drakkar::client {

ReplyCallback ScopedClient::Guard(ReplyCallback done) const {
  return [alive = alive_, done = std::move(done)](Reply reply) {
    if (*alive) done(std::move(reply));
  };
}

void ScopedClient::Get(ResourceRef ref, ReplyCallback done) {
  beneath_.Get(std::move(ref), Guard(std::move(done)));
}

void ScopedClient::List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) {
  beneath_.List(std::move(ref), std::move(options),
                [alive = alive_, done = std::move(done)](ListReply reply) {
                  if (*alive) done(std::move(reply));
                });
}

void ScopedClient::Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
                          ReplyCallback done) {
  beneath_.Create(std::move(ref), std::move(body), std::move(options), Guard(std::move(done)));
}

void ScopedClient::Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
                          ReplyCallback done) {
  beneath_.Update(std::move(ref), std::move(body), std::move(options), Guard(std::move(done)));
}

void ScopedClient::Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
                         ReplyCallback done) {
  beneath_.Patch(std::move(ref), type, std::move(body), std::move(options), Guard(std::move(done)));
}

void ScopedClient::Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) {
  beneath_.Delete(std::move(ref), std::move(options), Guard(std::move(done)));
}

void ScopedClient::DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                                    ReplyCallback done) {
  beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options),
                            Guard(std::move(done)));
}

std::unique_ptr<WatchHandle> ScopedClient::Watch(ResourceRef ref, WatchOptions options,
                                                 WatchCallbacks callbacks) {
  return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
}

void ScopedClient::Discover(std::function<void(Result<ServedKinds>)> done) {
  beneath_.Discover([alive = alive_, done = std::move(done)](Result<ServedKinds> served) {
    if (*alive) done(std::move(served));
  });
}

}  // namespace drakkar::client
