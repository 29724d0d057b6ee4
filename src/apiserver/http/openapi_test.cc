#include "apiserver/http/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "apiserver/http/openapi_foreign.h"
#include "apiserver/http/openapi_protobuf.h"
#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Read(std::string_view path) {
  auto text = FindOpenApi(path);
  if (text == nullptr) {
    ADD_FAILURE() << path << " is not there";
    return api::Draft().Freeze();
  }
  return api::ParseJson(*text).value();
}

std::set<std::string> Names(api::Value object) {
  std::set<std::string> names;
  for (const api::MemberView& member : object.members()) names.emplace(member.name);
  return names;
}

// Every "$ref" below a value.
void CollectReferences(api::Value value, std::set<std::string>& references) {
  for (const api::MemberView& member : value.members()) {
    if (member.name == "$ref" && member.value.is_string()) {
      references.emplace(member.value.str());
    } else {
      CollectReferences(member.value, references);
    }
  }
  for (api::Value each : value.elements()) CollectReferences(each, references);
}

TEST(OpenApiTest, TheIndexListsEveryDocumentWithItsHash) {
  api::TreePtr index = Read("/openapi/v3");
  EXPECT_TRUE(index->root()["paths"].Entry("api/v1").exists());
  for (const api::MemberView& member : index->root()["paths"].members()) {
    const std::string_view url = member.value["serverRelativeURL"].str();
    const std::size_t query = url.find("?hash=");
    ASSERT_NE(query, std::string_view::npos);
    EXPECT_EQ(url.substr(0, query), StrCat("/openapi/v3/", member.name));
    EXPECT_EQ(Read(url.substr(0, query))->root()["openapi"].str(), "3.0.0");
  }
  EXPECT_EQ(FindOpenApi("/openapi/v3/apis/nothing/v1"), nullptr);
  EXPECT_EQ(FindOpenApi("/openapi/v3x"), nullptr);
  EXPECT_EQ(FindOpenApi("/openapi"), nullptr);
  EXPECT_EQ(FindOpenApi("/openapi/v3/api/v1"), FindOpenApi("/openapi/v3/api/v1")) << "shared";
}

TEST(OpenApiTest, EveryReferenceResolves) {
  for (std::string_view path : {"/openapi/v3/api/v1", "/openapi/v3/apis/resource.k8s.io/v1",
                                "/openapi/v3/apis/apps/v1", "/openapi/v2"}) {
    api::TreePtr document = Read(path);
    const bool v2 = path == "/openapi/v2";
    const std::string_view prefix = v2 ? "#/definitions/" : "#/components/schemas/";
    api::Value schemas =
        v2 ? document->root()["definitions"] : document->root()["components"]["schemas"];
    std::set<std::string> references;
    CollectReferences(document->root(), references);
    EXPECT_GT(references.size(), 10u);
    for (const std::string& each : references) {
      ASSERT_TRUE(each.starts_with(prefix)) << each;
      EXPECT_TRUE(schemas.Entry(std::string_view(each).substr(prefix.size())).exists()) << each;
    }
  }
}

TEST(OpenApiTest, PatchesAdvertiseFieldValidation) {
  api::TreePtr document = Read("/openapi/v3/apis/resource.k8s.io/v1");
  api::Value patch = document->root()["paths"].Entry(
      "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}")["patch"];
  EXPECT_EQ(patch["x-kubernetes-action"].str(), "patch");
  EXPECT_EQ(api::WriteJson(patch["x-kubernetes-group-version-kind"]),
            R"({"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"})");
  std::set<std::string> parameters;
  for (api::Value each : patch["parameters"].elements()) parameters.emplace(each["name"].str());
  EXPECT_EQ(parameters,
            (std::set<std::string>{"dryRun", "fieldManager", "fieldValidation", "force"}));
  EXPECT_TRUE(patch["requestBody"]["content"].Entry("application/apply-patch+yaml").exists());
}

