#include "allocator/allocator.h"

#include <gtest/gtest.h>

#include "allocator/testing/cluster.h"

namespace drakkar::allocator {
namespace {

TEST(Allocator, TakesTheFirstFreeDeviceAndTheNextOnceThatIsHeld) {
  Cluster cluster(1);
  const ClaimPtr claim = MakeClaim({ExactRequest("req-0", 1)});
  for (int i = 0; i < 10; ++i) {
    const auto outcome = cluster.Allocate(claim);
    ASSERT_NE(AsYes(outcome), nullptr);
    EXPECT_EQ(AsYes(outcome)->results[0].results[0].id.device, StrCat("basic-device-", i));
    cluster.allocated.Add(AsYes(outcome)->results[0]);
  }
  const auto full = cluster.Allocate(claim);
  ASSERT_NE(AsNo(full), nullptr);
  EXPECT_EQ(AsNo(full)->message, "cannot allocate all claims");
}

TEST(Allocator, SearchesOncePerClassOfNodes) {
  Cluster cluster(50);
  for (int i = 0; i < 10; ++i) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(7), StrCat("basic-device-", i)});
  }
  const Problem problem = cluster.PrepareOne(MakeClaim({ExactRequest("req-0", 1)}));
  Allocator::Verdicts verdicts;
  cluster.allocator.Filter(problem, {}, verdicts);
  EXPECT_EQ(verdicts.distinct.size(), 2u);
  for (NodeNumber node = 0; node < 50; ++node) {
    const bool fits =
        verdicts.distinct[verdicts.by_node[node]].kind == Allocator::Verdict::Kind::kFits;
    EXPECT_EQ(fits, node != 7) << node;
  }
}

TEST(Allocator, AnAttributeThatNoSelectorReadsDoesNotSplitNodeClasses) {
  Cluster cluster(0);
  for (int i = 0; i < 20; ++i) {
    auto slice = PerfSlice(i);
    for (device::Device& device : slice->devices) {
      device.attributes[5].value = StrCat("unique-", i, "-", device.name);  // pciAddress
    }
    cluster.inventory.SetSlice(slice);
    cluster.allocator.SetNode({NodeName(i), {}, {}});
  }
  Allocator::Verdicts verdicts;
  cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 1)})), {}, verdicts);
  EXPECT_EQ(verdicts.distinct.size(), 1u);
  // The attribute matters as soon as a selector reads it.
  const std::string selector =
      StrCat("device.attributes[\"", kTestDriver, "\"].pciAddress == \"unique-3-basic-device-4\"");
  const Problem problem = cluster.PrepareOne(MakeClaim({ExactRequest("r", 1, selector)}));
  cluster.allocator.Filter(problem, {}, verdicts);
  int fits = 0;
  for (NodeNumber node = 0; node < 20; ++node) {
    fits += verdicts.distinct[verdicts.by_node[node]].kind == Allocator::Verdict::Kind::kFits;
  }
  EXPECT_EQ(fits, 1);
}

TEST(Allocator, SixOfFiveEqualDevicesTakeFewSteps) {
  Cluster cluster(0);
  cluster.inventory.SetSlice(PerfSlice(0, 5));
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  std::vector<device::Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(ExactRequest(StrCat("r", i), 1));
  SearchBudget budget;
  budget.steps = 60;
  EXPECT_NE(AsNo(cluster.Allocate(MakeClaim(std::move(requests)), 0, budget)), nullptr);
}

TEST(Allocator, ReportsAnExhaustedBudgetAndSucceedsWithALargerOne) {
  Cluster cluster(1);
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 4)});
  SearchBudget budget;
  budget.steps = 3;
  const auto outcome = cluster.Allocate(claim, 0, budget);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(std::holds_alternative<BudgetExceeded>(*outcome));
  EXPECT_NE(AsYes(cluster.Allocate(claim)), nullptr);
}

TEST(Allocator, StopsWhenTheCallerAsksItTo) {
  Features features;
  features.consumable_capacity = true;
  Cluster cluster(0, features);
  auto slice = PerfSlice(0, 26);
  // No two devices are equal, and there are not eleven that match.
  for (std::size_t i = 0; i < slice->devices.size(); ++i) {
    slice->devices[i].capacity[0].value = api::Quantity(static_cast<std::int64_t>(1000 + i));
  }
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  auto claim = MakeClaim({ExactRequest("r", 12), ExactRequest("s", 12),
                          ExactRequest("t", 1, "device.driver == \"nobody\"")});
  SearchBudget budget;
  int asked = 0;
  budget.should_stop = [&] { return ++asked == 3; };
  const auto outcome = cluster.Allocate(claim, 0, budget);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(std::holds_alternative<BudgetExceeded>(*outcome));
  EXPECT_EQ(std::get<BudgetExceeded>(*outcome).steps, 3 * SearchBudget::kPollSteps);
}

