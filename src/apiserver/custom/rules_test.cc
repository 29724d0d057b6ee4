#include "apiserver/custom/rules.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/custom/schema_value.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Parse(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) ADD_FAILURE() << tree.error().message << "\n" << json;
  return *tree;
}

// The rules of a schema whose spec is given.
class Rules {
 public:
  explicit Rules(std::string_view spec)
      : tree_(Parse(StrCat(R"({"type":"object","properties":{"spec":)", spec, "}}"))),
        schema_(ReadJsonSchema(tree_->root(), api::FieldPath("schema"), errors_)),
        rules_(schema_) {
    EXPECT_EQ(api::JoinFieldErrors(errors_), "");
  }

  std::string Check(std::string_view spec, std::string_view before = "") const {
    api::FieldErrors errors;
    const api::TreePtr object = Parse(StrCat(R"({"spec":)", spec, "}"));
    const api::TreePtr old = before.empty() ? nullptr : Parse(StrCat(R"({"spec":)", before, "}"));
    rules_.Check(errors, object->root(), old == nullptr ? api::Value() : old->root());
    return api::JoinFieldErrors(errors);
  }
  std::string CheckDefinition() const {
    api::FieldErrors errors;
    rules_.CheckDefinition(errors, api::FieldPath("schema"));
    return api::JoinFieldErrors(errors);
  }

 private:
  api::TreePtr tree_;
  api::FieldErrors errors_;
  JsonSchema schema_;
  CustomRules rules_;
};

constexpr char kReplicas[] =
    R"({"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"},)"
    R"("name":{"type":"string","maxLength":10}},"x-kubernetes-validations":[)"
    R"({"rule":"self.min <= self.max","message":"min must not exceed max"},)"
    R"({"rule":"!has(oldSelf.name) || self.name == oldSelf.name","messageExpression":)"
    R"("'name was ' + oldSelf.name","fieldPath":".name","reason":"FieldValueForbidden"}]})";

TEST(CustomRules, ARuleThatDoesNotHoldIsAnError) {
  const Rules rules(kReplicas);
  EXPECT_EQ(rules.CheckDefinition(), "");
  EXPECT_EQ(rules.Check(R"({"min":1,"max":2})"), "");
  EXPECT_EQ(rules.Check(R"({"min":3,"max":2})"), "spec: Invalid value: min must not exceed max");
  EXPECT_EQ(
      rules.Check(R"({"min":3})"),
      "spec: Invalid value: \"object\": no such key: max evaluating rule: min must not exceed "
      "max");
}

TEST(CustomRules, TransitionsSeeTheFormerValue) {
  const Rules rules(kReplicas);
  EXPECT_EQ(rules.Check(R"({"min":1,"max":2,"name":"a"})"), "") << "on create they are skipped";
  EXPECT_EQ(rules.Check(R"({"min":1,"max":2,"name":"a"})", R"({"min":0,"max":2,"name":"a"})"), "");
  EXPECT_EQ(rules.Check(R"({"min":1,"max":2,"name":"b"})", R"({"min":1,"max":2,"name":"a"})"),
            "spec.name: Forbidden: name was a");
}

TEST(CustomRules, ElementsAndEntriesHaveRulesOfTheirOwn) {
  const Rules rules(
      R"({"type":"object","properties":{"list":{"type":"array","maxItems":5,"items":{"type":"object",)"
      R"("properties":{"x":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.x > 0"}]}},)"
      R"("map":{"type":"object","maxProperties":5,"additionalProperties":{"type":"string",)"
      R"~("maxLength":5,"x-kubernetes-validations":[{"rule":"self.startsWith('a')"}]}}}})~");
  EXPECT_EQ(rules.Check(R"({"list":[{"x":1}],"map":{"k":"ab"}})"), "");
  EXPECT_EQ(rules.Check(R"({"list":[{"x":1},{"x":0}]})"),
            "spec.list[1]: Invalid value: failed rule: self.x > 0");
  EXPECT_EQ(rules.Check(R"({"map":{"k":"ba"}})"),
            "spec.map[k]: Invalid value: \"ba\": failed rule: self.startsWith('a')");
}

TEST(CustomRules, NamesAreEscaped) {
  EXPECT_EQ(EscapeProperty("a-b.c/d__e"), "a__dash__b__dot__c__slash__d__underscores__e");
  EXPECT_EQ(EscapeProperty("namespace"), "__namespace__");
  EXPECT_EQ(UnescapeProperty("a__dash__b__dot__c__slash__d__underscores__e"), "a-b.c/d__e");
  EXPECT_EQ(UnescapeProperty("__namespace__"), "namespace");
  const Rules rules(
      R"({"type":"object","properties":{"a-b":{"type":"integer"},"in":{"type":"integer"}},)"
      R"("x-kubernetes-validations":[{"rule":"self.a__dash__b < self.__in__"}]})");
  EXPECT_EQ(rules.Check(R"({"a-b":1,"in":2})"), "");
  EXPECT_NE(rules.Check(R"({"a-b":3,"in":2})"), "");
}

TEST(CustomRules, FormatsHaveTypes) {
  const Rules rules(
      R"({"type":"object","properties":{"t":{"type":"string","format":"date-time"},)"
      R"("d":{"type":"string","format":"duration"},"n":{"type":"number"}},)"
      R"~("x-kubernetes-validations":[{"rule":"self.t > timestamp('2020-01-01T00:00:00Z')"},)~"
      R"~({"rule":"self.d < duration('1h')"},{"rule":"self.n > 0.5"}]})~");
  EXPECT_EQ(rules.CheckDefinition(), "");
  EXPECT_EQ(rules.Check(R"({"t":"2026-01-01T00:00:00Z","d":"5m","n":1})"), "");
  EXPECT_NE(rules.Check(R"({"t":"2019-01-01T00:00:00Z","d":"5m","n":1})"), "");
}

TEST(CustomRules, RulesThatDoNotCompileOrCostTooMuchAreNotAccepted) {
  EXPECT_NE(Rules(R"({"type":"object","properties":{"a":{"type":"string"}},)"
                  R"("x-kubernetes-validations":[{"rule":"self.b == 1"}]})")
                .CheckDefinition()
                .find("undefined field 'b'"),
            std::string::npos);
  EXPECT_NE(Rules(R"({"type":"object","properties":{"a":{"type":"string"}},)"
                  R"("x-kubernetes-validations":[{"rule":"self.a"}]})")
                .CheckDefinition()
                .find("cel expression must evaluate to a bool"),
            std::string::npos);
  const std::string costly =
      Rules(R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}},)"
            R"~("x-kubernetes-validations":[{"rule":"self.l.all(a, self.l.all(b, a == b))"}]})~")
          .CheckDefinition();
  EXPECT_NE(costly.find("estimated rule cost exceeds budget by factor of more than 100x (try "
                        "simplifying the rule, or adding maxItems, maxProperties, and maxLength "
                        "where arrays, maps, and strings are declared)"),
            std::string::npos)
      << costly;
  EXPECT_EQ(
      Rules(R"({"type":"object","properties":{"l":{"type":"array","maxItems":10,"items":)"
            R"({"type":"string","maxLength":10}}},)"
            R"~("x-kubernetes-validations":[{"rule":"self.l.all(a, self.l.all(b, a == b))"}]})~")
          .CheckDefinition(),
      "");
}

}  // namespace
}  // namespace drakkar::apiserver
