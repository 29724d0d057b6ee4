#pragma once

#include "client/client.h"

namespace drakkar::client {

// Never answers. For a scheduler whose decisions are not carried out, and as a base for tests that
// answer some calls.
class SilentClient : public Client {
 public:
  void Get(ResourceRef, ReplyCallback) override {}
  void List(ResourceRef, ListOptions, std::function<void(ListReply)>) override {}
  void Create(ResourceRef, api::TreePtr, WriteOptions, ReplyCallback) override {}
  void Update(ResourceRef, api::TreePtr, WriteOptions, ReplyCallback) override {}
  void Patch(ResourceRef, PatchType, std::string, WriteOptions, ReplyCallback) override {}
  void Delete(ResourceRef, DeleteOptions, ReplyCallback) override {}
  void DeleteCollection(ResourceRef, ListOptions, DeleteOptions, ReplyCallback) override {}
  std::unique_ptr<WatchHandle> Watch(ResourceRef, WatchOptions, WatchCallbacks) override {
    return nullptr;
  }
};

}  // namespace drakkar::client