TEST(OpenApiTest, SchemasDescribeHowListsMerge) {
  api::TreePtr document = Read("/openapi/v3/api/v1");
  api::Value schemas = document->root()["components"]["schemas"];
  api::Value containers = schemas.Entry("io.k8s.api.core.v1.PodSpec")["properties"]["containers"];
  EXPECT_EQ(containers["x-kubernetes-patch-merge-key"].str(), "name");
  EXPECT_EQ(containers["x-kubernetes-patch-strategy"].str(), "merge");
  EXPECT_EQ(containers["x-kubernetes-list-type"].str(), "map");
  EXPECT_EQ(api::WriteJson(containers["x-kubernetes-list-map-keys"]), R"(["name"])");
  EXPECT_EQ(
      api::WriteJson(schemas.Entry("io.k8s.api.core.v1.Pod")["x-kubernetes-group-version-kind"]),
      R"([{"group":"","version":"v1","kind":"Pod"}])");
  EXPECT_EQ(api::WriteJson(schemas.Entry("io.k8s.api.core.v1.Secret")["properties"]["data"]),
            R"({"type":"object","additionalProperties":{"type":"string","format":"byte"}})");
}

// What Kubernetes' own documents say about the same fields and operations.
TEST(OpenApiTest, MatchesTheDocumentsOfKubernetes) {
  const char* set = std::getenv("DRAKKAR_VECTORS");
  const std::string data =
      set != nullptr ? StrCat(set, "/../data/openapi") : "../shared/data/openapi";
  const std::string families[][2] = {{"/openapi/v3/api/v1", "core.v1"},
                                     {"/openapi/v3/apis/resource.k8s.io/v1", "resource.v1"},
                                     {"/openapi/v3/apis/apps/v1", "apps.v1"},
                                     {"/openapi/v3/apis/policy/v1", "policy.v1"}};
  for (const auto& [path, family] : families) {
    Result<std::string> text = RealFileSystem().ReadFile(StrCat(data, "/", family, ".json"));
    if (!text.ok()) GTEST_SKIP() << "no OpenAPI data: " << text.error().message;
    api::TreePtr theirs = api::ParseJson(*text).value();
    api::TreePtr ours = Read(path);
    for (const api::MemberView& mine : ours->root()["components"]["schemas"].members()) {
      api::Value other = theirs->root()["schemas"].Entry(mine.name);
      if (!other.exists()) continue;  // bodies that only we name
      EXPECT_EQ(Names(mine.value["properties"]), Names(other["properties"])) << mine.name;
      std::set<std::string> my_required;
      std::set<std::string> other_required;
      for (api::Value each : mine.value["required"].elements()) my_required.emplace(each.str());
      for (api::Value each : other["required"].elements()) other_required.emplace(each.str());
      EXPECT_EQ(my_required, other_required) << mine.name;
      for (const api::MemberView& field : mine.value["properties"].members()) {
        api::Value known = other["properties"].Entry(field.name);
        const std::string where = StrCat(mine.name, ".", field.name);
        for (const api::FieldName member : api::FieldNames{"format", "x-kubernetes-patch-merge-key",
                                                           "x-kubernetes-patch-strategy"}) {
          EXPECT_EQ(field.value[member].str(), known[member].str())
              << where << " " << member.view();
        }
        if (field.name != "skipNodeOperations") {
          EXPECT_EQ(field.value["type"].str(), known["type"].str()) << where;
        }
        if (known["x-kubernetes-list-type"].exists() && field.name != "skipNodeOperations") {
          EXPECT_EQ(field.value["x-kubernetes-list-type"].str(),
                    known["x-kubernetes-list-type"].str())
              << where;
        }
      }
    }
    for (const api::MemberView& mine : ours->root()["paths"].members()) {
      api::Value other = theirs->root()["paths"].Entry(mine.name)["verbs"];
      EXPECT_TRUE(other.exists()) << mine.name;
      for (const api::MemberView& method : mine.value.members()) {
        if (method.name == "parameters") continue;
        EXPECT_EQ(method.value["x-kubernetes-action"].str(),
                  other.Entry(method.name)["action"].str())
            << mine.name << " " << method.name;
        EXPECT_EQ(method.value["x-kubernetes-group-version-kind"]["kind"].str(),
                  other.Entry(method.name)["kind"]["kind"].str())
            << mine.name << " " << method.name;
      }
    }
  }
}

