// Which rule is in the way, and what to change.
#include <gtest/gtest.h>

#include "allocator/testing/cluster.h"

namespace drakkar::allocator {
namespace {

using Texts = std::vector<std::string>;

// "rule: remedy; remedy", one per closest miss.
Texts ClosestTo(Cluster& cluster, const ClaimPtr& claim) {
  Texts lines;
  for (const ClosestMiss& miss : cluster.Explain(claim).closest) {
    lines.push_back(StrCat(RuleName(miss.rule), ": ", Join(miss.remedies, "; ")));
  }
  return lines;
}

Features With(bool Features::*feature) {
  Features features;
  features.*feature = true;
  return features;
}

TEST(ClosestMiss, IsTheClassSelectorWithItsText) {
  auto slice = PerfSlice(0, 1);
  Cluster cluster(slice);
  auto picky = std::make_shared<device::DeviceClass>(*PerfClass());
  picky->selectors.push_back({"device.driver == \"nobody\""});
  cluster.device_class = picky;
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 1)})),
            Texts{"class-selector: class test-class: spec.selectors[1].cel.expression: "
                  "device.driver == \"nobody\""});
}

TEST(ClosestMiss, IsTheSameForSeveralDevices) {
  auto picky = std::make_shared<device::DeviceClass>(*PerfClass());
  picky->selectors.push_back({"device.driver == \"nobody\""});
  Cluster by_class(PerfSlice(0, 3));
  by_class.device_class = picky;
  EXPECT_EQ(ClosestTo(by_class, MakeClaim({ExactRequest("a", 2)})),
            Texts{"class-selector: class test-class: spec.selectors[1].cel.expression: "
                  "device.driver == \"nobody\""});
  Cluster by_request(PerfSlice(0, 3));
  EXPECT_EQ(ClosestTo(by_request, MakeClaim({ExactRequest("a", 2, "device.driver == \"nobody\"")})),
            Texts{"request-selector: claim default/claim: "
                  "spec.devices.requests[0].exactly.selectors[0].cel.expression: "
                  "device.driver == \"nobody\""});
  Cluster by_use(PerfSlice(0, 3));
  for (int i = 0; i < 3; ++i) {
    by_use.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
  }
  EXPECT_EQ(ClosestTo(by_use, MakeClaim({ExactRequest("a", 2)})),
            Texts{StrCat("in-use: the claim that holds ", kTestDriver, "/", NodeName(0),
                         "/basic-device-0")});
}

TEST(ClosestMiss, OfAConstraintOnAnAttributeThatNoDeviceHasNamesOnlyTheConstraint) {
  Cluster cluster(PerfSlice(0, 3));
  auto claim = MakeClaim({ExactRequest("a", 2)});
  claim->constraints = {{{}, "d.example.com/absent", {}}};
  EXPECT_EQ(ClosestTo(cluster, claim),
            Texts{"constraint: claim default/claim: spec.devices.constraints[0].matchAttribute: "
                  "d.example.com/absent"});
}

TEST(ClosestMiss, NamesTheHolderIfEachRequestAloneHasEnough) {
  Cluster cluster(PerfSlice(0, 3));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 2), ExactRequest("b", 1)})),
            Texts{StrCat("in-use: the claim that holds ", kTestDriver, "/", NodeName(0),
                         "/basic-device-0")})
      << "two are free for each, but not three for both";
}

