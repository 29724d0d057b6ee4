#include "api/codec/object_reader.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/vectors.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

const StructSchema& Schema(std::string_view api_version, std::string_view kind) {
  const KindSchema* found = FindKindByApiVersion(api_version, kind);
  CHECK(found != nullptr);
  return *found->schema;
}
const StructSchema& Pod() {
  return Schema("v1", "Pod");
}
const StructSchema& Slice() {
  return Schema("resource.k8s.io/v1", "ResourceSlice");
}
const StructSchema& Class() {
  return Schema("resource.k8s.io/v1", "DeviceClass");
}

std::string Read(std::string_view json, const StructSchema& schema,
                 ObjectReadOptions options = {}) {
  const auto read = ReadObject(json, schema, options);
  if (!read.ok()) return read.error().message;
  std::string text = WriteJson(read->tree->root(), {.escape_html = false});
  for (const std::string& warning : read->warnings) text += " | " + warning;
  return text;
}

TEST(ReadObject, PutsFieldsInOrderAndMapsIntoTheOrderOfTheirKeys) {
  EXPECT_EQ(
      Read(
          R"({"spec":{"nodeName":"n"},"metadata":{"labels":{"b":"1","a":"2"},"name":"x"},"kind":"Pod","apiVersion":"v1"})",
          Pod(), {}),
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","labels":{"a":"2","b":"1"}},"spec":{"nodeName":"n"}})");
}

TEST(ReadObject, LeavesOutWhatGoLeavesOut) {
  EXPECT_EQ(
      Read(
          R"({"metadata":{"name":"","labels":{},"creationTimestamp":null,"annotations":null},"spec":{"hostNetwork":false,"priority":0,"volumes":[]}})",
          Pod()),
      R"({"metadata":{},"spec":{"priority":0}})");
}

TEST(ReadObject, NullInListsAndMapsIsTheZeroValue) {
  EXPECT_EQ(Read(R"({"metadata":{"labels":{"a":null},"finalizers":[null,"x"]}})", Pod()),
            R"({"metadata":{"labels":{"a":""},"finalizers":["","x"]}})");
}

TEST(ReadObject, BringsQuantitiesAndTimesIntoCanonicalForm) {
  EXPECT_EQ(
      Read(
          R"({"metadata":{"creationTimestamp":"2025-01-01T02:00:00.5+01:00"},"spec":{"overhead":{"cpu":0.5,"memory":"1024Mi"}}})",
          Pod()),
      R"({"metadata":{"creationTimestamp":"2025-01-01T01:00:00Z"},"spec":{"overhead":{"cpu":"500m","memory":"1Gi"}}})");
}

TEST(ReadObject, KeepsRawBytes) {
  EXPECT_EQ(
      Read(R"({"spec":{"config":[{"opaque":{"driver":"d","parameters": { "b" : 1, "a":2 } }}]}})",
           Class()),
      R"({"spec":{"config":[{"opaque":{"driver":"d","parameters":{ "b" : 1, "a":2 }}}]}})");
}

TEST(ReadObject, KeepsSkipNodeOperationsAsWritten) {
  for (const char* form : {"true", "false", "[]", R"(["*"])"}) {
    const std::string json = StrCat(R"({"spec":{"driver":"d","skipNodeOperations":)", form, "}}");
    EXPECT_EQ(Read(json, Slice()), json);
  }
}

TEST(ReadObject, AWrongTypeOfSkipNodeOperationsIsExplainedInTermsOfTheApi) {
  const std::string wanted =
      "spec.skipNodeOperations: must be true, false or a list of NodePrepareResources, "
      "NodeUnprepareResources and *, not ";
  EXPECT_EQ(Read(R"({"spec":{"skipNodeOperations":"yes"}})", Slice()), wanted + "a string");
  EXPECT_EQ(Read(R"({"spec":{"skipNodeOperations":1}})", Slice()), wanted + "a number");
  EXPECT_EQ(Read(R"({"spec":{"skipNodeOperations":{"all":true}}})", Slice()), wanted + "an object");
  EXPECT_EQ(Read(R"({"spec":{"skipNodeOperations":["*",true]}})", Slice()),
            "spec.skipNodeOperations[1]: must be one of NodePrepareResources, "
            "NodeUnprepareResources and *, not a bool");
}