TEST(Allocator, AnUnknownNodeIsAnError) {
  Cluster cluster(1);
  EXPECT_EQ(cluster.Allocate(MakeClaim({ExactRequest("r", 1)}), 99).error().code,
            ErrorCode::kNotFound);
}

TEST(Allocator, ErrorsOfClaimsAreThoseOfKubernetes) {
  Cluster cluster(1);
  const auto message = [&](auto&& change) {
    auto claim = MakeClaim({ExactRequest("r", 1)});
    change(*claim);
    const auto outcome = cluster.Allocate(claim);
    return outcome.ok() ? std::string("no error") : outcome.error().message;
  };
  EXPECT_EQ(message([](device::Claim& claim) { claim.requests[0].exactly->device_class = "x"; }),
            "claim default/claim, request r: could not retrieve device class x: no class x");
  EXPECT_EQ(
      message([](device::Claim& claim) { claim.requests[0].exactly->allocation_mode = "Half"; }),
      "claim default/claim, request r: unsupported count mode Half");
  EXPECT_EQ(
      message([](device::Claim& claim) {
        claim.requests[0].first_available.push_back(*claim.requests[0].exactly);
        claim.requests[0].exactly.reset();
      }),
      "claim default/claim, request r: has subrequests, but the DRAPrioritizedList feature is "
      "disabled");
  EXPECT_EQ(message([](device::Claim& claim) {
              claim.requests[0].exactly->derived_attributes.push_back({"a/b", "1"});
            }),
            "claim default/claim, request r: cannot handle request with derived attributes, the "
            "feature is disabled");
  EXPECT_EQ(message([](device::Claim& claim) {
              claim.requests[0].exactly->selectors.push_back(
                  {StrCat("device.attributes[\"", kTestDriver, "\"].absent == 1")});
            }),
            StrCat("claim default/claim: selector #0 on device ", kTestDriver, "/", NodeName(0),
                   "/basic-device-0: CEL runtime error: no such key: absent. consider using CEL "
                   "optional chaining (.? followed by orValue()) or guarding the check with has() "
                   "for optional fields"));
}

TEST(Allocator, AnErrorCountsOnlyIfTheSearchReachesTheDevice) {
  Cluster cluster(0);
  auto slice = PerfSlice(0, 2);
  slice->devices[1].attributes.erase(slice->devices[1].attributes.begin() + 4);  // model
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  const std::string selector = StrCat("device.attributes[\"", kTestDriver, "\"].model == \"B60\"");
  EXPECT_NE(AsYes(cluster.Allocate(MakeClaim({ExactRequest("r", 1, selector)}))), nullptr);
  EXPECT_FALSE(cluster.Allocate(MakeClaim({ExactRequest("r", 2, selector)})).ok());
  EXPECT_FALSE(cluster.Allocate(MakeClaim({ExactRequest("r", 3, selector)})).ok());
}

TEST(Allocator, DevicesWithoutBindingConditionsComeFirstOverAllPools) {
  Features features;
  features.device_binding_and_status = true;
  Cluster cluster(0, features);
  auto first = PerfSlice(0, 2);
  first->devices[0].binding_conditions = {"ready"};
  auto second = PerfSlice(0, 2);
  second->name = "second";
  second->pool = "second";
  second->devices[1].binding_conditions = {"ready"};
  cluster.inventory.SetSlice(first);
  cluster.inventory.SetSlice(second);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  const auto outcome = cluster.Allocate(MakeClaim({ExactRequest("r", 4)}));
  ASSERT_NE(AsYes(outcome), nullptr);
  std::vector<std::string> order;
  for (const auto& result : AsYes(outcome)->results[0].results) {
    order.push_back(StrCat(result.id.pool == "second" ? "2" : "1", result.id.device.back()));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"11", "20", "10", "21"}));
  Allocator::Verdicts verdicts;
  cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 2)})), {}, verdicts);
  EXPECT_FALSE(verdicts.distinct[0].waits);
  cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", 3)})), {}, verdicts);
  EXPECT_TRUE(verdicts.distinct[0].waits);
}