TEST(ClosestMiss, IsTheGateThatSlicesWithBindingConditionsNeed) {
  auto slice = PerfSlice(0, 1);
  slice->devices[0].binding_conditions = {"ready"};
  Cluster cluster(slice);
  const ClaimPtr claim = MakeClaim({ExactRequest("a", 1)});
  EXPECT_EQ(ClosestTo(cluster, claim),
            Texts{"binding-conditions-disabled: feature gates DRADeviceBindingConditions and "
                  "DRAResourceClaimDeviceStatus of the scheduler"});
  const auto outcome = cluster.Allocate(claim);
  ASSERT_NE(AsNo(outcome), nullptr);
  EXPECT_EQ(AsNo(outcome)->reason, Reason::kBindingDisabled);
  EXPECT_EQ(AsNo(outcome)->message,
            "cannot allocate all claims: devices have binding conditions, but the "
            "DRADeviceBindingConditions feature gate is disabled");
  EXPECT_EQ(AsNo(cluster.Allocate(MakeClaim({ExactRequest("a", 2)})))->reason, Reason::kNoDevices)
      << "the gate would not help";
}

TEST(ClosestMiss, IsTheGateThatSlicesThatSkipOperationsNeed) {
  for (const bool gate : {false, true}) {
    Features features;
    features.optional_node_operations = gate;
    auto slice = PerfSlice(0, 1);
    slice->skip_node_operations = {true};
    Cluster cluster(slice, features);
    EXPECT_EQ(
        ClosestTo(cluster, MakeClaim({ExactRequest("a", 1)})),
        Texts{gate ? "skip-undeclared: feature gate DRAOptionalNodePreparation of the node, "
                     "which then declares DraOptionalNodePreparation"
                   : "skip-disabled: feature gate DRAOptionalNodePreparation of the scheduler"});
  }
}

TEST(ClosestMiss, IsTheDevicesOwnNodes) {
  auto slice = PerfSlice(0, 2);
  slice->target = {};
  slice->per_device_node_selection = true;
  slice->devices[0].target = {NodeName(0), false, {}};
  slice->devices[1].target = {"elsewhere", false, {}};
  Cluster cluster(slice, With(&Features::partitionable_devices));
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 2)})),
            Texts{"node-selection: slice resourceslice-0: the nodes of device basic-device-1"});
}

TEST(ClosestMiss, IsTheCapacityThatWasRequested) {
  auto slice = PerfSlice(0, 1);
  Cluster cluster(slice, With(&Features::consumable_capacity));
  auto claim = MakeClaim({ExactRequest("a", 1)});
  claim->requests[0].exactly->capacity = {{"memory", Amount("1Ti")}};
  EXPECT_EQ(ClosestTo(cluster, claim), Texts{"capacity: claim default/claim: "
                                             "spec.devices.requests[0].exactly.capacity.requests"});
}

std::shared_ptr<device::Slice> CounterSlice(std::int64_t amount) {
  auto slice = std::make_shared<device::Slice>(*PerfSlice(0, 0));
  slice->name = "counters";
  slice->slice_count = 2;
  slice->shared_counters = {{"set", {{"units", api::Quantity(amount)}}}};
  return slice;
}

TEST(ClosestMiss, IsACounterThatIsUsedUp) {
  auto slice = PerfSlice(0, 2);
  slice->slice_count = 2;
  for (device::Device& device : slice->devices) {
    device.consumes_counters = {{"set", {{"units", api::Quantity(2)}}, {}}};
  }
  Cluster cluster(slice, With(&Features::partitionable_devices));
  cluster.inventory.SetSlice(CounterSlice(3));
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 2)})), Texts{"counters: "})
      << "no device is rejected by itself";
  cluster.inventory.SetSlice(CounterSlice(1));
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 1)})),
            Texts{"counters: slice resourceslice-0: consumesCounters of device basic-device-0"});
}

TEST(ClosestMiss, IsTheGateThatCountersNeed) {
  auto slice = PerfSlice(0, 1);
  slice->devices[0].consumes_counters = {{"set", {{"units", api::Quantity(2)}}, {}}};
  Cluster cluster(slice);
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 1)})),
            Texts{"counters-disabled: feature gate DRAPartitionableDevices of the scheduler"});
}

