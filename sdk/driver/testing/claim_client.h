#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/exec/event_loop.h"
#include "client/silent_client.h"

namespace drakkar::driver {

// An API server that has only claims, for driver tests. Get answers from the loop (or when the test
// releases it), or fails while the server is unreachable; no other request is answered.
class ClaimClient : public client::SilentClient {
 public:
  explicit ClaimClient(EventLoop& loop) : loop_(loop) {}

  // Stores the whole claim, given as JSON, under its own name.
  void PutJson(std::string_view json) {
    auto claim = std::make_shared<api::Object>(*api::ParseJson(json));
    std::string key = Key(claim->namespace_(), claim->name());
    claims_[std::move(key)] = std::move(claim);
  }
  void Erase(std::string_view namespace_name, std::string_view name) {
    claims_.erase(Key(namespace_name, name));
  }

  bool reachable = true;
  // Holds responses back until Release; they show the state at the time of the request.
  bool slow = false;
  void Release() {
    slow = false;
    for (auto& answer : std::exchange(kept_back_, {})) loop_.Post(std::move(answer));
  }
  std::string served_version = "v1";
  std::vector<std::string> versions_asked;

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    versions_asked.emplace_back(ref.kind->version);
    client::Reply reply;
    const auto found = claims_.find(Key(ref.namespace_, ref.name));
    if (!reachable) {
      reply.error = Unavailable("connection refused");
    } else if (found == claims_.end() || ref.kind->version != served_version) {
      reply.error = NotFound("not there");
    } else {
      reply.object = found->second;
    }
    auto answer = [reply = std::move(reply), done = std::move(done)] { done(reply); };
    if (slow) return kept_back_.push_back(std::move(answer));
    loop_.Post(std::move(answer));
  }

 private:
  static std::string Key(std::string_view namespace_name, std::string_view name) {
    return std::string(namespace_name) + "/" + std::string(name);
  }

  EventLoop& loop_;
  std::vector<std::function<void()>> kept_back_;
  std::map<std::string, api::ObjectPtr> claims_;
};

}  // namespace drakkar::driver
