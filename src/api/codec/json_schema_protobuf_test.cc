#include "api/codec/json_schema_protobuf.h"

#include <gtest/gtest.h>

#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/codec/tree_converter.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

std::string Bytes(std::uint32_t number, std::string_view content) {
  std::string out;
  AppendBytes(out, number, content);
  return out;
}
std::string Number(std::uint32_t number, std::uint64_t value) {
  std::string out;
  AppendVarint(out, std::uint64_t{number} << 3);
  AppendVarint(out, value);
  return out;
}
std::string Read(std::string_view message) {
  const Result<std::string> json = ReadJsonSchema(message);
  return json.ok() ? *json : json.error().message;
}
std::string Write(std::string_view json) {
  const Result<TreePtr> tree = ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return WriteJsonSchema((*tree)->root());
}

TEST(JsonSchemaProtobuf, EveryMemberSurvivesARoundTrip) {
  constexpr std::string_view kSchemas[] = {
      R"({"description":"d","type":"object","properties":{"a":{"type":"string","maxLength":5},)"
      R"("b":{"type":"array","items":{"type":"integer","minimum":-1.5,"maximum":7}}},)"
      R"("x-kubernetes-preserve-unknown-fields":true})",
      R"({"id":"i","$schema":"s","$ref":"","title":"t","format":"f","default":{"a":[1,null]},)"
      R"("exclusiveMaximum":true,"exclusiveMinimum":true,"minLength":1,"pattern":"p","maxItems":2,)"
      R"("minItems":1,"uniqueItems":true,"multipleOf":0.5,"enum":["a",1,null],"maxProperties":3,)"
      R"("minProperties":1,"required":["a","b"],"allOf":[{"type":"x"}],"oneOf":[{}],"anyOf":[{},{}],)"
      R"("not":{"type":"y"},"additionalProperties":{"type":"z"},"patternProperties":{"q":{}},)"
      R"("dependencies":{"a":["b"],"c":{"type":"w"}},"additionalItems":false,"definitions":{"r":{}},)"
      R"("externalDocs":{"description":"e","url":"u"},"example":"ex","nullable":true,)"
      R"("x-kubernetes-embedded-resource":true,"x-kubernetes-int-or-string":true,)"
      R"("x-kubernetes-list-map-keys":["k"],"x-kubernetes-list-type":"map",)"
      R"("x-kubernetes-map-type":"atomic","x-kubernetes-validations":[{"rule":"self","message":"m",)"
      R"("messageExpression":"me","reason":"FieldValueInvalid","fieldPath":".a",)"
      R"("optionalOldSelf":true}]})",
      R"({"items":[{"type":"a"},{"type":"b"}],"additionalProperties":true,"default":null})",
  };
  for (const std::string_view json : kSchemas) {
    // The order of members is that of the field numbers.
    const std::string once = Read(Write(json));
    EXPECT_EQ(Read(Write(once)), once);
    EXPECT_EQ(Equal((*ParseJson(json))->root(), (*ParseJson(once))->root()), true) << once;
  }
}

TEST(JsonSchemaProtobuf, ZeroValuesThatGoWritesAreNotMembers) {
  // id, type and uniqueItems as Go writes them if they are not set; $ref is a pointer.
  EXPECT_EQ(Read(Bytes(1, "") + Bytes(3, "") + Bytes(5, "") + Number(18, 0)), R"({"$ref":""})");
  EXPECT_EQ(Read(Number(38, 0)), R"({"x-kubernetes-preserve-unknown-fields":false})");
}

TEST(JsonSchemaProtobuf, BrokenMessagesAreErrors) {
  EXPECT_EQ(Read(Number(5, 1)), "the protobuf message is malformed: field type has another type");
  EXPECT_EQ(Read("\x2a\x05"
                 "a"),
            "the protobuf message is malformed: a length beyond the end");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep = Bytes(28, deep);
  EXPECT_EQ(Read(deep), "the protobuf message is nested too deeply");
}

TEST(JsonSchemaProtobuf, ACustomResourceDefinitionSurvives) {
  const StructSchema& schema =
      *FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")->schema;
  const Result<TreePtr> tree = ParseJson(
      R"({"spec":{"group":"g","versions":[{"name":"v1","served":true,"storage":true,"schema":)"
      R"({"openAPIV3Schema":{"type":"object"}}}]}})");
  ASSERT_TRUE(tree.ok());
  const Result<TreePtr> read = ReadProtobuf(WriteProtobuf((*tree)->root(), schema), schema);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(WriteJson((*read)->root()), WriteJson((*tree)->root()));
}

}  // namespace
}  // namespace drakkar::api