TEST(ReadObject, TreatsUnknownAndDuplicateFieldsAsAsked) {
  const char* json =
      R"({"metadata":{"name":"x","name":"y","labels":{"a":"1","a":"2"}},"spec":{"bogus":{"x":[1]},"containers":[{"name":"c","Image":"i"}]}})";
  const std::string kept =
      R"({"metadata":{"name":"y","labels":{"a":"2"}},"spec":{"containers":[{"name":"c"}]}})";
  EXPECT_EQ(Read(json, Pod(), {.strictness = Strictness::kIgnore}), kept);
  EXPECT_EQ(Read(json, Pod(), {.strictness = Strictness::kWarn}),
            kept + R"( | duplicate field "metadata.name" | duplicate field "metadata.labels.a")"
                   R"( | unknown field "spec.bogus" | unknown field "spec.containers[0].Image")");
  EXPECT_EQ(
      Read(json, Pod()),
      R"(strict decoding error: duplicate field "metadata.name", duplicate field "metadata.labels.a", )"
      R"(unknown field "spec.bogus", unknown field "spec.containers[0].Image")");
}

TEST(ReadObject, NamesWrongTypesAsGoDoes) {
  EXPECT_EQ(Read(R"({"spec":"x"})", Pod()),
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec");
  EXPECT_EQ(Read(R"({"spec":{"containers":[{"name":1}]}})", Pod()),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of "
            "type string");
  EXPECT_EQ(Read(R"({"spec":{"priority":3000000000}})", Pod()),
            "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority "
            "of type int32");
  EXPECT_EQ(Read(R"([])", Pod()), "json: cannot unmarshal array into Go value of type v1.Pod");
  EXPECT_EQ(Read(R"({"metadata":{"creationTimestamp":"x"}})", Pod()),
            R"(parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006")");
  // A syntax error takes precedence over what comes before it.
  EXPECT_EQ(Read(R"({"spec":"x",)", Pod()), "unexpected end of JSON input");
}

TEST(ReadObject, AddsTheZeroValuesGoWrites) {
  EXPECT_EQ(
      Read(R"({"spec":{"driver":"d"}})", Slice(), {.zero_values = true}),
      R"({"metadata":{},"spec":{"driver":"d","pool":{"name":"","generation":0,"resourceSliceCount":0}}})");
}

TEST(ReadObject, ReadsItsOwnOutputUnchanged) {
  const TreePtr vectors = LoadVectors("conversion/defaulting_and_versions.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  int seen = 0;
  for (const Value test : vectors->root().elements()) {
    for (const MemberView version : test["output"].members()) {
      const KindSchema* kind =
          FindKindByApiVersion(version.value["apiVersion"].str(), version.value["kind"].str());
      // "<now>" marks a generated time; it is not a valid one.
      if (kind == nullptr || WriteJson(version.value).find("now") != std::string::npos) continue;
      const auto once = ConvertObject(version.value, *kind->schema, {.zero_values = true});
      ASSERT_TRUE(once.ok()) << test["name"].str() << ": " << once.error().message;
      EXPECT_EQ(WriteJson(once->tree->root(), {.sort_members = true}),
                WriteJson(version.value, {.sort_members = true}))
          << test["name"].str() << " " << version.name;
      const std::string json = WriteJson(once->tree->root());
      EXPECT_EQ(Read(json, *kind->schema, {.zero_values = true}),
                WriteJson(once->tree->root(), {.escape_html = false}));
      ++seen;
    }
  }
  EXPECT_GT(seen, 50);
}

TEST(ReadObject, RefusesWhatTheVectorsRefuse) {
  const TreePtr vectors = LoadVectors("conversion/defaulting_and_versions.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  for (const Value test : vectors->root().elements()) {
    const Value input = test["input"];
    const KindSchema* kind = FindKindByApiVersion(input["apiVersion"].str(), input["kind"].str());
    if (kind == nullptr) continue;
    const std::string_view name = test["name"].str();
    // Loading the vectors as a tree loses the spelling of numbers; a test below covers these.
    if (name == "int-as-float" || name == "int-too-big") continue;
    const auto read = ConvertObject(input, *kind->schema);
    if (test["error"].exists()) {
      ASSERT_FALSE(read.ok()) << name;
      EXPECT_EQ(read.error().message, test["error"].str()) << name;
    } else if (name == "duplicate-key") {
      continue;  // likewise for duplicates
    } else if (test["strictError"].exists()) {
      ASSERT_FALSE(read.ok()) << name;
      EXPECT_EQ(read.error().message, test["strictError"].str());
    } else {
      EXPECT_TRUE(read.ok()) << name << ": " << read.error().message;
    }
  }
}

TEST(ReadObject, ShowsNumbersThatAreNoIntegersAsTheyAreWritten) {
  for (const char* number : {"1.0", "99999999999999999999"}) {
    EXPECT_EQ(Read(StrCat(R"({"spec":{"pool":{"generation":)", number, "}}}"), Slice()),
              StrCat("json: cannot unmarshal number ", number,
                     " into Go struct field ResourcePool.spec.pool.generation of type int64"));
  }
}

}  // namespace
}  // namespace drakkar::api
