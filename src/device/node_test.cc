#include "device/node.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "device/from_api.h"

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

}  // namespace
}  // namespace drakkar::device
