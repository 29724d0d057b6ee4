#include "apiserver/custom/json_values.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Parse(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) ADD_FAILURE() << tree.error().message << "\n" << json;
  return tree.ok() ? *tree : api::Draft::Object().Freeze();
}

// A schema whose spec has these properties.
class Schema {
 public:
  explicit Schema(std::string_view properties, std::string_view more = "")
      : tree_(
            Parse(StrCat(R"({"type":"object","properties":{"spec":{"type":"object","properties":)",
                         properties, more, "}}}"))),
        schema_(ReadJsonSchema(tree_->root(), api::FieldPath("schema"), errors_)) {}

  std::string Prune(std::string_view object, std::vector<std::string>* unknown = nullptr) const {
    return api::WriteJson(PruneUnknown(Parse(object), schema_, unknown)->root());
  }
  std::string Default(std::string_view object) const {
    api::Draft draft(Parse(object));
    ApplyJsonDefaults(draft, schema_);
    return api::WriteJson(draft.Freeze()->root());
  }
  std::string Check(std::string_view object, std::string_view before = "") const {
    api::FieldErrors errors;
    const api::TreePtr old = before.empty() ? nullptr : Parse(before);
    CheckJsonValue(errors, api::FieldPath(), Parse(object)->root(),
                   old == nullptr ? api::Value() : old->root(), schema_);
    return api::JoinFieldErrors(errors);
  }
  std::string errors() const { return api::JoinFieldErrors(errors_); }

 private:
  api::TreePtr tree_;
  api::FieldErrors errors_;
  JsonSchema schema_;
};

TEST(JsonValues, FieldsThatTheSchemaDoesNotHaveAreRemoved) {
  const Schema schema(
      R"({"a":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":)"
      R"({"x":{"type":"integer"}}}},"map":{"type":"object","additionalProperties":{"type":"object",)"
      R"("properties":{"y":{"type":"string"}}}},"open":{"type":"object",)"
      R"("x-kubernetes-preserve-unknown-fields":true,"properties":{"in":{"type":"object"}}}})");
  EXPECT_EQ(schema.errors(), "");
  std::vector<std::string> unknown;
  EXPECT_EQ(
      schema.Prune(
          R"({"apiVersion":"v","kind":"K","metadata":{"name":"n"},"extra":1,"spec":{"a":"",)"
          R"("b":1,"list":[{"x":1,"z":2}],"map":{"k":{"y":"","z":1}},)"
          R"("open":{"any":{"thing":1},"in":{"gone":1}}}})",
          &unknown),
      R"({"apiVersion":"v","kind":"K","metadata":{"name":"n"},"spec":{"a":"","list":[{"x":1}],)"
      R"("map":{"k":{"y":""}},"open":{"any":{"thing":1},"in":{}}}})");
  EXPECT_EQ(Join(unknown, " "), "extra spec.b spec.list[0].z spec.map.k.z spec.open.in.gone");
}

TEST(JsonValues, DefaultsFillWhatIsMissing) {
  const Schema schema(
      R"({"n":{"type":"integer","default":3},"o":{"type":"object","default":{},"properties":)"
      R"({"s":{"type":"string","default":"x"}}},"l":{"type":"array","items":{"type":"object",)"
      R"("properties":{"b":{"type":"boolean","default":true}}}}})");
  EXPECT_EQ(schema.Default(R"({"spec":{"l":[{},{"b":false}]}})"),
            R"({"spec":{"l":[{"b":true},{"b":false}],"n":3,"o":{"s":"x"}}})");
  EXPECT_EQ(schema.Default(R"({"spec":{"n":0,"o":{"s":""}}})"), R"({"spec":{"n":0,"o":{"s":""}}})");
  EXPECT_EQ(schema.Default("{}"), "{}") << "spec has no default of its own";
  EXPECT_EQ(schema.Prune(R"({"spec":{"n":null}})"), R"({"spec":{}})")
      << "null stands for a missing value with a default";
}

TEST(JsonValues, TypesAreChecked) {
  const Schema schema(
      R"({"i":{"type":"integer"},"s":{"type":"string"},"n":{"type":"number","nullable":true},)"
      R"("p":{"x-kubernetes-int-or-string":true}})");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"s":"","n":null,"p":"5%"}})"), "");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":"1"}})"),
            R"(spec.i: Invalid value: "string": spec.i in body must be of type integer: "string")");
  EXPECT_EQ(schema.Check(R"({"spec":{"s":null}})"),
            R"(spec.s: Invalid value: "null": spec.s in body must be of type string: "null")");
  EXPECT_EQ(schema.Check(R"({"spec":[]})"),
            R"(spec: Invalid value: "array": spec in body must be of type object: "array")");
  EXPECT_EQ(schema.Check(R"({"spec":{"p":true}})"),
            R"(spec.p: Invalid value: "boolean": spec.p in body must be of type integer,string: )"
            R"("boolean")");
}

