#include "apiserver/registry/resource_strategies.h"

#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "apiserver/rest/core.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "storage/memory/memory_store.h"

namespace drakkar::apiserver {
namespace {

// Sends requests about slices to a server whose gate can be turned off while objects are stored.
class SliceRequests : public ::testing::Test {
 protected:
  SliceRequests() { Restart(true); }

  void Restart(bool gate) {
    RestartWith(FeatureGates().With(Gate::kDRAOptionalNodePreparation, gate));
  }
  void RestartWith(FeatureGates gates) {
    core_.reset();
    store_.reset();
    gates_ = gates;
    store_ = storage::OpenMemoryStore(loop_, disk_);
    core_ = std::make_unique<Core>(
        Core::Options{.loop = loop_, .random = loop_.random(), .store = *store_, .gates = gates_});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()) << ready.error().message; });
    Settle();
  }

  void Settle() {
    loop_.RunUntilIdle();
    loop_.Advance(std::chrono::milliseconds(1));
  }

  Response Send(Verb verb, std::string name, std::string text,
                PatchKind patch = PatchKind::kMerge) {
    Request request;
    request.verb = verb;
    request.kind = api::FindKind("resource.k8s.io", "v1", "ResourceSlice");
    request.name = std::move(name);
    request.text = std::move(text);
    request.patch = patch;
    std::optional<Response> answer;
    core_->Handle(std::move(request), [&](Response response) { answer = std::move(response); });
    if (!answer) loop_.RunUntilIdle();
    Settle();
    EXPECT_TRUE(answer.has_value());
    return std::move(*answer);
  }

  static std::string Body(std::string_view skip, std::string_view label = "a") {
    const std::string field = skip.empty() ? "" : StrCat(",\"skipNodeOperations\":", skip);
    return StrCat("{\"metadata\":{\"name\":\"s\",\"labels\":{\"l\":\"", label,
                  "\"}},\"spec\":{\"driver\":\"d.example.com\",\"pool\":{\"name\":\"p\","
                  "\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"n\"",
                  field, "}}");
  }

  // Stores a slice while the gate is on, then restarts the server with the gate off.
  void StoreThenTurnOff(std::string_view skip) {
    ASSERT_EQ(Send(Verb::kCreate, "", Body(skip)).http_status, 201);
    Restart(false);
  }

  void ExpectRefused(const Response& response) {
    EXPECT_EQ(response.http_status, 422);
    ASSERT_TRUE(response.failure.has_value());
    EXPECT_NE(response.failure->message.find("spec.skipNodeOperations: Forbidden"),
              std::string::npos)
        << response.failure->message;
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
};

TEST_F(SliceRequests, PostIsRejectedWithTheGateOff) {
  Restart(false);
  ExpectRefused(Send(Verb::kCreate, "", Body("true")));
  ExpectRefused(Send(Verb::kCreate, "", Body("[\"*\"]")));
  EXPECT_EQ(Send(Verb::kCreate, "", Body("false")).http_status, 201);
}

// KEP-5007: the usual rule for fields of a disabled gate.
TEST_F(SliceRequests, BindingConditionsAreDroppedWithTheGateOffUnlessInUse) {
  const auto body = [](std::string name, std::string label) {
    return StrCat(
        R"({"metadata":{"name":")", name, R"(","labels":{"l":")", label,
        R"("}},"spec":{"driver":"d.example.com","pool":{"name":")", name,
        R"(","generation":1,"resourceSliceCount":1},"allNodes":true,"devices":[{"name":"x",)",
        R"("bindsToNode":true,"bindingConditions":["a"],"bindingFailureConditions":["b"]}]}})");
  };
  const auto device = [&](const Response& response) {
    return response.object->root()["spec"]["devices"].at(0);
  };
  const Response stored = Send(Verb::kCreate, "", body("on", "1"));
  ASSERT_EQ(stored.http_status, 201);
  EXPECT_EQ(device(stored)["bindingConditions"].size(), 1u);
  for (const Gate gate : {Gate::kDRADeviceBindingConditions, Gate::kDRAResourceClaimDeviceStatus}) {
    RestartWith(FeatureGates().With(gate, false));
    const std::string name = StrCat("off-", static_cast<int>(gate));
    const Response dropped = Send(Verb::kCreate, "", body(name, "1"));
    ASSERT_EQ(dropped.http_status, 201);
    for (const api::FieldName field :
         api::FieldNames{"bindsToNode", "bindingConditions", "bindingFailureConditions"}) {
      EXPECT_FALSE(device(dropped)[field].exists()) << field.view();
    }
    const Response kept = Send(Verb::kUpdate, "on", body("on", name));
    ASSERT_EQ(kept.http_status, 200);
    EXPECT_EQ(device(kept)["bindingConditions"].size(), 1u) << "in use before";
  }
}

