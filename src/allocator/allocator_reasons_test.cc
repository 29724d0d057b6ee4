// Why a claim does not fit, on nodes with several pools, and answers that are used again.
#include <gtest/gtest.h>

#include <set>

#include "allocator/testing/cluster.h"

namespace drakkar::allocator {
namespace {

// A node with two pools of one device each, "pool-0/dev-0" and "pool-1/dev-1".
struct TwoPools : Cluster {
  template <typename Change>
  TwoPools(Features features, const Change& change) : Cluster(0, features) {
    for (int i = 0; i < 2; ++i) {
      auto slice = PerfSlice(0, 1);
      slice->name = StrCat("slice-", i);
      slice->pool = StrCat("pool-", i);
      slice->devices[0].name = StrCat("dev-", i);
      change(*slice, i);
      inventory.SetSlice(slice);
    }
    allocator.SetNode({NodeName(0), {}, {}});
  }
};

TEST(Reasons, ThePoolWithBindingConditionsMayBeAnyPool) {
  for (const int binds : {0, 1}) {
    TwoPools cluster({}, [&](device::Slice& slice, int i) {
      if (i == binds) slice.devices[0].binding_conditions = {"Ready"};
    });
    EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("r", 2)})),
              "cannot allocate all claims: devices have binding conditions, but the "
              "DRADeviceBindingConditions feature gate is disabled")
        << binds;
  }
}

TEST(Reasons, ThePoolThatSkipsNodeOperationsMayBeAnyPoolAndTheFirstIsNamed) {
  for (const std::set<int>& skips : {std::set{0}, std::set{1}, std::set{0, 1}}) {
    TwoPools cluster({}, [&](device::Slice& slice, int i) {
      if (skips.contains(i)) slice.skip_node_operations.form = true;
    });
    EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("r", 2)})),
              StrCat("ResourceSlice slice-", *skips.begin(),
                     " skips node operations, but the DRAOptionalNodePreparation feature gate is "
                     "disabled"));
  }
}

TEST(Reasons, AGateIsNotToBlameIfTheClaimDoesNotFitWithItEither) {
  TwoPools skipping({}, [](device::Slice& slice, int) { slice.skip_node_operations.form = true; });
  EXPECT_EQ(skipping.WhyNot(MakeClaim({ExactRequest("r", 3)})), "cannot allocate all claims");
  TwoPools binding(
      {}, [](device::Slice& slice, int) { slice.devices[0].binding_conditions = {"Ready"}; });
  EXPECT_EQ(binding.WhyNot(MakeClaim({ExactRequest("r", 3)})), "cannot allocate all claims");
}

TEST(Explain, NamesEveryPoolThatIsNotComplete) {
  for (const std::set<int>& incomplete : {std::set{0}, std::set{1}, std::set{0, 1}}) {
    TwoPools cluster({}, [&](device::Slice& slice, int i) {
      if (incomplete.contains(i)) slice.slice_count = 2;
    });
    std::set<int> named;
    for (const PoolProblem& pool : cluster.Explain(MakeClaim({ExactRequest("r", 1)})).pools) {
      EXPECT_FALSE(pool.invalid);
      named.insert(pool.pool.pool.back() - '0');
    }
    EXPECT_EQ(named, incomplete);
  }
}

TEST(Explain, AHeldDeviceWhoseSelectorFailsWouldNotDo) {
  auto slice = PerfSlice(0, 3);
  slice->devices[1].attributes.clear();
  Cluster cluster(slice);
  for (const char* device : {"basic-device-1", "basic-device-2"}) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), device});
  }
  const Explanation explanation = cluster.Explain(MakeClaim(
      {ExactRequest("r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].model == \"B60\""))}));
  EXPECT_TRUE(explanation.fits);
  const RequestExplanation& request = explanation.claims[0].requests[0];
  ASSERT_EQ(request.refusals.size(), 1u);
  EXPECT_EQ(request.refusals[0].count, 2u);
  ASSERT_EQ(request.held_count, 1u);
  EXPECT_EQ(request.held[0].device, "basic-device-2");
}

TEST(Answers, AreUsedAgainOnlyIfTheAllocatorIsToldTo) {
  for (const bool reuse : {true, false}) {
    Harness harness({}, reuse);
    harness.inventory.SetSlice(PerfSlice(0, 3));
    harness.allocator.SetNode({NodeName(0), {}, {}});
    const ClaimPtr claim = MakeClaim({ExactRequest("r", 2)});
    const Problem problem = harness.allocator.Prepare(std::span(&claim, 1), OneClass(PerfClass()));
    ASSERT_NE(AsYes(harness.allocator.Allocate(problem, NodeName(0), {})), nullptr);
    SearchBudget none;
    none.steps = 0;
    const Result<Outcome> again = harness.allocator.Allocate(problem, NodeName(0), none);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(std::holds_alternative<Allocation>(*again), reuse);
    EXPECT_EQ(std::holds_alternative<BudgetExceeded>(*again), !reuse);
  }
}

}  // namespace
}  // namespace drakkar::allocator
