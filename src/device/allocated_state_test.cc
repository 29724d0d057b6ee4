#include "device/allocated_state.h"

#include <gtest/gtest.h>

#include "base/env/random.h"

namespace drakkar::device {
namespace {

const DeviceId kDevice{"d", "p", "dev"};

AllocationResult Share(std::string share, std::int64_t units) {
  AllocationResult allocation;
  DeviceResult& result = allocation.results.emplace_back();
  result.id = kDevice;
  result.share_id = std::move(share);
  result.consumed_capacity.push_back({"units", api::Quantity(units)});
  return allocation;
}

TEST(AllocatedState, SumsUpSharesAndForgetsThem) {
  AllocatedState state;
  state.Add(Share("s1", 2));
  state.Add(Share("s2", 3));
  const DeviceUse* use = state.FindDevice(kDevice);
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->exclusive, 0);
  EXPECT_EQ(use->consumed.at("units"), api::Quantity(5));
  state.Remove(Share("s1", 2));
  EXPECT_EQ(state.FindDevice(kDevice)->consumed.at("units"), api::Quantity(3));
  state.Remove(Share("s2", 3));
  EXPECT_EQ(state.FindDevice(kDevice), nullptr);
  EXPECT_TRUE(state.pools().empty());
}

TEST(AllocatedState, AdminAccessHoldsNothing) {
  AllocatedState state;
  AllocationResult allocation;
  allocation.results.emplace_back().id = kDevice;
  allocation.results[0].admin_access = true;
  state.Add(allocation);
  EXPECT_EQ(state.FindDevice(kDevice), nullptr);
  EXPECT_TRUE(state.TakeChanges().empty());
}

TEST(AllocatedState, SeveralResultsOfOneAllocationAreHeldAndReleasedTogether) {
  AllocatedState state;
  AllocationResult allocation = Share("s1", 2);
  allocation.results[0].consumed_capacity.push_back({"cores", api::Quantity(1)});
  allocation.results.emplace_back().id = {"d", "p", "admin"};
  allocation.results.back().admin_access = true;
  allocation.results.emplace_back().id = {"d", "p", "own"};
  state.Add(allocation);
  EXPECT_EQ(state.FindDevice(kDevice)->shares, std::set<std::string>{"s1"});
  EXPECT_EQ(state.FindDevice(kDevice)->consumed.at("units"), api::Quantity(2));
  EXPECT_EQ(state.FindDevice(kDevice)->consumed.at("cores"), api::Quantity(1));
  EXPECT_EQ(state.FindDevice({"d", "p", "admin"}), nullptr);
  EXPECT_EQ(state.FindDevice({"d", "p", "own"})->exclusive, 1);
  state.Add(Share("s2", 3));
  state.Remove(allocation);
  EXPECT_EQ(state.FindDevice(kDevice)->shares, std::set<std::string>{"s2"});
  EXPECT_EQ(state.FindDevice(kDevice)->consumed.at("units"), api::Quantity(3));
  EXPECT_EQ(state.FindDevice(kDevice)->consumed.at("cores"), api::Quantity(0));
  EXPECT_EQ(state.FindDevice({"d", "p", "own"}), nullptr);
}

TEST(AllocatedState, ForgetsADeviceButNotItsNeighbours) {
  AllocatedState state;
  state.AddExclusive(kDevice);
  state.AddExclusive({"d", "p", "other"});
  state.RemoveExclusive(kDevice);
  EXPECT_EQ(state.FindDevice(kDevice), nullptr);
  EXPECT_NE(state.FindDevice({"d", "p", "other"}), nullptr);
  EXPECT_EQ(state.FindDevice({"d", "elsewhere", "dev"}), nullptr);
}

// Shares and amounts may arrive separately, and a removal may come without its addition.
TEST(AllocatedState, ConsumptionEndsWithTheLastShare) {
  AllocatedState state;
  state.AddConsumed(kDevice, {{"units", api::Quantity(2)}});
  EXPECT_TRUE(state.FindDevice(kDevice)->IsUsed());
  state.AddShare(kDevice, "s1");
  state.RemoveShare(kDevice, "s1");
  EXPECT_TRUE(state.pools().empty());
  state.AddConsumed(kDevice, {});
  EXPECT_TRUE(state.pools().empty());
  state.AddConsumed(kDevice, {{"units", api::Quantity(2)}});
  state.RemoveConsumed(kDevice, {{"cores", api::Quantity(1)}, {"units", api::Quantity(2)}});
  EXPECT_TRUE(state.pools().empty());
}

TEST(AllocatedState, ARemovalThatWasNeverAddedChangesNothing) {
  AllocatedState state;
  state.RemoveExclusive(kDevice);
  state.Unbar(kDevice);
  EXPECT_TRUE(state.pools().empty());
  EXPECT_EQ(state.contested(), 0u);
  state.AddExclusive(kDevice);
  EXPECT_EQ(state.FindDevice(kDevice)->exclusive, 1);
}

TEST(AllocatedState, CountsDevicesThatAreHeldTwice) {
  AllocatedState state;
  state.AddExclusive(kDevice);
  state.AddExclusive({"d", "p", "other"});
  EXPECT_EQ(state.contested(), 0u);
  for (int i = 0; i < 2; ++i) state.AddExclusive(kDevice);
  EXPECT_EQ(state.contested(), 1u);
  state.RemoveExclusive(kDevice);
  EXPECT_EQ(state.contested(), 1u);
  for (int i = 0; i < 2; ++i) state.RemoveExclusive(kDevice);
  EXPECT_EQ(state.contested(), 0u);
}

TEST(AllocatedState, ABarHoldsNothing) {
  AllocatedState state;
  state.Bar(kDevice);
  EXPECT_EQ(state.TakeChanges().size(), 1u);
  ASSERT_NE(state.FindDevice(kDevice), nullptr);
  EXPECT_FALSE(state.FindDevice(kDevice)->IsUsed());
  state.Bar(kDevice);
  state.Unbar(kDevice);
  EXPECT_EQ(state.FindDevice(kDevice)->bars, 1);
  state.AddExclusive(kDevice);
  state.Unbar(kDevice);
  EXPECT_TRUE(state.FindDevice(kDevice)->IsUsed());
  state.RemoveExclusive(kDevice);
  EXPECT_TRUE(state.pools().empty());
}

TEST(AllocatedState, ReportsWhichPoolsChanged) {
  AllocatedState state;
  state.AddExclusive(kDevice);
  state.AddExclusive({"d", "p", "dev2"});
  EXPECT_EQ(state.TakeChanges(), (std::vector<PoolId>{{"d", "p"}}));
  EXPECT_TRUE(state.TakeChanges().empty());
  state.RemoveExclusive(kDevice);
  EXPECT_EQ(state.TakeChanges().size(), 1u);
}

TEST(AllocatedState, IsEmptyAgainAfterAnyBalancedSequence) {
  SeededRandom random(3);
  AllocatedState state;
  std::vector<AllocationResult> held;
  for (int i = 0; i < 1'000; ++i) {
    if (!held.empty() && random.Below(2) == 0) {
      const std::size_t at = random.Below(held.size());
      state.Remove(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    AllocationResult allocation = Share("share-" + std::to_string(i), 1 + i % 3);
    if (random.Below(2) == 0) allocation.results[0].share_id.clear();
    state.Add(allocation);
    held.push_back(std::move(allocation));
    std::int64_t units = 0;
    int exclusive = 0;
    for (const AllocationResult& one : held) {
      const bool shared = !one.results[0].share_id.empty();
      units += shared ? one.results[0].consumed_capacity[0].value.Value() : 0;
      exclusive += shared ? 0 : 1;
    }
    const DeviceUse* use = state.FindDevice(kDevice);
    ASSERT_EQ(use->exclusive, exclusive);
    if (units > 0) {
      ASSERT_EQ(use->consumed.at("units").Value(), units);
    }
  }
  for (const AllocationResult& allocation : held) state.Remove(allocation);
  EXPECT_TRUE(state.pools().empty());
}

}  // namespace
}  // namespace drakkar::device
