#include "device/inventory.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

std::shared_ptr<Slice> MakeSlice(std::string name, std::string pool, std::string node) {
  auto slice = std::make_shared<Slice>();
  slice->name = std::move(name);
  slice->driver = "d";
  slice->pool = std::move(pool);
  slice->target.node_name = std::move(node);
  slice->target.all_nodes = slice->target.node_name.empty();
  slice->devices.emplace_back().name = "dev";
  return slice;
}

TEST(Inventory, FindsPoolsByNodeAndForgetsThemWithTheirLastSlice) {
  Inventory inventory;
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.SetSlice(MakeSlice("s2", "p1", "n1"));
  inventory.SetSlice(MakeSlice("s3", "p2", ""));
  EXPECT_EQ(inventory.PoolsOfNode("n1"), (std::set<PoolId>{{"d", "p1"}}));
  EXPECT_EQ(inventory.shared_pools(), (std::set<PoolId>{{"d", "p2"}}));
  inventory.RemoveSlice("s1");
  EXPECT_EQ(inventory.PoolsOfNode("n1").size(), 1u);
  inventory.RemoveSlice("s2");
  EXPECT_TRUE(inventory.PoolsOfNode("n1").empty());
  EXPECT_EQ(inventory.FindPool({"d", "p1"}), nullptr);
  inventory.RemoveSlice("s3");
  EXPECT_TRUE(inventory.shared_pools().empty());
  inventory.RemoveSlice("never there");
}

TEST(Inventory, ReplacesASliceThatMovedToAnotherPoolAndNode) {
  Inventory inventory;
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.TakeChanges();
  inventory.SetSlice(MakeSlice("s1", "p2", "n2"));
  EXPECT_TRUE(inventory.PoolsOfNode("n1").empty());
  EXPECT_EQ(inventory.PoolsOfNode("n2").size(), 1u);
  const auto changes = inventory.TakeChanges();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].pool.pool, "p1");
  EXPECT_EQ(changes[0].nodes, std::set<std::string>{"n1"});
  EXPECT_EQ(changes[1].pool.pool, "p2");
  EXPECT_FALSE(changes[1].shared);
  EXPECT_TRUE(inventory.TakeChanges().empty());
}

TEST(Inventory, APoolMayHaveSlicesOfSeveralNodesAndSharedOnes) {
  Inventory inventory;
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.SetSlice(MakeSlice("s2", "p1", "n2"));
  inventory.SetSlice(MakeSlice("s3", "p1", ""));
  inventory.SetSlice(MakeSlice("s4", "p2", "n1"));
  const auto changes = inventory.TakeChanges();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].pool, (PoolId{"d", "p1"}));
  EXPECT_EQ(changes[0].nodes, (std::set<std::string>{"n1", "n2"}));
  EXPECT_TRUE(changes[0].shared);
  EXPECT_FALSE(changes[1].shared);
  EXPECT_EQ(inventory.PoolsOfNode("n1"), (std::set<PoolId>{{"d", "p1"}, {"d", "p2"}}));
  inventory.RemoveSlice("s1");
  EXPECT_EQ(inventory.PoolsOfNode("n1"), (std::set<PoolId>{{"d", "p2"}}));
  EXPECT_EQ(inventory.PoolsOfNode("n2"), (std::set<PoolId>{{"d", "p1"}}));
  EXPECT_EQ(inventory.shared_pools(), (std::set<PoolId>{{"d", "p1"}}));
  EXPECT_EQ(inventory.FindPool({"d", "p1"})->slices.size(), 2u);
  inventory.RemoveSlice("s3");
  EXPECT_TRUE(inventory.shared_pools().empty());
}

TEST(Inventory, OnlyPoolsThatARuleMatchesChangeWithIt) {
  Inventory inventory;
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.SetSlice(MakeSlice("s2", "p2", "n2"));
  inventory.SetSlice(MakeSlice("s3", "p3", "n3"));
  inventory.TakeChanges();
  const Taint taint{"k", "", "NoSchedule", ""};
  inventory.SetTaintRule({"r", TaintRule::DeviceSelector{{}, "p2", {}}, taint, {}});
  const auto changes = inventory.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].nodes, std::set<std::string>{"n2"});
  inventory.SetTaintRule({"r", TaintRule::DeviceSelector{{}, "p3", {}}, taint, {}});
  EXPECT_EQ(inventory.TakeChanges().size(), 2u) << "the pool before and the pool now";
  EXPECT_TRUE(inventory.FindPool({"d", "p2"})->taint_rules.empty());
  EXPECT_EQ(inventory.FindPool({"d", "p3"})->taint_rules.size(), 1u);
  inventory.RemoveTaintRule("never there");
  EXPECT_TRUE(inventory.TakeChanges().empty());
}

TEST(Inventory, AddsTaintsOfRulesInOrderOfTheirNames) {
  Inventory inventory;
  inventory.SetTaintRule(
      {"b", TaintRule::DeviceSelector{"d", {}, {}}, {"kb", "", "NoSchedule", ""}, {}});
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.TakeChanges();
  inventory.SetTaintRule({"a", TaintRule::DeviceSelector{}, {"ka", "", "NoExecute", ""}, {}});
  EXPECT_EQ(inventory.TakeChanges().size(), 1u);
  const Pool* pool = inventory.FindPool({"d", "p1"});
  const Device& device = pool->slices.begin()->second->devices[0];
  ASSERT_EQ(pool->TaintsOf(device).size(), 2u);
  EXPECT_EQ(pool->TaintsOf(device)[0].key, "ka");
  inventory.RemoveTaintRule("a");
  ASSERT_EQ(pool->TaintsOf(device).size(), 1u);
  inventory.SetTaintRule(
      {"b", TaintRule::DeviceSelector{{}, {}, "other"}, {"kb", "", "NoSchedule", ""}, {}});
  EXPECT_TRUE(pool->TaintsOf(device).empty());
}

TEST(Inventory, ARuleWithoutASelectorMatchesNothing) {
  Inventory inventory;
  inventory.SetSlice(MakeSlice("s1", "p1", "n1"));
  inventory.SetTaintRule({"r", std::nullopt, {"k", "", "NoSchedule", ""}, {}});
  const Pool* pool = inventory.FindPool({"d", "p1"});
  EXPECT_TRUE(pool->TaintsOf(pool->slices.begin()->second->devices[0]).empty());
}

}  // namespace
}  // namespace drakkar::device