TEST(ClosestMiss, IsTheTaintWithKeyValueAndEffect) {
  auto slice = PerfSlice(0, 1);
  slice->devices[0].taints = {{"ok", "", "NoSchedule", ""}, {"k", "v", "NoExecute", ""}};
  Cluster cluster(slice, With(&Features::device_taints));
  auto claim = MakeClaim({ExactRequest("a", 1)});
  claim->requests[0].exactly->tolerations = {{"ok", "Exists", "", "", {}}};
  EXPECT_EQ(ClosestTo(cluster, claim),
            Texts{"taint: claim default/claim: spec.devices.requests[0].exactly.tolerations: "
                  "k=v:NoExecute of test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-0"});
}

TEST(ClosestMiss, NamesTheHolderIfNothingIsFree) {
  Cluster cluster(PerfSlice(0, 1));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  EXPECT_EQ(ClosestTo(cluster, MakeClaim({ExactRequest("a", 1)})),
            Texts{"in-use: the claim that holds "
                  "test-driver.cdi.k8s.io/scheduler-perf-dra-0/basic-device-0"});
}

TEST(ClosestMiss, NamesTheRequestThatLacksDevicesAndNotTheOthers) {
  Cluster cluster(PerfSlice(0, 3), With(&Features::prioritized_list));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  auto claim = MakeClaim({ExactRequest("a", 1), ExactRequest("b", 1)});
  claim->requests[1].first_available = {*claim->requests[1].exactly, *claim->requests[1].exactly};
  claim->requests[1].first_available[0].name = "x";
  claim->requests[1].first_available[1].name = "y";
  claim->requests[1].first_available[0].count = 3;
  claim->requests[1].first_available[1].count = 3;
  claim->requests[1].exactly.reset();
  EXPECT_EQ(ClosestTo(cluster, claim), Texts{}) << "four devices are needed, three exist";
  claim->requests[0].exactly->count = 0;
  EXPECT_EQ(
      ClosestTo(cluster, claim),
      Texts{"in-use: claim default/claim: spec.devices.requests[1].firstAvailable[0].count: 3 "
            "with 2 free; claim default/claim: spec.devices.requests[1].firstAvailable[1].count: "
            "3 with 2 free"});
}

TEST(Explain, CountsHeldDevicesOfEachRequest) {
  Cluster cluster(PerfSlice(0, 4));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-1"});
  const auto only = [](int i) {
    return StrCat("device.attributes[\"", kTestDriver, "\"].pciAddress == \"0000:0", i, ":00.0\"");
  };
  const Explanation explanation =
      cluster.Explain(MakeClaim({ExactRequest("a", 1, only(0)), ExactRequest("b", 1, only(1))}));
  ASSERT_EQ(explanation.claims[0].requests.size(), 2u);
  EXPECT_EQ(explanation.claims[0].requests[0].held_count, 0u);
  EXPECT_EQ(explanation.claims[0].requests[1].held_count, 1u);
  ASSERT_EQ(explanation.claims[0].requests[1].held.size(), 1u);
  EXPECT_EQ(explanation.claims[0].requests[1].held[0].device, "basic-device-1");
}

TEST(ClosestMiss, ARequestWithExactlyEnoughDevicesLacksNone) {
  Cluster cluster(PerfSlice(0, 4));
  for (const char* device : {"basic-device-0", "basic-device-1"}) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), device});
  }
  const auto claim = MakeClaim({ExactRequest("a", 2), ExactRequest("b", 1)});
  claim->requests[1].exactly->selectors = {
      {StrCat("device.attributes[\"", kTestDriver, "\"].pciAddress == \"0000:01:00.0\"")}};
  EXPECT_EQ(ClosestTo(cluster, claim), Texts{StrCat("in-use: the claim that holds ", kTestDriver,
                                                    "/", NodeName(0), "/basic-device-1")})
      << "not the one that holds basic-device-0, which b cannot use";
}

