#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::testing {

// Loses requests that the test selects: they never reach the server, and the caller gets
// "connection closed". Holds others back until the test releases them, and hides watch events.
// Everything else goes to the wrapped client.
class FaultyClient final : public client::Client {
 public:
  // `verb` as in RBAC; `body` is null if there is none.
  using Picks = std::function<bool(std::string_view verb, const client::ResourceRef& ref,
                                   const api::TreePtr& body)>;

  FaultyClient(EventLoop& loop, client::Client& beneath) : loop_(loop), beneath_(beneath) {}

  Picks loses;  // requests to lose; null for none
  Picks holds;  // updates to hold back; null for none
  Picks lacks;  // lists of kinds that the server does not have; null for none
  // watch events to hide; null for none
  std::function<bool(const client::WatchEvent& event)> hides;
  // Sends the held requests in order.
  void LetGo() {
    for (auto& send : std::exchange(held_, {})) send();
  }
  // Answers creates of reviews instead of the server, which has none; null leaves it to the server.
  std::function<api::TreePtr(const client::ResourceRef& ref, const api::TreePtr& body)> answers;
  // What the server says it serves; if null, the wrapped client's answer.
  std::function<Result<client::ServedKinds>()> serves;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    if (Loses("get", ref, nullptr, done)) return;
    beneath_.Get(std::move(ref), std::move(done));
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    const bool is_lost = loses && loses("list", ref, nullptr);
    if (is_lost || (lacks && lacks("list", ref, nullptr))) {
      loop_.Post([is_lost, done = std::move(done)] {
        client::ListReply reply;
        reply.error = is_lost ? Unavailable("connection closed") : NotFound("no such resource");
        done(std::move(reply));
      });
      return;
    }
    beneath_.List(std::move(ref), std::move(options), std::move(done));
  }
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (Loses("create", ref, body, done)) return;
    if (api::TreePtr answer = answers ? answers(ref, body) : nullptr) {
      loop_.Post([answer = std::move(answer), done = std::move(done)] {
        client::Reply reply;
        reply.http_status = 201;
        reply.object = std::make_shared<const api::Object>(answer);
        done(std::move(reply));
      });
      return;
    }
    beneath_.Create(std::move(ref), std::move(body), std::move(options), std::move(done));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    if (Loses("update", ref, body, done)) return;
    if (holds && holds("update", ref, body)) {
      held_.push_back([this, ref = std::move(ref), body = std::move(body),
                       options = std::move(options),
                       done = std::move(done)] { beneath_.Update(ref, body, options, done); });
      return;
    }
    beneath_.Update(std::move(ref), std::move(body), std::move(options), std::move(done));
  }
  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override {
    if (Loses("patch", ref, nullptr, done)) return;
    beneath_.Patch(std::move(ref), type, std::move(body), std::move(options), std::move(done));
  }
  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override {
    if (Loses("delete", ref, nullptr, done)) return;
    beneath_.Delete(std::move(ref), std::move(options), std::move(done));
  }
  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override {
    if (Loses("deletecollection", ref, nullptr, done)) return;
    beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options), std::move(done));
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    callbacks.on_events =
        [this, on_events = std::move(callbacks.on_events)](std::vector<client::WatchEvent> events) {
          if (hides) std::erase_if(events, hides);
          if (!events.empty()) on_events(std::move(events));
        };
    return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
  }
  void Discover(std::function<void(Result<client::ServedKinds>)> done) override {
    if (!serves) return beneath_.Discover(std::move(done));
    loop_.Post([served = serves(), done = std::move(done)] { done(served); });
  }

 private:
  bool Loses(std::string_view verb, const client::ResourceRef& ref, const api::TreePtr& body,
             const client::ReplyCallback& done) {
    if (!loses || !loses(verb, ref, body)) return false;
    loop_.Post([done] {
      client::Reply reply;
      reply.error = Unavailable("connection closed");
      done(std::move(reply));
    });
    return true;
  }

  EventLoop& loop_;
  client::Client& beneath_;
  std::vector<std::function<void()>> held_;
};

}  // namespace drakkar::testing
