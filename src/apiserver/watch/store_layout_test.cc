#include "apiserver/watch/store_layout.h"

#include <gmock/gmock.h>

#include <map>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/codec/yaml_reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "apiserver/registry/schema_defaults.h"
#include "apiserver/testing/core_fixture.h"
#include "apiserver/watch/stored_object.h"
#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;

const StoreLayout kKubernetes{.is_kubernetes = true};

std::string PrefixOf(const StoreLayout& layout, std::string_view group, std::string_view version,
                     std::string_view kind) {
  return KeyPrefix(layout, *api::FindKind(group, version, kind));
}

TEST(StoreLayoutTest, KeysAreThoseOfKubeApiserver) {
  const std::map<std::string, std::string> expected = {
      {"v1 Node", "/registry/minions/"},
      {"v1 Service", "/registry/services/specs/"},
      {"v1 Endpoints", "/registry/services/endpoints/"},
      {"v1 ReplicationController", "/registry/controllers/"},
      {"v1 Pod", "/registry/pods/"},
      {"v1 Event", "/registry/events/"},
      {"networking.k8s.io/v1 Ingress", "/registry/ingress/"},
      {"networking.k8s.io/v1 IngressClass", "/registry/ingressclasses/"},
      {"apps/v1 Deployment", "/registry/deployments/"},
      {"coordination.k8s.io/v1 Lease", "/registry/leases/"},
      {"rbac.authorization.k8s.io/v1 ClusterRole", "/registry/clusterroles/"},
      {"resource.k8s.io/v1 ResourceClaim", "/registry/resourceclaims/"},
  };
  for (const auto& [type, prefix] : expected) {
    const std::size_t space = type.find(' ');
    const api::KindSchema* kind =
        api::FindKindByApiVersion(type.substr(0, space), type.substr(space + 1));
    ASSERT_NE(kind, nullptr) << type;
    EXPECT_EQ(KeyPrefix(kKubernetes, *kind), prefix);
  }
}

TEST(StoreLayoutTest, OurOwnKeysHaveTheGroup) {
  EXPECT_EQ(PrefixOf({}, "", "v1", "Node"), "/registry/core/nodes/");
  EXPECT_EQ(PrefixOf({}, "apps", "v1", "Deployment"), "/registry/apps/deployments/");
  EXPECT_EQ(PrefixOf({.is_kubernetes = true, .root = "/a/b"}, "", "v1", "Pod"), "/a/b/pods/");
}

// No two kinds share keys, and no kind's keys are inside another's.
TEST(StoreLayoutTest, PrefixesAreDistinct) {
  std::map<std::string, std::string_view> prefixes;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (!kind.storage_version || kind.storage != &kind) continue;
    const auto [it, inserted] = prefixes.emplace(KeyPrefix(kKubernetes, kind), kind.kind);
    EXPECT_TRUE(inserted) << it->first << " is of " << it->second << " and " << kind.kind;
  }
  for (auto it = prefixes.begin(); it != prefixes.end() && std::next(it) != prefixes.end(); ++it) {
    EXPECT_FALSE(std::next(it)->first.starts_with(it->first)) << it->first;
  }
}

api::ObjectPtr Read(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

TEST(StoreLayoutTest, BuiltInKindsAreEnvelopedAndOthersJson) {
  const api::ObjectPtr map =
      Read(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"},)"
           R"("data":{"x":"1"}})");
  const storage::Bytes bytes = EncodeStored(kKubernetes, *map);
  ASSERT_TRUE(api::HasProtobufMagic(*bytes));
  Result<api::ProtobufEnvelope> envelope = api::OpenProtobufEnvelope(*bytes);
  ASSERT_TRUE(envelope.ok());
  EXPECT_EQ(envelope->api_version, "v1");
  EXPECT_EQ(envelope->kind, "ConfigMap");
  StoreLayout json = kKubernetes;
  json.media_type = StoreLayout::MediaType::kJson;
  EXPECT_EQ(*EncodeStored(json, *map), *map->json());
  EXPECT_EQ(*EncodeStored({}, *map), *map->json());
  const api::ObjectPtr custom =
      Read(R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}})");
  EXPECT_EQ(*EncodeStored(kKubernetes, *custom), *custom->json());
}

TEST(StoreLayoutTest, WhatWasStoredInAnotherVersionIsConverted) {
  const api::ObjectPtr old = Read(
      R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"DeviceClass","metadata":{"name":"gpu"},)"
      R"("spec":{"selectors":[{"cel":{"expression":"true"}}]}})");
  for (const StoreLayout::MediaType media :
       {StoreLayout::MediaType::kProtobuf, StoreLayout::MediaType::kJson}) {
    const storage::Bytes bytes = EncodeStored({.is_kubernetes = true, .media_type = media}, *old);
    Result<api::ObjectPtr> now = ReadStored(*bytes, 7, Writer::kAnyServer);
    ASSERT_TRUE(now.ok()) << now.error().message;
    EXPECT_EQ((*now)->api_version(), "resource.k8s.io/v1");
    EXPECT_EQ((*now)->resource_version(), 7);
  }
}

