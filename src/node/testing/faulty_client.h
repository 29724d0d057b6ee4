#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::node {

// A client whose calls a test can make fail, and whose server it can take down.
class FaultyClient final : public client::Client {
 public:
  FaultyClient(EventLoop& loop, std::unique_ptr<client::Client> real);
  ~FaultyClient() override;

  // Called before each call with "get pods", "update pods/status" ...; a returned error becomes the
  // answer. If its message starts with "lost", the call reaches the server and only the answer is
  // lost.
  std::function<std::optional<Error>(const std::string& what)> fault;
  // Replaces the result of Get, for objects that our server would refuse to store.
  std::function<api::ObjectPtr(const api::ObjectPtr&)> instead;
  // Makes every call fail and every watch end.
  void SetDown(bool down);

  void Get(client::ResourceRef ref, client::ReplyCallback done) override;
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override;
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override;
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override;
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override;
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override;
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override;
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override;

 private:
  struct OpenWatch;
  class Handle;
  std::optional<Error> Fault(const char* verb, const client::ResourceRef& ref);
  // Runs `call` with the real server's answer, unless a fault replaces or drops it.
  void Guard(const char* verb, const client::ResourceRef& ref, client::ReplyCallback done,
             const std::function<void(client::ReplyCallback)>& call);

  EventLoop& loop_;
  std::unique_ptr<client::Client> real_;
  bool down_ = false;
  std::map<std::uint64_t, std::shared_ptr<OpenWatch>> watches_;
  std::uint64_t next_ = 1;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