TEST(Explain, NamesHeldDevicesUpToABoundAndCountsThemAll) {
  const int count = static_cast<int>(RequestExplanation::kMaxHeld) + 1;
  Cluster cluster(PerfSlice(0, count));
  for (int i = 0; i < count; ++i) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
  }
  const Explanation explanation = cluster.Explain(MakeClaim({ExactRequest("a", 1)}));
  EXPECT_EQ(explanation.claims[0].requests[0].held_count, RequestExplanation::kMaxHeld + 1);
  EXPECT_EQ(explanation.claims[0].requests[0].held.size(), RequestExplanation::kMaxHeld);
}

TEST(ClosestMiss, OfAConstraintNamesEveryConstraint) {
  Cluster cluster(1);
  auto claim = MakeClaim({ExactRequest("a", 2)});
  claim->constraints = {{{}, "resource.kubernetes.io/pciBusID", {}},
                        {{}, {}, "resource.kubernetes.io/pciRoot"}};
  EXPECT_EQ(ClosestTo(cluster, claim),
            Texts{"constraint: claim default/claim: spec.devices.constraints[0].matchAttribute: "
                  "resource.kubernetes.io/pciBusID; claim default/claim: "
                  "spec.devices.constraints[1].distinctAttribute: "
                  "resource.kubernetes.io/pciRoot"});
}

TEST(Explain, ListsAtMostThreeExamplesPerRule) {
  Cluster cluster(1);
  for (int i = 0; i < 5; ++i) {
    cluster.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
  }
  const Explanation explanation = cluster.Explain(MakeClaim({ExactRequest("a", 6)}));
  const RequestExplanation& request = explanation.claims[0].requests[0];
  EXPECT_EQ(request.refusals[0].count, 5u);
  EXPECT_EQ(request.refusals[0].examples.size(), 3u);
  EXPECT_EQ(request.refusals[0].first, 0u);
  EXPECT_EQ(request.held.size(), 5u);
}

TEST(Explain, OfAClaimThatFitsHasNoMiss) {
  Cluster cluster(1);
  EXPECT_EQ(RenderText(cluster.Explain(MakeClaim({ExactRequest("a", 2)}))),
            "node scheduler-perf-dra-0: fits\n"
            "└─ claim default/claim\n"
            "   └─ request a wants 2, 10 of 10 devices left\n");
}

TEST(Explain, SaysThatTheBudgetRanOut) {
  Cluster cluster(1);
  SearchBudget budget;
  budget.steps = 1;
  const auto explanation = cluster.allocator.Explain(
      cluster.PrepareOne(MakeClaim({ExactRequest("a", 2)})), NodeName(0), budget);
  ASSERT_TRUE(explanation.ok());
  EXPECT_TRUE(explanation->out_of_budget);
  EXPECT_EQ(RenderText(*explanation),
            "node scheduler-perf-dra-0: the search ran out of budget\n"
            "├─ claim default/claim\n"
            "│  └─ request a wants 2, 10 of 10 devices left\n"
            "└─ no single rule is in the way\n");
}

TEST(Explain, AnErrorOfTheClaimIsAnError) {
  Cluster cluster(1);
  const auto explain = [&](const ClaimPtr& claim, std::string_view node) {
    return cluster.allocator.Explain(cluster.PrepareOne(claim), node, {});
  };
  EXPECT_FALSE(explain(MakeClaim({ExactRequest("a", 33)}), NodeName(0)).ok());
  EXPECT_FALSE(explain(MakeClaim({ExactRequest("a", 1)}), "nowhere").ok());
}

