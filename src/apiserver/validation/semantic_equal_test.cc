#include "apiserver/validation/semantic_equal.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Compares two devices.
bool Same(std::string_view a, std::string_view b) {
  const auto left = api::ParseJson(a), right = api::ParseJson(b);
  EXPECT_TRUE(left.ok() && right.ok());
  const bool same = SemanticEqual((*left)->root(), (*right)->root(), "Device");
  EXPECT_EQ(SemanticEqual((*right)->root(), (*left)->root(), "Device"), same) << "symmetric";
  return same;
}

TEST(SemanticEqual, QuantitiesAreComparedByAmount) {
  const auto capacity = [](std::string_view value) {
    return StrCat(R"({"capacity":{"m":{"value":)", value, "}}}");
  };
  EXPECT_TRUE(Same(capacity("\"1Gi\""), capacity("\"1024Mi\"")));
  EXPECT_TRUE(Same(capacity("\"1\""), capacity("\"1000m\"")));
  EXPECT_FALSE(Same(capacity("\"1Gi\""), capacity("\"1G\"")));
  EXPECT_FALSE(Same(capacity("\"1\""), R"({"capacity":{"m":{}}})"));
  EXPECT_FALSE(Same(capacity("\"x\""), capacity("\"y\""))) << "neither is an amount";
  EXPECT_TRUE(Same(capacity("\"x\""), capacity("\"x\"")));
}

TEST(SemanticEqual, AnEmptyListOrMapIsLikeNone) {
  EXPECT_TRUE(Same(R"({"name":"a","taints":[]})", R"({"name":"a"})"));
  EXPECT_TRUE(Same(R"({"name":"a","attributes":{}})", R"({"name":"a"})"));
  EXPECT_FALSE(Same(R"({"name":"a","taints":[{"key":"k"}]})", R"({"name":"a"})"));
  EXPECT_FALSE(Same(R"({"attributes":{"x":{"int":1}}})", "{}"));
}

TEST(SemanticEqual, ListsAreComparedInOrderAndMapsByKey) {
  EXPECT_TRUE(Same(R"({"bindingConditions":["a","b"]})", R"({"bindingConditions":["a","b"]})"));
  EXPECT_FALSE(Same(R"({"bindingConditions":["a","b"]})", R"({"bindingConditions":["b","a"]})"));
  EXPECT_FALSE(Same(R"({"bindingConditions":["a","b"]})", R"({"bindingConditions":["a","c"]})"));
  EXPECT_FALSE(Same(R"({"bindingConditions":["a","b"]})", R"({"bindingConditions":["a"]})"));
  EXPECT_TRUE(Same(R"({"attributes":{"x":{"int":1},"y":{"int":2}}})",
                   R"({"attributes":{"y":{"int":2},"x":{"int":1}}})"));
  EXPECT_FALSE(Same(R"({"attributes":{"x":{"int":1},"y":{"int":2}}})",
                    R"({"attributes":{"x":{"int":1},"y":{"int":3}}})"));
  EXPECT_FALSE(Same(R"({"attributes":{"x":{"int":1}}})", R"({"attributes":{"y":{"int":1}}})"));
}

TEST(SemanticEqual, APointerThatIsSetDiffersFromOneThatIsNot) {
  EXPECT_FALSE(Same(R"({"bindsToNode":false})", "{}"));
  EXPECT_FALSE(Same(R"({"nodeName":""})", "{}"));
  EXPECT_FALSE(Same(R"({"attributes":{"x":{"int":0}}})", R"({"attributes":{"x":{}}})"));
}

TEST(SemanticEqual, AZeroValueThatIsNoPointerIsLikeNone) {
  EXPECT_TRUE(Same(R"({"name":""})", "{}"));
  EXPECT_FALSE(Same(R"({"name":"a"})", "{}"));
  EXPECT_FALSE(Same(R"({"name":"a"})", R"({"name":"b"})"));
  const auto pool = [](std::string_view a, std::string_view b) {
    const auto left = api::ParseJson(a), right = api::ParseJson(b);
    return SemanticEqual((*left)->root(), (*right)->root(), "ResourcePool");
  };
  EXPECT_TRUE(pool(R"({"name":"p","generation":0})", R"({"name":"p"})"));
  EXPECT_FALSE(pool(R"({"name":"p","generation":1})", R"({"name":"p"})"));
}

TEST(SemanticEqual, FreeFormValuesAreComparedAsWritten) {
  const auto config = [](std::string_view a, std::string_view b) {
    const auto left = api::ParseJson(a), right = api::ParseJson(b);
    return SemanticEqual((*left)->root(), (*right)->root(), "OpaqueDeviceConfiguration");
  };
  EXPECT_TRUE(config(R"({"parameters":{"a":[1]}})", R"({"parameters":{"a":[1]}})"));
  EXPECT_FALSE(config(R"({"parameters":{"a":[1]}})", R"({"parameters":{"a":[2]}})"));
  EXPECT_FALSE(config(R"({"parameters":{}})", "{}"));
  EXPECT_TRUE(config("{}", "{}"));
}

// As requests have them, next to those that were read from the store.
TEST(SemanticEqual, FreeFormBytesEqualTheirTree) {
  const auto tree = api::ParseJson(R"({"parameters":{"a":[1],"b":"x"}})");
  const auto as_bytes = [](std::string_view text) {
    api::Draft draft = api::Draft::Object();
    draft["parameters"] = api::Draft::Raw(std::string(text));
    return draft.Freeze();
  };
  const auto same = [&](const api::TreePtr& bytes) {
    const bool one = SemanticEqual(bytes->root(), (*tree)->root(), "OpaqueDeviceConfiguration");
    EXPECT_EQ(SemanticEqual((*tree)->root(), bytes->root(), "OpaqueDeviceConfiguration"), one);
    return one;
  };
  EXPECT_TRUE(same(as_bytes(R"({"b": "x", "a": [1]})")));
  EXPECT_FALSE(same(as_bytes(R"({"b":"x","a":[2]})")));
  EXPECT_FALSE(same(as_bytes("{")));
}

TEST(SemanticEqual, KnowsTheStructsOfTheAlphaVersion) {
  const auto one = api::ParseJson(R"({"poolCount":1})"), two = api::ParseJson(R"({"poolCount":2})");
  EXPECT_TRUE(SemanticEqual((*one)->root(), (*one)->root(), "ResourcePoolStatusRequestStatus"));
  EXPECT_FALSE(SemanticEqual((*one)->root(), (*two)->root(), "ResourcePoolStatusRequestStatus"));
}

}  // namespace
}  // namespace drakkar::apiserver
