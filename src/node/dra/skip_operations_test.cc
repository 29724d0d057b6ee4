#include "node/dra/skip_operations.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::node {
namespace {

using List = std::vector<std::string>;

TEST(SkipOperations, AggregatesOverAllDevicesOfADriver) {
  EXPECT_EQ(AggregateSkips({{"*"}, {"*"}}), List{"*"});
  EXPECT_EQ(AggregateSkips({{"*"}, {}}), List{});
  EXPECT_EQ(AggregateSkips({{"*"}, {"NodeUnprepareResources"}}), List{"NodeUnprepareResources"});
  EXPECT_EQ(AggregateSkips({{"*", "NodePrepareResources"}, {"NodePrepareResources"}}),
            List{"NodePrepareResources"});
  EXPECT_EQ(AggregateSkips({{"NodeUnprepareResources"}, {"*", "NodePrepareResources"}}),
            List{"NodeUnprepareResources"});
  EXPECT_EQ(AggregateSkips({{"Unknown"}}), List{"Unknown"});
  EXPECT_EQ(AggregateSkips({{"NodePrepareResources", "NodeUnprepareResources"},
                            {"NodeUnprepareResources", "NodePrepareResources"}}),
            (List{"NodePrepareResources", "NodeUnprepareResources"}));
  EXPECT_EQ(AggregateSkips({}), List{});
}

TEST(SkipOperations, ReadsTheBooleanAndTheListForm) {
  auto read = [](std::string_view json) { return ReadSkipField((*api::ParseJson(json))->root()); };
  EXPECT_EQ(read("true"), List{"*"});
  EXPECT_EQ(read("false"), List{});
  EXPECT_EQ(read("[]"), List{});
  EXPECT_EQ(read(R"(["NodePrepareResources","*"])"), (List{"NodePrepareResources", "*"}));
  EXPECT_EQ(ReadSkipField(api::Value()), List{});
}

TEST(SkipOperations, AStarSkipsEveryOperation) {
  EXPECT_TRUE(Skips({"*"}, kSkipPrepare));
  EXPECT_TRUE(Skips({"NodeUnprepareResources"}, kSkipUnprepare));
  EXPECT_FALSE(Skips({"NodeUnprepareResources"}, kSkipPrepare));
  EXPECT_FALSE(Skips({}, kSkipPrepare));
}

}  // namespace
}  // namespace drakkar::node