TEST(JsonValues, ValuesAreChecked) {
  const Schema schema(
      R"({"i":{"type":"integer","minimum":1,"maximum":9},"s":{"type":"string","maxLength":3,)"
      R"("minLength":2,"pattern":"^a"},"e":{"type":"string","enum":["x","y"]},"l":{"type":"array",)"
      R"("maxItems":2,"minItems":1,"items":{"type":"integer"}},"t":{"type":"string",)"
      R"("format":"date-time"}})",
      R"(,"required":["i"])");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":5,"s":"ab","e":"x","l":[1],"t":"2026-01-02T03:04:05Z"}})"),
            "");
  EXPECT_EQ(schema.Check(R"({"spec":{}})"), "spec.i: Required value");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":0}})"),
            "spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"s":"abcd"}})"),
            "spec.s: Too long: may not be more than 3 bytes");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"s":"bb"}})"),
            "spec.s: Invalid value: \"bb\": spec.s in body should match '^a'");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"e":"z"}})"),
            R"(spec.e: Unsupported value: "z": supported values: "x", "y")");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"l":[1,2,3]}})"),
            "spec.l: Too many: 3: must have at most 2 items");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":1,"l":[]}})"),
            "spec.l: Invalid value: 0: spec.l in body should have at least 1 items");
  EXPECT_NE(schema.Check(R"({"spec":{"i":1,"t":"yesterday"}})"), "");
}

TEST(JsonValues, CombinationsAreChecked) {
  const Schema schema(
      R"({"v":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},)"
      R"("oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["a","b"]}}})");
  EXPECT_EQ(schema.errors(), "");
  EXPECT_EQ(schema.Check(R"({"spec":{"v":{"a":""}}})"), "");
  EXPECT_EQ(schema.Check(R"({"spec":{"v":{}}})"),
            R"(spec.v: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). )"
            "Found none valid");
}

TEST(JsonValues, SetsAndKeyedListsHaveNoDuplicates) {
  const Schema schema(
      R"({"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},)"
      R"("m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],)"
      R"("items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}})");
  EXPECT_EQ(schema.errors(), "");
  EXPECT_EQ(schema.Check(R"({"spec":{"s":["a","b"],"m":[{"name":"x"},{"name":"y"}]}})"), "");
  EXPECT_EQ(schema.Check(R"({"spec":{"s":["a","a"]}})"), R"(spec.s[1]: Duplicate value: "a")");
  EXPECT_EQ(schema.Check(R"({"spec":{"m":[{"name":"x"},{"name":"x"}]}})"),
            R"(spec.m[1]: Duplicate value: {"name":"x"})");
}

TEST(JsonValues, WhatDidNotChangeIsNotCheckedAgain) {
  const Schema schema(R"({"i":{"type":"integer","maximum":1},"j":{"type":"integer"}})");
  EXPECT_EQ(schema.Check(R"({"spec":{"i":5,"j":1}})", R"({"spec":{"i":5}})"), "");
  EXPECT_NE(schema.Check(R"({"spec":{"i":6}})", R"({"spec":{"i":5}})"), "");
}

TEST(JsonSchema, OnlyStructuralSchemasAreAccepted) {
  EXPECT_NE(Schema(R"({"a":{}})").errors().find("must not be empty for specified object fields"),
            std::string::npos);
  EXPECT_NE(Schema(R"({"a":{"type":"array"}})")
                .errors()
                .find("items: Required value: must be "
                      "specified"),
            std::string::npos);
  EXPECT_NE(Schema(R"({"a":{"type":"string","pattern":"("}})")
                .errors()
                .find("must be a valid regular expression"),
            std::string::npos);
  EXPECT_NE(Schema(R"({"a":{"type":"string","anyOf":[{"type":"string"}]}})")
                .errors()
                .find("must be empty to be structural"),
            std::string::npos);
  EXPECT_EQ(Schema(R"({"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},)"
                   R"({"type":"string"}]}})")
                .errors(),
            "");
}

TEST(JsonValues, DefaultsOfManyElementsAreLimited) {
  const Schema schema(StrCat(
      R"({"list":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string",)"
      R"("default":")",
      std::string(20'000, 'x'), R"("}}}}})"));
  std::string elements = "{}";
  for (int i = 1; i < 5'000; ++i) elements += ",{}";
  const std::string object = StrCat(R"({"spec":{"list":[)", elements, "]}}");
  const WorkBudget budget(WorkBudget::kUnlimited / 2);
  EXPECT_LT(schema.Default(object).size(), 2 * kMaxDefaultBytes);
  // So that the request is rejected.
  EXPECT_GT(budget.used(), std::int64_t{1} << 35);
}

TEST(JsonValues, PathsOfUnknownFieldsAreMadeOnlyForThoseThatAreReported) {
  const Schema schema(
      R"({"map":{"type":"object","additionalProperties":{"type":"array","items":{"type":"object",)"
      R"("properties":{"a":{"type":"integer"}}}}}})");
  const std::string name(100'000, 'n');
  std::string elements = R"({"u":1})";
  for (int i = 1; i < 20'000; ++i) elements += R"(,{"u":1})";
  const std::string object = StrCat(R"({"spec":{"map":{")", name, R"(":[)", elements, "]}}}");
  std::vector<std::string> unknown;
  const WorkBudget budget(20'000'000);
  schema.Prune(object, &unknown);
  ASSERT_EQ(unknown.size(), kMaxUnknownFields);
  EXPECT_EQ(unknown[99], StrCat("spec.map.", name.substr(0, kMaxUnknownBytes - 12), "..."));
}

}  // namespace
}  // namespace drakkar::apiserver
