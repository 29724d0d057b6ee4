#include "client/scoped_client.h"

#include <utility>

namespace drakkar::client {

void ScopedClient::Get(ResourceRef ref, ReplyCallback done) {
  beneath_.Get(std::move(ref), lifetime_.Guard(std::move(done)));
}

void ScopedClient::List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) {
  beneath_.List(std::move(ref), std::move(options), lifetime_.Guard(std::move(done)));
}

void ScopedClient::Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
                          ReplyCallback done) {
  beneath_.Create(std::move(ref), std::move(body), std::move(options),
                  lifetime_.Guard(std::move(done)));
}

void ScopedClient::Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
                          ReplyCallback done) {
  beneath_.Update(std::move(ref), std::move(body), std::move(options),
                  lifetime_.Guard(std::move(done)));
}

void ScopedClient::Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
                         ReplyCallback done) {
  beneath_.Patch(std::move(ref), type, std::move(body), std::move(options),
                 lifetime_.Guard(std::move(done)));
}

void ScopedClient::Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) {
  beneath_.Delete(std::move(ref), std::move(options), lifetime_.Guard(std::move(done)));
}

void ScopedClient::DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                                    ReplyCallback done) {
  beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options),
                            lifetime_.Guard(std::move(done)));
}

std::unique_ptr<WatchHandle> ScopedClient::Watch(ResourceRef ref, WatchOptions options,
                                                 WatchCallbacks callbacks) {
  return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
}

void ScopedClient::Discover(std::function<void(Result<ServedKinds>)> done) {
  beneath_.Discover(lifetime_.Guard(std::move(done)));
}

}  // namespace drakkar::client
