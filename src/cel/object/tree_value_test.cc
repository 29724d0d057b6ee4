#include "cel/object/tree_value.h"

#include <gtest/gtest.h>

#include <string>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "cel/environment/environment.h"

namespace drakkar::cel {
namespace {

// The result of an expression over `object`, as error messages print it.
std::string Evaluate(std::string_view json, std::string_view source) {
  Environment environment;
  AddKubernetesBase(environment, 37);
  environment.AddVariable("object", types::Dyn());
  const CompileResult compiled = environment.Compile(source);
  if (compiled.compiled == nullptr) return compiled.error.message;
  const Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) return tree.error().message;
  Arena arena;
  Evaluator evaluator;
  const Value variables[] = {TreeValue(arena, (*tree)->root())};
  const Evaluation result = compiled.compiled->program->Evaluate(evaluator, variables, 10'000'000);
  return result.value.IsError() ? StrCat("error: ", result.value.error->message)
                                : DebugText(result.value);
}

TEST(TreeValue, ReadsMembersElementsAndScalars) {
  constexpr char kObject[] =
      R"({"spec":{"replicas":3,"paused":true,"ratio":0.5,"names":["a","b"],"none":null}})";
  EXPECT_EQ(Evaluate(kObject, "object.spec.replicas + 1"), "4");
  EXPECT_EQ(Evaluate(kObject, "object.spec.paused && object.spec.ratio < 1.0"), "true");
  EXPECT_EQ(Evaluate(kObject, "object.spec.names[1] == 'b' && 'a' in object.spec.names"), "true");
  EXPECT_EQ(Evaluate(kObject, "object.spec.none == null"), "true");
  EXPECT_EQ(Evaluate(kObject, "object.spec.missing"), "error: no such key: missing");
  EXPECT_EQ(Evaluate(kObject, "has(object.spec.missing) || object.?spec.?x.orValue(1) == 2"),
            "false");
}

TEST(TreeValue, MapsCanBeIteratedAndCompared) {
  constexpr char kObject[] = R"({"a":{"x":1,"y":2},"b":{"y":2,"x":1}})";
  EXPECT_EQ(Evaluate(kObject, "object.a == object.b"), "true");
  EXPECT_EQ(Evaluate(kObject, "object.a.all(k, object.b[k] == object.a[k])"), "true");
  EXPECT_EQ(Evaluate(kObject, "size(object.a)"), "2");
}

TEST(TreeValue, LargeMapsAreLookedUpThroughAnIndex) {
  std::string json = R"({"m":{)";
  for (int i = 0; i < 1'000; ++i) json += StrCat(i == 0 ? "" : ",", "\"k", i, "\":", i);
  json += "}}";
  EXPECT_EQ(Evaluate(json, "object.m.k999 == 999 && !has(object.m.k1000)"), "true");
  EXPECT_EQ(Evaluate(json, "object.m.all(k, k == 'k' + string(object.m[k]))"), "true");
}

}  // namespace
}  // namespace drakkar::cel