TEST(StoreLayoutTest, WhatCannotBeReadSaysWhy) {
  EXPECT_THAT(ReadStored("k8s:enc:aescbc:v1:key1:abc", 1, Writer::kAnyServer).error().message,
              HasSubstr("encrypted"));
  std::string unknown = api::ProtobufEnvelopeHead("example.com/v9", "Widget", 0);
  EXPECT_THAT(ReadStored(unknown, 1, Writer::kAnyServer).error().message,
              HasSubstr("unknown type Widget in example.com/v9"));
}

// Every object of the validation tests survives the envelope unchanged.
TEST(StoreLayoutTest, NothingIsLostInTheEnvelope) {
  const std::string directory = "src/apiserver/validation/testdata";
  int objects = 0;
  for (const char* file : {"claims", "classes", "cluster", "jobs", "pods", "slices", "workloads"}) {
    Result<std::string> text = RealFileSystem().ReadFile(StrCat(directory, "/", file, ".yaml"));
    ASSERT_TRUE(text.ok());
    Result<std::vector<api::TreePtr>> documents = api::ParseYaml(*text);
    ASSERT_TRUE(documents.ok());
    for (const api::TreePtr& document : *documents) {
      const api::KindSchema* kind = api::FindKindByApiVersion(document->root()["apiVersion"].str(),
                                                              document->root()["kind"].str());
      if (kind == nullptr || kind->storage != kind) continue;
      Result<api::ObjectReadResult> read =
          api::ConvertObject(document, *kind->schema, {.strictness = api::Strictness::kIgnore});
      ASSERT_TRUE(read.ok());
      api::Draft complete(read->tree);
      ApplySchemaDefaults(complete, *kind->schema);
      const api::ObjectPtr object = Numbered(complete.Freeze(), 5);
      Result<api::ObjectPtr> back =
          ReadStored(*EncodeStored(kKubernetes, *object), 5, Writer::kAnyServer);
      ASSERT_TRUE(back.ok()) << back.error().message;
      // In protobuf `skipNodeOperations: true` can only be the list that means the same.
      std::string expected = *object->json();
      const std::string_view form = "\"skipNodeOperations\":true";
      for (std::size_t at; (at = expected.find(form)) != std::string::npos;) {
        expected.replace(at, form.size(), "\"skipNodeOperations\":[\"*\"]");
      }
      Result<api::ObjectReadResult> again = api::ReadObject(expected, *kind->schema);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_TRUE(api::Equal((*back)->root(), again->tree->root())) << *(*back)->json() << "\n"
                                                                    << expected;
      ++objects;
    }
  }
  EXPECT_GT(objects, 20);
}

// The verbs work the same in this layout.
TEST(StoreLayoutTest, CoreServesAndFindsItsObjectsAgain) {
  SeededLoop loop;
  storage::MemoryDisk disk;
  auto store = storage::OpenMemoryStore(loop, disk);
  FeatureGates gates;
  const auto run = [&](Core& core, Request request) {
    std::optional<Response> answer;
    core.Handle(std::move(request), [&](Response response) { answer = std::move(response); });
    while (!answer && loop.RunOne()) {
    }
    return answer ? std::move(*answer) : Response{};
  };
  const auto start = [&] {
    auto core = std::make_unique<Core>(Core::Options{.loop = loop,
                                                     .random = loop.random(),
                                                     .store = *store,
                                                     .layout = kKubernetes,
                                                     .gates = gates,
                                                     .admission = {}});
    core->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()); });
    loop.RunUntilIdle();
    return core;
  };
  auto core = start();
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kCreate;
  request.kind = api::FindKind("", "v1", "Node");
  request.text = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})";
  const Response created = run(*core, std::move(request));
  ASSERT_FALSE(created.failure.has_value()) << created.failure->message;
  core = start();
  const api::ObjectPtr found = core->Find("", "nodes", "n1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->uid(), created.object->uid());
  EXPECT_EQ(found->resource_version(), created.object->resource_version());
  std::vector<std::string> keys;
  store->Range({.prefix = "/registry/"}, [&](Result<storage::RangeResult> range) {
    for (const storage::Entry& entry : range->entries) keys.push_back(entry.key);
  });
  EXPECT_THAT(keys, ::testing::ElementsAre("/registry/minions/n1"));
}

}  // namespace
}  // namespace drakkar::apiserver