TEST(OpenApiTest, SchemasOfOtherServersAreInTheSecondVersion) {
  api::Draft definitions = api::Draft::Map({{"io.k8s.Time", api::Draft({{"type", "string"}})}});
  AddForeignDefinitions(
      definitions,
      R"({"openapi":"3.0.0","components":{"schemas":{"io.k8s.Time":{"type":"number"},
          "com.example.Widget":{"type":"object","required":["spec"],"nullable":true,
          "properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/com.example.Spec"}],
          "default":{},"description":"d"},"oneOf":{"type":"string"},
          "map":{"type":"object","additionalProperties":
          {"$ref":"#/components/schemas/com.example.Spec"}}},
          "x-kubernetes-group-version-kind":[{"group":"example.com"}]},
          "com.example.Spec":{"oneOf":[{"type":"string"},{"type":"number"}]}}}})");
  EXPECT_EQ(api::WriteJson(definitions.Freeze()->root()),
            R"({"io.k8s.Time":{"type":"string"},"com.example.Widget":{"type":"object",)"
            R"("required":["spec"],"properties":{"spec":{"$ref":"#/definitions/com.example.Spec",)"
            R"("default":{},"description":"d"},"oneOf":{"type":"string"},"map":{"type":"object",)"
            R"("additionalProperties":{"$ref":"#/definitions/com.example.Spec"}}},)"
            R"("x-kubernetes-group-version-kind":[{"group":"example.com"}]},)"
            R"("com.example.Spec":{}})");
  AddForeignDefinitions(definitions, "no document");
  EXPECT_EQ(definitions.size(), 3u);
}

TEST(OpenApiTest, TheDocumentsOfOtherServersAreMerged) {
  auto api = std::make_shared<AggregatedApi>();
  api->group = "example.com";
  api->version = "v1";
  api->open_api =
      net::MakeSegment(R"({"components":{"schemas":{"com.example.Widget":{"type":"object"}}}})");
  OpenApi documents;
  EXPECT_EQ(documents.Find("/openapi/v2")->find("com.example.Widget"), std::string::npos);
  documents.SetAggregated(
      std::make_shared<const AggregatedApis>(AggregatedApis::Map{{{"example.com", "v1"}, api}}));
  const auto merged = documents.Find("/openapi/v2");
  EXPECT_NE(merged->find(R"("com.example.Widget":{"type":"object"})"), std::string::npos);
  EXPECT_NE(OpenApiInProtobuf(merged)->find("com.example.Widget"), std::string::npos);
}

TEST(OpenApiTest, TheSecondVersionIsAlsoAvailableInProtobuf) {
  // Swagger "2.0", a title, an empty object for the paths, and one definition.
  const auto made = OpenApiToProtobuf(R"({"swagger":"2.0","info":{"title":"K","version":"v1"},
      "paths":{},"definitions":{"a":{"type":"object","required":["x"],"properties":{
      "x":{"$ref":"#/definitions/b"}},"x-kubernetes-group-version-kind":[{"kind":"A"}]}}})");
  ASSERT_NE(made, nullptr);
  const std::string reference = std::string("\x0a\x0f") + "#/definitions/b";
  EXPECT_TRUE(made->starts_with(std::string("\x0a\x03") + "2.0" + "\x12\x07\x0a\x01K\x12\x02v1"))
      << "swagger and info";
  EXPECT_NE(made->find(reference), std::string::npos);
  EXPECT_NE(made->find("x-kubernetes-group-version-kind"), std::string::npos);
  EXPECT_NE(made->find("[{\"kind\":\"A\"}]\n"), std::string::npos) << "extensions are YAML";
  const auto all = OpenApiInProtobuf(FindOpenApi("/openapi/v2"));
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all, OpenApiInProtobuf(FindOpenApi("/openapi/v2"))) << "made once";
  EXPECT_NE(all->find("io.k8s.api.resource.v1.ResourceClaim"), std::string::npos);
}

}  // namespace
}  // namespace drakkar::apiserver
