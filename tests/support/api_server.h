#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/direct/direct_client.h"
#include "apiserver/rest/core.h"
#include "base/testing/seeded_loop.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::testing {

// An API server with an in-memory store, on a seeded loop that the test owns, and a client for the
// test. The namespace "default" exists.
class TestApiServer {
 public:
  explicit TestApiServer(SeededLoop& loop, FeatureGates gates = FeatureGates());
  ~TestApiServer();

  // Loses what was not durable and reloads the rest; existing clients stop working.
  void CrashAndRestart();

  apiserver::Core& core() { return *core_; }
  std::unique_ptr<client::Client> NewClient(std::string user);
  client::Client& client() { return *client_; }
  storage::MemoryDisk& disk() { return disk_; }

  // Calls for the test: each runs the loop until the response arrives. `manifest` is JSON with
  // apiVersion and kind. Failures are reported through gtest and return null.
  api::ObjectPtr Create(std::string_view manifest);
  client::Reply TryCreate(std::string_view manifest);
  api::ObjectPtr Get(std::string_view kind, const std::string& key);  // null if there is none
  client::Reply Delete(std::string_view kind, const std::string& key,
                       client::DeleteOptions options = {});
  client::Reply Update(std::string_view kind, const std::string& key, std::string subresource,
                       api::TreePtr object);

 private:
  client::Reply Wait(std::optional<client::Reply>& reply);

  SeededLoop& loop_;
  FeatureGates gates_;
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<apiserver::Core> core_;
  std::unique_ptr<client::Client> client_;
};

// The storage version of a kind by its name, "ResourceClaim".
const api::KindSchema* KindNamed(std::string_view kind);

}  // namespace drakkar::testing