TEST(Allocator, TheScoreOfANodeCountsTheChosenAlternativeOfEveryRequest) {
  Features features;
  features.prioritized_list = true;
  Cluster cluster(1, features);
  // Requests of three alternatives, of which only the one with this index fits.
  const auto request = [](std::string name, std::size_t fits) {
    device::Request made = ExactRequest(std::move(name), 1);
    for (std::size_t i = 0; i < 3; ++i) {
      made.first_available.push_back(*made.exactly);
      made.first_available.back().name = StrCat("alternative-", i);
      if (i < fits) made.first_available.back().selectors = {{"device.driver == \"nobody\""}};
    }
    made.exactly.reset();
    return made;
  };
  const auto score = [&](std::vector<device::Request> requests) {
    Allocator::Verdicts verdicts;
    cluster.allocator.Filter(cluster.PrepareOne(MakeClaim(std::move(requests))), {}, verdicts);
    EXPECT_EQ(verdicts.distinct.size(), 1u);
    return verdicts.distinct[0].score;
  };
  EXPECT_EQ(score({request("a", 0)}), 8);
  EXPECT_EQ(score({request("a", 2)}), 6);
  EXPECT_EQ(score({request("a", 1), request("b", 2)}), 7 + 6);
  EXPECT_EQ(score({ExactRequest("a", 1), request("b", 1)}), 8 + 7);
  EXPECT_EQ(score({ExactRequest("a", 99)}), 0) << "it does not fit";
}

struct SkippingCluster : Cluster {
  SkippingCluster(bool gate, std::vector<std::string> declared, device::SkipNodeOperations skip)
      : Cluster(0, [&] {
          Features features;
          features.optional_node_operations = gate;
          return features;
        }()) {
    auto slice = PerfSlice(0, 1);
    slice->skip_node_operations = std::move(skip);
    inventory.SetSlice(slice);
    allocator.SetNode({NodeName(0), {}, std::move(declared)});
  }
};

TEST(SkipNodeOperations, AreCopiedAsWrittenToNodesThatDeclareThemUnderEitherName) {
  for (const char* name : {"DraOptionalNodePreparation", "DRAOptionalNodeOperations"}) {
    for (const device::SkipNodeOperations& skip :
         {device::SkipNodeOperations{true}, device::SkipNodeOperations{false},
          device::SkipNodeOperations{},
          device::SkipNodeOperations{std::vector<std::string>{"*"}}}) {
      SkippingCluster cluster(true, {name}, skip);
      const auto outcome = cluster.Allocate(MakeClaim({ExactRequest("r", 1)}));
      ASSERT_NE(AsYes(outcome), nullptr);
      EXPECT_EQ(AsYes(outcome)->results[0].results[0].skip_node_operations, skip);
    }
  }
}

TEST(SkipNodeOperations, OnANodeThatDoesNotDeclareThemTheReasonNamesTheFeature) {
  SkippingCluster cluster(true, {"Other"}, {true});
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  const auto outcome = cluster.Allocate(claim);
  ASSERT_NE(AsNo(outcome), nullptr);
  EXPECT_EQ(AsNo(outcome)->reason, Reason::kSkipUndeclared);
  EXPECT_EQ(AsNo(outcome)->message,
            "node(s) did not match node declared features: DraOptionalNodePreparation");
  // It would not fit with the feature either, so the feature is not to blame.
  const auto more = cluster.Allocate(MakeClaim({ExactRequest("r", 2)}));
  EXPECT_EQ(AsNo(more)->reason, Reason::kNoDevices);
  // The node declares the feature.
  cluster.allocator.SetNode({NodeName(0), {}, {device::kOptionalNodePreparation}});
  EXPECT_NE(AsYes(cluster.Allocate(claim)), nullptr);
}

TEST(SkipNodeOperations, TheReasonNamesTheFirstSliceOfThePoolThatSkips) {
  Cluster cluster(0);
  for (int i = 0; i < 3; ++i) {
    auto slice = PerfSlice(0, 1);
    slice->name = StrCat("slice-", i);
    slice->devices[0].name = StrCat("dev-", i);
    slice->slice_count = 3;
    if (i > 0) slice->skip_node_operations.form = true;
    cluster.inventory.SetSlice(slice);
  }
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "dev-0"});
  EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("r", 1)})),
            "ResourceSlice slice-1 skips node operations, but the DRAOptionalNodePreparation "
            "feature gate is disabled");
}

