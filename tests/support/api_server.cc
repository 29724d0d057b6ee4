#include "tests/support/api_server.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"

namespace drakkar::testing {
namespace {

std::pair<std::string, std::string> SplitKey(const std::string& key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string::npos) return {"", key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace

const api::KindSchema* KindNamed(std::string_view kind) {
  for (const api::KindSchema& each : api::AllKinds()) {
    if (each.kind == kind && each.storage_version) return &each;
  }
  return nullptr;
}

TestApiServer::TestApiServer(SeededLoop& loop, FeatureGates gates)
    : loop_(loop), gates_(std::move(gates)) {
  CrashAndRestart();
  Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}})");
}

TestApiServer::~TestApiServer() = default;

void TestApiServer::CrashAndRestart() {
  client_.reset();
  core_.reset();
  store_.reset();
  store_ = storage::OpenMemoryStore(loop_, disk_);
  core_ = std::make_unique<apiserver::Core>(apiserver::Core::Options{
      .loop = loop_, .random = loop_.random(), .store = *store_, .gates = gates_});
  core_->Start([](Result<void> ready) { EXPECT_TRUE(ready.ok()) << ready.error().message; });
  loop_.RunUntilIdle();
  client_ = NewClient("test");
}

std::unique_ptr<client::Client> TestApiServer::NewClient(std::string user) {
  return apiserver::MakeDirectClient(loop_, *core_, apiserver::UserInfo{.name = std::move(user)});
}

client::Reply TestApiServer::Wait(std::optional<client::Reply>& reply) {
  while (!reply && loop_.RunOne()) {
  }
  EXPECT_TRUE(reply.has_value()) << "the server did not answer";
  return reply ? std::move(*reply) : client::Reply{};
}

client::Reply TestApiServer::TryCreate(std::string_view manifest) {
  Result<api::TreePtr> tree = api::ParseJson(manifest);
  EXPECT_TRUE(tree.ok()) << manifest;
  const api::KindSchema* kind = KindNamed((*tree)->root()["kind"].str());
  std::string home((*tree)->root()["metadata"]["namespace"].str());
  if (kind->namespaced && home.empty()) home = "default";
  std::optional<client::Reply> reply;
  client_->Create({kind, home, "", ""}, *tree, {},
                  [&](client::Reply answer) { reply = std::move(answer); });
  return Wait(reply);
}

api::ObjectPtr TestApiServer::Create(std::string_view manifest) {
  client::Reply reply = TryCreate(manifest);
  EXPECT_TRUE(reply.ok()) << manifest << "\n" << (reply.error ? reply.error->message : "");
  return reply.ok() ? reply.object : nullptr;
}

api::ObjectPtr TestApiServer::Get(std::string_view kind, const std::string& key) {
  const api::KindSchema* schema = KindNamed(kind);
  return core_->Find(schema->group, schema->plural, key);
}

client::Reply TestApiServer::Delete(std::string_view kind, const std::string& key,
                                    client::DeleteOptions options) {
  auto [home, name] = SplitKey(key);
  std::optional<client::Reply> reply;
  client_->Delete({KindNamed(kind), home, name, ""}, std::move(options),
                  [&](client::Reply answer) { reply = std::move(answer); });
  return Wait(reply);
}

client::Reply TestApiServer::Update(std::string_view kind, const std::string& key,
                                    std::string subresource, api::TreePtr object) {
  auto [home, name] = SplitKey(key);
  std::optional<client::Reply> reply;
  client_->Update({KindNamed(kind), home, name, std::move(subresource)}, std::move(object), {},
                  [&](client::Reply answer) { reply = std::move(answer); });
  return Wait(reply);
}

}  // namespace drakkar::testing
