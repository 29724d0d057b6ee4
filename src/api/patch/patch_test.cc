#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/patch/json_patch.h"
#include "api/patch/merge_patch.h"
#include "api/patch/strategic.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_tree.h"
#include "api/testing/vectors.h"
#include "tests/support/vector_report.h"

namespace drakkar::api {
namespace {

std::string Text(Value value) {
  return WriteJson(value, {.escape_html = false, .sort_members = true});
}

const StructSchema& SchemaOf(Value original) {
  const KindSchema* kind =
      FindKindByApiVersion(original["apiVersion"].str(), original["kind"].str());
  CHECK(kind != nullptr);
  return *kind->schema;
}

void Expect(const Result<TreePtr>& result, Value test, std::string_view name) {
  if (test["error"].exists()) {
    ASSERT_FALSE(result.ok()) << name << ": " << Text((*result)->root());
    EXPECT_EQ(result.error().message, test["error"].str()) << name;
    return;
  }
  ASSERT_TRUE(result.ok()) << name << ": " << result.error().message;
  EXPECT_EQ(Text((*result)->root()), Text(test["result"])) << name;
}

TEST(StrategicPatch, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("patch/strategic.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("patch");
  for (const Value test : vectors->root()["cases"].elements()) {
    testing::VectorReport::Case scope(report);
    const Value original = vectors->root()["originals"].Entry(test["kind"].str());
    Expect(ApplyStrategicPatch(original, test["patch"], SchemaOf(original)), test,
           test["name"].str());
  }
}

TEST(MergePatch, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("patch/json_merge.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("patch");
  for (const Value test : vectors->root()["cases"].elements()) {
    testing::VectorReport::Case scope(report);
    const Value original = test["kind"].exists()
                               ? vectors->root()["originals"].Entry(test["kind"].str())
                               : test["original"];
    Expect(ApplyMergePatch(original, test["patch"]), test, Text(test["patch"]));
  }
}

TEST(JsonPatch, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("patch/json_patch.json");
  if (vectors == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("patch");
  for (const Value test : vectors->root().elements()) {
    testing::VectorReport::Case scope(report);
    Expect(ApplyJsonPatch(test["original"], test["patch"]), test, Text(test["patch"]));
  }
}

TEST(CreatePatch, AgreesWithTheVectors) {
  const TreePtr vectors = LoadVectors("patch/create.json");
  const TreePtr applied = LoadVectors("patch/strategic.json");
  if (vectors == nullptr || applied == nullptr) GTEST_SKIP() << "no vectors";
  testing::VectorReport report("patch");
  const Value cases = vectors->root().is_array() ? vectors->root() : vectors->root()["cases"];
  for (const Value test : cases.elements()) {
    testing::VectorReport::Case scope(report);
    const Value original = applied->root()["originals"].Entry(test["kind"].str());
    const Value modified = test["modified"];
    const std::string_view name = test["name"].str();
    EXPECT_EQ(Text(CreateMergePatch(original, modified)->root()), Text(test["jsonMergePatch"]))
        << name;
    const auto patch = CreateStrategicPatch(original, modified, SchemaOf(original));
    ASSERT_TRUE(patch.ok()) << name << ": " << patch.error().message;
    EXPECT_EQ(Text((*patch)->root()), Text(test["strategicPatch"])) << name;
  }
}

TEST(MergePatch, WhatIsCreatedMakesTheModifiedValue) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomTree random(seed);
    Draft before = Draft::Object();
    Draft after = Draft::Object();
    for (int i = 0; i < 6; ++i) {
      const std::string name = random.Text();
      Draft value = random.Make(3);
      if (random.Below(3) != 0) before.Entry(name) = value;
      if (random.Below(3) != 0)
        after.Entry(name) = random.Below(2) == 0 ? std::move(value) : random.Make(3);
    }
    // Null means removal in a merge patch, so the values themselves must be free of it.
    const TreePtr empty = Draft::Object().Freeze();
    const TreePtr original = *ApplyMergePatch(empty->root(), before.Freeze()->root());
    const TreePtr modified = *ApplyMergePatch(empty->root(), after.Freeze()->root());
    const TreePtr patch = CreateMergePatch(original->root(), modified->root());
    const auto patched = ApplyMergePatch(original->root(), patch->root());
    ASSERT_TRUE(patched.ok());
    EXPECT_TRUE(Equal((*patched)->root(), modified->root())) << "seed " << seed << "\n"
                                                             << Text(original->root()) << "\n"
                                                             << Text(patch->root());
  }
}

TEST(JsonPatch, MovesCopiesAndBoundsWhatItCopies) {
  const TreePtr original = *ParseJson(R"({"a":{"b/c":[1,2]},"d":1})");
  const auto apply = [&](std::string_view patch) {
    const TreePtr operations = *ParseJson(patch);
    const auto result =
        ApplyJsonPatch(original->root(), operations->root(), {.max_copied_bytes = 1000});
    return result.ok() ? Text((*result)->root()) : result.error().message;
  };
  EXPECT_EQ(apply(R"([{"op":"move","from":"/d","path":"/a/x"}])"), R"({"a":{"b/c":[1,2],"x":1}})");
  EXPECT_EQ(apply(R"([{"op":"copy","from":"/a/b~1c/0","path":"/a/b~1c/-"}])"),
            R"({"a":{"b/c":[1,2,1]},"d":1})");
  EXPECT_EQ(apply(R"([{"op":"replace","path":"","value":{"x":1}}])"), R"({"x":1})");
  std::string bomb = "[";
  for (int i = 0; i < 50; ++i) bomb += R"({"op":"copy","from":"/a","path":"/a/y"},)";
  bomb.back() = ']';
  EXPECT_NE(apply(bomb).find("exceeding the limit"), std::string::npos);
}

TEST(StrategicPatch, MergesIntoOpaqueJson) {
  const TreePtr original =
      Draft{{"spec", Draft::Map({{"x", Draft::Raw("{\"a\": 1, \"b\": 2}")}})}}.Freeze();
  const TreePtr patch = *ParseJson(R"({"spec":{"x":{"a":null,"c":3}}})");
  const StructSchema& pod = *FindKindByApiVersion("v1", "Pod")->schema;
  EXPECT_EQ(Text((*ApplyStrategicPatch(original->root(), patch->root(), pod))->root()),
            R"({"spec":{"x":{"b":2,"c":3}}})");
}

}  // namespace
}  // namespace drakkar::api