TEST(Allocator, ADeviceOfAnyPoolMayHaveToBeWaitedFor) {
  for (const int waits : {0, 1}) {
    Features features;
    features.device_binding_and_status = true;
    Cluster cluster(0, features);
    for (int i = 0; i < 2; ++i) {
      auto slice = PerfSlice(0, 1);
      slice->name = StrCat("slice-", i);
      slice->pool = StrCat("pool-", i);
      if (i == waits) slice->devices[0].binding_conditions = {"Ready"};
      cluster.inventory.SetSlice(slice);
    }
    cluster.allocator.SetNode({NodeName(0), {}, {}});
    for (const int count : {1, 2}) {
      Allocator::Verdicts verdicts;
      cluster.allocator.Filter(cluster.PrepareOne(MakeClaim({ExactRequest("r", count)})), {},
                               verdicts);
      ASSERT_EQ(verdicts.distinct.size(), 1u);
      EXPECT_EQ(verdicts.distinct[0].waits, count == 2) << waits;
    }
  }
}

TEST(Allocator, ANodeThatWasNeverKnownCanBeRemoved) {
  Cluster cluster(1);
  cluster.allocator.RemoveNode("never seen");
  EXPECT_NE(AsYes(cluster.Allocate(MakeClaim({ExactRequest("r", 1)}))), nullptr);
  cluster.allocator.RemoveNode(NodeName(0));
  EXPECT_FALSE(cluster.Allocate(MakeClaim({ExactRequest("r", 1)})).ok());
}

TEST(Allocator, TheNumberOfARemovedNodeIsUsedAgain) {
  Cluster cluster(2);
  const NodeNumber removed = *cluster.allocator.nodes().FindNode(NodeName(0));
  cluster.allocator.RemoveNode(NodeName(0));
  EXPECT_EQ(cluster.allocator.nodes().FindNode(NodeName(0)), nullptr);
  cluster.inventory.SetSlice(PerfSlice(7, 1));
  EXPECT_EQ(cluster.allocator.SetNode({NodeName(7), {}, {}}), removed);
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  ASSERT_NE(AsYes(cluster.Allocate(claim, 7)), nullptr);
  EXPECT_EQ(AsYes(cluster.Allocate(claim, 7))->results[0].results[0].id.pool, NodeName(7));
  ASSERT_NE(AsYes(cluster.Allocate(claim, 1)), nullptr);
  EXPECT_EQ(AsYes(cluster.Allocate(claim, 1))->results[0].results[0].id.pool, NodeName(1));
}

// Devices that take the same from one counter are not alike if they differ in another.
TEST(Search, DevicesThatDifferInAnyScarceCounterAreTriedEach) {
  Features features;
  features.partitionable_devices = true;
  auto slice = PerfSlice(0, 3);
  const char* const needs[] = {"5", "1", "6"};
  for (std::size_t i = 0; i < 3; ++i) {
    slice->devices[i].consumes_counters = {
        {"set", {{"a", Amount("1")}, {"b", Amount(needs[i])}}, {}}};
  }
  slice->devices[2].attributes[4].value = std::string("odd");
  slice->slice_count = 2;
  auto totals = PerfSlice(0, 0);
  totals->name = "totals";
  totals->slice_count = 2;
  totals->shared_counters = {{"set", {{"a", Amount("2")}, {"b", Amount("10")}}}};
  Cluster cluster(slice, features);
  cluster.inventory.SetSlice(totals);
  const auto result = cluster.MustAllocate(MakeClaim(
      {ExactRequest("any", 1),
       ExactRequest("odd", 1,
                    StrCat("device.attributes[\"", kTestDriver, "\"].model == \"odd\""))}));
  ASSERT_EQ(result.results.size(), 2u);
  EXPECT_EQ(result.results[0].id.device, "basic-device-1") << "5 and 6 are more than 10";
  EXPECT_EQ(result.results[1].id.device, "basic-device-2");
}

