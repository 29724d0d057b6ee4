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

using Kind = Allocator::Verdict::Kind;

TEST(Verdicts, SayWhyAClaimFitsNoNodeOfAClass) {
  Cluster cluster(2);
  for (int i = 0; i < 10; ++i) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(1), StrCat("basic-device-", i)});
  }
  Allocator::Verdicts verdicts;
  const auto of = [&](int node) {
    return verdicts.distinct.at(
        verdicts.by_node.at(*cluster.allocator.nodes().FindNode(NodeName(node))));
  };
  cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 1)})), {}, verdicts);
  EXPECT_EQ(of(0).kind, Kind::kFits);
  EXPECT_EQ(of(1).kind, Kind::kUnsatisfiable);
  EXPECT_EQ(of(1).why.reason, Reason::kNoDevices);
  EXPECT_EQ(of(1).why.message, "cannot allocate all claims");
  SearchBudget one_step;
  one_step.steps = 1;
  cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 3)})), one_step,
                           verdicts);
  EXPECT_EQ(of(0).kind, Kind::kBudgetExceeded);
  EXPECT_FALSE(of(0).error);
  const ClaimPtr fails = MakeClaim(
      {ExactRequest("r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].absent == 1"))});
  cluster.allocator.Filter(cluster.PrepareOne(fails), {}, verdicts);
  EXPECT_EQ(of(0).kind, Kind::kFatal);
  ASSERT_TRUE(of(0).error);
  EXPECT_EQ(of(0).error->message, cluster.WhyNot(fails));
  EXPECT_EQ(of(1).kind, Kind::kUnsatisfiable) << "no selector is asked about held devices";
}

TEST(Verdicts, ARemovedNodeHasNone) {
  Cluster cluster(3);
  const NodeNumber removed = *cluster.allocator.nodes().FindNode(NodeName(1));
  Allocator::Verdicts verdicts;
  for (const bool known : {true, false}) {
    if (!known) cluster.allocator.RemoveNode(NodeName(1));
    cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 1)})), {}, verdicts);
    ASSERT_EQ(verdicts.by_node.size(), 3u);
    EXPECT_EQ(verdicts.distinct.size(), 1u) << "those of earlier calls are gone";
    for (NodeNumber node = 0; node < 3; ++node) {
      EXPECT_EQ(verdicts.by_node[node] != Allocator::Verdicts::kNotANode, known || node != removed);
    }
  }
}

TEST(Verdicts, ADeviceOfAPoolForAllNodesThatIsTakenIsMissingOnEach) {
  Cluster cluster(0);
  auto slice = PerfSlice(0, 1);
  slice->target = {"", true, {}};
  cluster.inventory.SetSlice(slice);
  for (int i = 0; i < 2; ++i) cluster.allocator.SetNode({NodeName(i), {}, {}});
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  const auto fits = [&] {
    Allocator::Verdicts verdicts;
    cluster.allocator.Filter(cluster.PrepareOne(claim), {}, verdicts);
    EXPECT_EQ(verdicts.distinct.size(), 1u);
    return verdicts.distinct[0].kind == Kind::kFits;
  };
  EXPECT_TRUE(fits());
  const device::DeviceId id{kTestDriver, NodeName(0), "basic-device-0"};
  cluster.allocated.AddExclusive(id);
  EXPECT_FALSE(fits());
  for (const int node : {0, 1}) EXPECT_EQ(AsYes(cluster.Allocate(claim, node)), nullptr);
  cluster.allocated.RemoveExclusive(id);
  EXPECT_TRUE(fits());
  cluster.inventory.RemoveSlice(slice->name);
  EXPECT_FALSE(fits());
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
