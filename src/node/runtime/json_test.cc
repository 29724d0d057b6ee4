#include "node/runtime/json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(RuntimeJson, TextsOfListsAndMapsLeaveOutAnythingElse) {
  const api::TreePtr tree = *ParseJson(R"({"args":["x",1,null,""],"labels":{"b":"2","a":1}})");
  EXPECT_THAT(Strings(tree->root()["args"]), ElementsAre("x", ""));
  EXPECT_THAT(StringMap(tree->root()["labels"]), ElementsAre(Pair("b", "2")));
  EXPECT_THAT(Strings(tree->root()["labels"]), ElementsAre());
  EXPECT_THAT(StringMap(tree->root()["args"]), ElementsAre());
}

TEST(RuntimeJson, RefusesDuplicatesDepthAndSize) {
  EXPECT_THAT(ParseJson("{\"a\":null,\n\"a\":2}").error().message, HasSubstr("line 2"));
  EXPECT_FALSE(ParseJson(std::string(100, '[')).ok());
  EXPECT_THAT(ParseJson(std::string(65, '[') + std::string(65, ']')).error().message,
              HasSubstr("depth"));
  EXPECT_FALSE(ParseJson(std::string(kMaxJsonBytes, ' ') + "1").ok());
}

}  // namespace
}  // namespace drakkar::node