// Devices 0 and 1 differ only in what they join; the last device, "odd", can be used only together
// with device 1.
device::DeviceId FirstChoiceWithGroups(
    const std::vector<device::CounterConsumption>& consumptions) {
  Features features;
  features.partitionable_devices = features.compatibility_groups = true;
  auto slice = PerfSlice(0, 3);
  for (std::size_t i = 0; i < 3; ++i) slice->devices[i].consumes_counters = {consumptions[i]};
  slice->devices[2].attributes[4].value = std::string("odd");
  slice->slice_count = 2;
  auto totals = PerfSlice(0, 0);
  totals->name = "totals";
  totals->slice_count = 2;
  totals->shared_counters = {{"s", {{"a", Amount("9")}}}, {"t", {{"a", Amount("9")}}}};
  Cluster cluster(slice, features);
  cluster.inventory.SetSlice(totals);
  const auto result = cluster.MustAllocate(MakeClaim(
      {ExactRequest("any", 1),
       ExactRequest("odd", 1,
                    StrCat("device.attributes[\"", kTestDriver, "\"].model == \"odd\""))}));
  return result.results.size() == 2 ? result.results[0].id : device::DeviceId();
}

TEST(Search, DevicesOfDifferentCompatibilityGroupsAreTriedEach) {
  const auto joins = [](std::string set, std::vector<std::string> groups) {
    return device::CounterConsumption{std::move(set), {{"a", Amount("1")}}, std::move(groups)};
  };
  EXPECT_EQ(FirstChoiceWithGroups({joins("s", {"x"}), joins("s", {"y"}), joins("s", {"y"})}).device,
            "basic-device-1")
      << "other groups of the same set";
  EXPECT_EQ(FirstChoiceWithGroups({joins("s", {"x"}), joins("t", {"x"}), joins("s", {"y"})}).device,
            "basic-device-1")
      << "the same groups of another set";
}

TEST(SkipNodeOperations, WithTheGateOffTheReasonNamesGateAndSlice) {
  SkippingCluster cluster(false, {device::kOptionalNodePreparation},
                          {std::vector<std::string>{"*"}});
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  const auto outcome = cluster.Allocate(claim);
  ASSERT_NE(AsNo(outcome), nullptr);
  EXPECT_EQ(AsNo(outcome)->message,
            "ResourceSlice resourceslice-0 skips node operations, but the "
            "DRAOptionalNodePreparation feature gate is disabled");
  // Other devices still satisfy the claim.
  auto other = PerfSlice(0, 1);
  other->name = "other";
  other->pool = "other";
  cluster.inventory.SetSlice(other);
  ASSERT_NE(AsYes(cluster.Allocate(claim)), nullptr);
  EXPECT_EQ(AsYes(cluster.Allocate(claim))->results[0].results[0].id.pool, "other");
}

TEST(Taints, OfARuleRejectDevicesUntilTheRuleIsDeleted) {
  Features features;
  features.device_taints = true;
  Cluster cluster(1, features);
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  cluster.inventory.SetTaintRule({"rule",
                                  device::TaintRule::DeviceSelector{kTestDriver, {}, {}},
                                  {"k", "", "NoSchedule", ""},
                                  {}});
  EXPECT_NE(AsNo(cluster.Allocate(claim)), nullptr);
  auto tolerant = MakeClaim({ExactRequest("r", 1)});
  tolerant->requests[0].exactly->tolerations.push_back({"k", "Exists", "", "", {}});
  EXPECT_NE(AsYes(cluster.Allocate(tolerant)), nullptr);
  cluster.inventory.RemoveTaintRule("rule");
  EXPECT_NE(AsYes(cluster.Allocate(claim)), nullptr);
}

TEST(Explain, CountsRejectionsPerRuleAndNamesTheClosestMiss) {
  Features features;
  features.device_taints = true;
  Cluster cluster(0, features);
  auto slice = PerfSlice(0, 6);
  slice->devices[5].taints.push_back({"broken", "", "NoExecute", ""});
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  for (const char* device : {"basic-device-0", "basic-device-1"}) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), device});
  }
  const Explanation explanation = cluster.Explain(MakeClaim({ExactRequest("gpu", 4)}));
  EXPECT_EQ(explanation.claims[0].requests[0].held_count, 2u) << "they would do if they were free";
  EXPECT_EQ(explanation.claims[0].requests[0].held.size(), 2u);
  EXPECT_FALSE(explanation.fits);
  const RequestExplanation& request = explanation.claims.at(0).requests.at(0);
  EXPECT_EQ(request.candidates, 3u);
  ASSERT_EQ(request.refusals.size(), 2u);
  EXPECT_EQ(request.refusals[0].rule, Rule::kInUse);
  EXPECT_EQ(request.refusals[0].count, 2u);
  EXPECT_EQ(request.refusals[1].rule, Rule::kTaint);
  EXPECT_EQ(request.refusals[1].examples.at(0).device, "basic-device-5");
  ASSERT_EQ(explanation.closest.size(), 2u);
  EXPECT_EQ(explanation.closest[0].rule, Rule::kInUse);
  EXPECT_EQ(explanation.closest[1].rule, Rule::kTaint);
  EXPECT_EQ(
      RenderText(explanation),
      "node scheduler-perf-dra-0: does not fit\n"
      "├─ claim default/claim\n"
      "│  └─ request gpu wants 4, 3 of 6 devices left\n"
      "│     ├─ 2 held by another claim (e.g. "
      "test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-0, "
      "test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-1)\n"
      "│     └─ 1 has a taint that the request does not tolerate (e.g. "
      "test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-5)\n"
      "└─ would fit but for: held by another claim; or: has a taint that the request does not "
      "tolerate\n"
      "   ├─ change claim default/claim: spec.devices.requests[0].exactly.count: 4 with 3 free\n"
      "   └─ or claim default/claim: spec.devices.requests[0].exactly.tolerations: "
      "broken:NoExecute of test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-5\n");
}

