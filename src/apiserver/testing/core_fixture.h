#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/rest/core.h"
#include "base/testing/seeded_loop.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::apiserver {

inline UserInfo AdminUser() {
  return {.name = "admin", .groups = {"system:masters"}};
}
inline UserInfo NodeUser(std::string_view node) {
  return {.name = "system:node:" + std::string(node),
          .groups = {"system:nodes", "system:authenticated"}};
}
inline UserInfo PlainUser(std::string name, std::vector<std::string> groups = {}) {
  groups.push_back("system:authenticated");
  return {.name = std::move(name), .groups = std::move(groups)};
}

// A core on an in-memory store, with the test's authorizer and admission steps. Requests are made
// as any user. Namespaces "default" and "kube-node-lease" exist.
class CoreFixture : public ::testing::Test {
 protected:
  void StartCore(Authorizer* authorizer, std::vector<std::unique_ptr<AdmissionStep>> admission = {},
                 RemoteAdmission* webhooks = nullptr, RemoteConversion* conversion = nullptr) {
    store_ = storage::OpenMemoryStore(loop_, disk_);
    core_ = std::make_unique<Core>(Core::Options{.loop = loop_,
                                                 .random = loop_.random(),
                                                 .store = *store_,
                                                 .gates = gates_,
                                                 .authorizer = authorizer,
                                                 .admission = std::move(admission),
                                                 .webhooks = webhooks,
                                                 .conversion = conversion});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()) << ready.error().message; });
    loop_.RunUntilIdle();
    for (const char* name : {"default", "kube-node-lease", "other"}) {
      if (core_->Find("", "namespaces", name) != nullptr) continue;  // from before a restart
      Create(std::string(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")") + name +
             R"("}})");
    }
  }

  Response Handle(Request request) {
    std::optional<Response> answer;
    core_->Handle(std::move(request), [&](Response response) { answer = std::move(response); });
    while (!answer && loop_.RunOne()) {
    }
    EXPECT_TRUE(answer.has_value());
    return answer ? std::move(*answer) : Response{};
  }

  // Applies `text` as administrator to a subresource of the object "default/`name`".
  Response Apply(const api::KindSchema& kind, std::string name, std::string subresource,
                 std::string manager, std::string text, bool force = false) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kApply;
    request.kind = &kind;
    request.namespace_ = "default";
    request.name = std::move(name);
    request.subresource = std::move(subresource);
    request.field_manager = std::move(manager);
    request.force = force;
    request.text = std::move(text);
    return Handle(std::move(request));
  }

  // The request for an object given as JSON with apiVersion and kind.
  Request RequestFor(Verb verb, std::string_view json, UserInfo user) {
    Request request;
    request.user = std::move(user);
    request.verb = verb;
    Result<api::TreePtr> tree = api::ParseJson(json);
    if (!tree.ok()) {
      ADD_FAILURE() << tree.error().message << "\n" << json;
      return request;
    }
    const api::Value root = (*tree)->root();
    request.kind = core_->FindKind(root["apiVersion"].str(), root["kind"].str());
    if (request.kind == nullptr) {
      ADD_FAILURE() << "no such kind: " << json;
      return request;
    }
    if (request.kind->namespaced) request.namespace_ = root["metadata"]["namespace"].str("default");
    if (verb != Verb::kCreate) request.name = root["metadata"]["name"].str();
    request.object = *tree;
    return request;
  }

  Response TryCreate(std::string_view json, UserInfo user = AdminUser()) {
    return Handle(RequestFor(Verb::kCreate, json, std::move(user)));
  }

  api::ObjectPtr Create(std::string_view json) {
    Response response = TryCreate(json);
    EXPECT_FALSE(response.failure.has_value()) << response.failure->message << "\n" << json;
    return response.object;
  }

  Response Delete(std::string_view api_version, std::string_view kind, std::string namespace_,
                  std::string name, UserInfo user = AdminUser()) {
    Request request;
    request.user = std::move(user);
    request.verb = Verb::kDelete;
    request.kind = core_->FindKind(api_version, kind);
    request.namespace_ = std::move(namespace_);
    request.name = std::move(name);
    request.grace_period_seconds = 0;
    return Handle(std::move(request));
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
};

}  // namespace drakkar::apiserver