TEST(Explain, RendersSeveralClaimsAndPools) {
  Explanation explanation;
  explanation.node = "n";
  for (const char* name : {"ns/a", "ns/b"}) {
    ClaimExplanation& claim = explanation.claims.emplace_back();
    claim.name = name;
    for (const char* request : {"x", "y"}) {
      claim.requests.push_back({.name = request, .wanted = 1, .wants_all = request[0] == 'y'});
      claim.requests.back().refusals.push_back({Rule::kInUse, 2, {{"d", "p", "1"}}, 0});
      claim.requests.back().refusals.push_back({Rule::kTaint, 1, {}, 0});
    }
  }
  explanation.pools = {{{"d", "p"}, true, "bad"}, {{"d", "q"}, false, "has 1 of 2 slices"}};
  explanation.closest = {{Rule::kInUse, {"one", "two"}}, {Rule::kTaint, {"three"}}};
  EXPECT_EQ(RenderText(explanation),
            "node n: does not fit\n"
            "├─ claim ns/a\n"
            "│  ├─ request x wants 1, 0 of 3 devices left\n"
            "│  │  ├─ 2 held by another claim (e.g. d/p/1)\n"
            "│  │  └─ 1 has a taint that the request does not tolerate\n"
            "│  └─ request y wants all, 0 of 3 devices left\n"
            "│     ├─ 2 held by another claim (e.g. d/p/1)\n"
            "│     └─ 1 has a taint that the request does not tolerate\n"
            "├─ claim ns/b\n"
            "│  ├─ request x wants 1, 0 of 3 devices left\n"
            "│  │  ├─ 2 held by another claim (e.g. d/p/1)\n"
            "│  │  └─ 1 has a taint that the request does not tolerate\n"
            "│  └─ request y wants all, 0 of 3 devices left\n"
            "│     ├─ 2 held by another claim (e.g. d/p/1)\n"
            "│     └─ 1 has a taint that the request does not tolerate\n"
            "├─ pool d/p is invalid: bad\n"
            "├─ pool d/q is incomplete: has 1 of 2 slices\n"
            "└─ would fit but for: held by another claim; or: has a taint that the request does "
            "not tolerate\n"
            "   ├─ change one\n"
            "   ├─ or two\n"
            "   └─ or three\n");
  explanation.fits = true;
  const std::string fits = RenderText(explanation);
  EXPECT_TRUE(
      fits.ends_with("├─ pool d/p is invalid: bad\n"
                     "└─ pool d/q is incomplete: has 1 of 2 slices\n"))
      << fits;
}

TEST(Explain, ARequestForAllDevicesNeverWantsTooMany) {
  Explanation explanation;
  explanation.node = "n";
  ClaimExplanation& claim = explanation.claims.emplace_back();
  claim.name = "ns/a";
  claim.requests.push_back({.name = "x", .wanted = 5, .wants_all = true});
  EXPECT_TRUE(RenderText(explanation).ends_with("└─ no single rule is in the way\n"));
  claim.requests.push_back({.name = "y", .wanted = 5});
  EXPECT_TRUE(RenderText(explanation)
                  .ends_with("└─ only 0 devices exist: request 0 or fewer in request y of claim "
                             "ns/a, or use another node\n"));
  claim.requests.back().candidates = 5;
  EXPECT_TRUE(RenderText(explanation).ends_with("└─ no single rule is in the way\n"));
}

TEST(Explain, NamesInvalidPools) {
  auto slice = PerfSlice(0, 2);
  slice->devices[1].name = slice->devices[0].name;
  Cluster cluster(slice);
  const ClaimPtr claim = MakeClaim({ExactRequest("a", 1)});
  const Explanation explanation = cluster.Explain(claim);
  ASSERT_EQ(explanation.pools.size(), 1u);
  EXPECT_TRUE(explanation.pools[0].invalid);
  EXPECT_EQ(explanation.pools[0].reason, "duplicate device name basic-device-0");
  const auto outcome = cluster.Allocate(claim);
  ASSERT_NE(AsNo(outcome), nullptr);
  EXPECT_EQ(AsNo(outcome)->reason, Reason::kInvalidPools);
  EXPECT_EQ(AsNo(outcome)->message, "invalid resource pools were encountered");
}

}  // namespace
}  // namespace drakkar::allocator