TEST_F(SliceRequests, PutKeepsStoredValuesAndRejectsNewOnes) {
  StoreThenTurnOff("true");
  EXPECT_EQ(Send(Verb::kUpdate, "s", Body("true", "b")).http_status, 200);
  EXPECT_EQ(Send(Verb::kUpdate, "s", Body("[\"*\"]", "c")).http_status, 200);
  ExpectRefused(Send(Verb::kUpdate, "s", Body("[\"NodeUnprepareResources\"]")));
  EXPECT_EQ(Send(Verb::kUpdate, "s", Body("")).http_status, 200) << "taking it away is fine";
  ExpectRefused(Send(Verb::kUpdate, "s", Body("true")));
}

TEST_F(SliceRequests, EveryPatchFollowsTheSameRules) {
  StoreThenTurnOff("true");
  for (const PatchKind kind : {PatchKind::kMerge, PatchKind::kStrategicMerge}) {
    const std::string label = kind == PatchKind::kMerge ? "m" : "s";
    EXPECT_EQ(
        Send(Verb::kPatch, "s", StrCat("{\"metadata\":{\"labels\":{\"l\":\"", label, "\"}}}"), kind)
            .http_status,
        200);
    ExpectRefused(Send(Verb::kPatch, "s",
                       "{\"spec\":{\"skipNodeOperations\":[\"NodeUnprepareResources\"]}}", kind));
  }
  EXPECT_EQ(Send(Verb::kPatch, "s",
                 "[{\"op\":\"replace\",\"path\":\"/metadata/labels/l\",\"value\":\"j\"}]",
                 PatchKind::kJson)
                .http_status,
            200);
  ExpectRefused(Send(Verb::kPatch, "s",
                     "[{\"op\":\"replace\",\"path\":\"/spec/skipNodeOperations\",\"value\":"
                     "[\"NodeUnprepareResources\"]}]",
                     PatchKind::kJson));
  EXPECT_EQ(Send(Verb::kPatch, "s", "{\"spec\":{\"skipNodeOperations\":false}}").http_status, 200);
}

TEST_F(SliceRequests, TheWrittenFormIsReturned) {
  const Response created = Send(Verb::kCreate, "", Body("true"));
  ASSERT_EQ(created.http_status, 201);
  EXPECT_TRUE((*created.object)["spec"]["skipNodeOperations"].boolean());
}

TEST_F(SliceRequests, AnEmptyListOfAnAttributeIsRefused) {
  RestartWith(FeatureGates().With(Gate::kDRAListTypeAttributes, true));
  for (const std::string list : {"bools", "ints", "strings", "versions"}) {
    const Response response =
        Send(Verb::kCreate, "",
             StrCat(R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com","nodeName":"n",)",
                    R"("pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[)",
                    R"({"name":"d","attributes":{"a":{")", list, R"(":[]}}}]}})"));
    ASSERT_TRUE(response.failure.has_value()) << list;
    EXPECT_NE(response.failure->message.find(StrCat("spec.devices[0].attributes[a].", list,
                                                    ": Invalid value: []: must not be empty")),
              std::string::npos)
        << response.failure->message;
  }
}

TEST_F(SliceRequests, AllErrorsAreReturnedTogetherWithTheirPaths) {
  const Response response =
      Send(Verb::kCreate, "",
           "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"!\",\"pool\":{\"name\":\"p\"}}}");
  ASSERT_TRUE(response.failure.has_value());
  EXPECT_EQ(response.failure->causes.size(), 3u) << response.failure->message;
}

}  // namespace
}  // namespace drakkar::apiserver
