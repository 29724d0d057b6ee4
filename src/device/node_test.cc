#include "device/node.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "device/from_api.h"
#include "device/slice.h"

namespace drakkar::device {
namespace {

TEST(Node, SkipsOperationsUnderEitherNameOfTheFeature) {
  const std::pair<const char*, bool> cases[] = {
      {R"({"status":{"declaredFeatures":["A","DraOptionalNodePreparation"]}})", true},
      {R"({"status":{"declaredFeatures":["DRAOptionalNodeOperations","B"]}})", true},
      {R"({"status":{"declaredFeatures":["A","draOptionalNodePreparation"]}})", false},
      {R"({"status":{"declaredFeatures":[]}})", false},
      {R"({})", false},
  };
  for (const auto& [text, can_skip] : cases) {
    const auto node = api::ParseJson(text);
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(CanSkipOperations((*node)->root()), can_skip) << text;
    EXPECT_EQ(CanSkipOperations(NodeFromApi((*node)->root())), can_skip) << text;
  }
}

TEST(NodeTarget, MeansOneNodeOrAllOrThoseOfASelector) {
  const Node node{"n1", {{"zone", "a"}}, {}};
  EXPECT_TRUE(*Matches(NodeTarget{"n1", false, {}}, node));
  EXPECT_FALSE(*Matches(NodeTarget{"n2", false, {}}, node));
  EXPECT_TRUE(*Matches(NodeTarget{"", true, {}}, node));
  EXPECT_TRUE(*Matches(NodeTarget{"", false, SelectNode("n1")}, node));
  EXPECT_FALSE(*Matches(NodeTarget{"", false, SelectNode("n2")}, node));
  EXPECT_FALSE(*Matches(NodeTarget{}, node)) << "of an unknown kind";
}

TEST(Ids, AreWrittenAsPaths) {
  EXPECT_EQ((PoolId{"d", "p"}.ToString()), "d/p");
  EXPECT_EQ((DeviceId{"d", "p", "x"}.ToString()), "d/p/x");
}

}  // namespace
}  // namespace drakkar::device