TEST(Explain, CountsOfTheHeldDevicesOnlyThoseThatWouldDo) {
  Cluster cluster(1);
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  const Explanation explanation = cluster.Explain(MakeClaim(
      {ExactRequest("gpu", 1, "device.attributes[\"test-driver.cdi.k8s.io\"].model == \"none\"")}));
  EXPECT_EQ(explanation.claims[0].requests[0].refusals[0].rule, Rule::kInUse);
  EXPECT_EQ(explanation.claims[0].requests[0].held_count, 0u);
}

TEST(Explain, ReportsHowManyDevicesExistIfMoreAreRequested) {
  Cluster cluster(1);
  EXPECT_EQ(
      RenderText(cluster.Explain(MakeClaim({ExactRequest("gpu", 11)}))),
      "node scheduler-perf-dra-0: does not fit\n"
      "├─ claim default/claim\n"
      "│  └─ request gpu wants 11, 10 of 10 devices left\n"
      "└─ only 10 devices exist: request 10 or fewer in request gpu of claim default/claim, or "
      "use another node\n");
}

TEST(Explain, NamesTheSelectorToChange) {
  Cluster cluster(1);
  auto claim = MakeClaim(
      {ExactRequest("a", 1),
       ExactRequest("b", 1, "device.attributes[\"test-driver.cdi.k8s.io\"].model == \"B60\"")});
  claim->requests[1].exactly->selectors.push_back(
      {"device.attributes[\"test-driver.cdi.k8s.io\"].model == \"C80\""});
  const Explanation explanation = cluster.Explain(claim);
  ASSERT_EQ(explanation.closest.size(), 1u);
  EXPECT_EQ(explanation.closest[0].rule, Rule::kRequestSelector);
  EXPECT_EQ(
      explanation.closest[0].remedies,
      std::vector<std::string>{
          "claim default/claim: spec.devices.requests[1].exactly.selectors[1].cel.expression: "
          "device.attributes[\"test-driver.cdi.k8s.io\"].model == \"C80\""});
}

TEST(Explain, NamesAConstraintThatCannotBeSatisfied) {
  Cluster cluster(1);
  auto claim = MakeClaim({ExactRequest("a", 6)});
  claim->constraints.push_back({{}, "resource.kubernetes.io/pciRoot", {}});
  const Explanation explanation = cluster.Explain(claim);
  EXPECT_EQ(explanation.claims[0].requests[0].candidates, 10u);
  ASSERT_EQ(explanation.closest.size(), 1u);
  EXPECT_EQ(explanation.closest[0].rule, Rule::kConstraint);
  EXPECT_EQ(explanation.closest[0].remedies,
            std::vector<std::string>{"claim default/claim: spec.devices.constraints[0]."
                                     "matchAttribute: resource.kubernetes.io/pciRoot"});
}

TEST(Explain, NamesIncompletePools) {
  Cluster cluster(0);
  auto slice = PerfSlice(0);
  slice->slice_count = 2;
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  const Explanation explanation = cluster.Explain(MakeClaim({ExactRequest("a", 1)}));
  ASSERT_EQ(explanation.pools.size(), 1u);
  EXPECT_EQ(explanation.pools[0].reason, "has 1 of 2 slices of generation 1");
  EXPECT_TRUE(explanation.closest.empty());
}

}  // namespace
}  // namespace drakkar::allocator
