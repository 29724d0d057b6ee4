#include "api/apply/field_set.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

std::string Text(const FieldNode* set) {
  std::string out;
  AppendFieldsV1(out, set);
  return out;
}

const FieldNode* Parse(std::string_view json, Arena& arena) {
  Result<const FieldNode*> set = ParseFieldsV1(json, arena);
  EXPECT_TRUE(set.ok()) << json;
  return set.ok() ? *set : nullptr;
}

TEST(FieldSet, WritesWhatItReadInOrder) {
  Arena arena;
  EXPECT_EQ(
      Text(Parse(R"({ "f:b" : {}, "f:a": {".": {}, "k:{\"name\":\"x\"}": {"f:y":{}}}})", arena)),
      R"({"f:a":{".":{},"k:{\"name\":\"x\"}":{"f:y":{}}},"f:b":{}})");
  EXPECT_EQ(Parse("{}", arena), nullptr);
}

TEST(FieldSet, RefusesWhatIsNoSet) {
  Arena arena;
  for (std::string_view bad : {"", "[]", R"({"a":{}})", R"({"f:a":1})", R"({"f:a":{})", "{} x",
                               R"({"x:a":{}})", R"({"f:a)", R"({".":{"f:a":{}}})"}) {
    EXPECT_FALSE(ParseFieldsV1(bad, arena).ok()) << bad;
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"f:a":)";
  EXPECT_FALSE(ParseFieldsV1(deep, arena).ok());
}

TEST(FieldSet, AddsTakesAwayAndIntersectsPathByPath) {
  Arena arena;
  const FieldNode* a = Parse(R"({"f:a":{".":{},"f:x":{}},"f:b":{}})", arena);
  const FieldNode* b = Parse(R"({"f:a":{"f:x":{},"f:y":{}},"f:c":{}})", arena);
  EXPECT_EQ(Text(Union(a, b, kOwned, arena)),
            R"({"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:c":{}})");
  EXPECT_EQ(Text(Subtract(a, b, kOwned, arena)), R"({"f:a":{},"f:b":{}})");
  EXPECT_EQ(Text(Intersect(a, b, kOwned, arena)), R"({"f:a":{"f:x":{}}})");
  EXPECT_EQ(Subtract(a, a, kOwned, arena), nullptr);
  EXPECT_EQ(Text(SubtractBelow(b, Parse(R"({"f:a":{}})", arena), arena)), R"({"f:c":{}})");
}

TEST(FieldSet, PathsReadAsKubernetesWritesThem) {
  Arena arena;
  std::vector<std::string> paths;
  ForEachPath(Parse(R"({"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":)"
                    R"({"f:name":{}}},"f:set":{"v:\"x\"":{}}}})",
                    arena),
              [&](const std::string& path) { paths.push_back(path); });
  EXPECT_EQ(paths, (std::vector<std::string>{".spec.ports[containerPort=80,protocol=\"TCP\"].name",
                                             ".spec.set[=\"x\"]"}));
}

}  // namespace
}  // namespace drakkar::api
