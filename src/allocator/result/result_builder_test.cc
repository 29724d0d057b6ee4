// What a claim's allocation says besides which devices it has.
#include <gtest/gtest.h>

#include "allocator/testing/cluster.h"

namespace drakkar::allocator {
namespace {

using device::AllocatedConfig;
using device::AllocationResult;
using device::NodeSelector;

// "source requests: parameters", one per entry.
std::vector<std::string> ConfigOf(const AllocationResult& result) {
  std::vector<std::string> lines;
  for (const AllocatedConfig& config : result.config) {
    lines.push_back(StrCat(config.source == AllocatedConfig::Source::kClass ? "class" : "claim",
                           " ", config.requests.empty() ? "all" : Join(config.requests, ","), ": ",
                           config.opaque ? config.opaque->parameters : "none"));
  }
  return lines;
}

device::Request FirstAvailable(std::string name, std::vector<std::string> alternatives) {
  device::Request request = ExactRequest(std::move(name), 1);
  for (std::string& alternative : alternatives) {
    request.first_available.push_back(*request.exactly);
    request.first_available.back().name = std::move(alternative);
  }
  request.exactly.reset();
  return request;
}

Features Prioritized() {
  Features features;
  features.prioritized_list = true;
  return features;
}

TEST(AllocationConfig, OfAClassIsForTheRequestsOfThatClass) {
  Cluster cluster(1);
  auto configured = std::make_shared<device::DeviceClass>(*PerfClass());
  configured->config = {device::OpaqueConfig{"d", "1"}, device::OpaqueConfig{"d", "2"}};
  auto plain = std::make_shared<device::DeviceClass>(*PerfClass());
  plain->name = "plain";
  auto other = std::make_shared<device::DeviceClass>(*PerfClass());
  other->name = "other";
  other->config = {device::OpaqueConfig{"d", "3"}};
  auto claim = MakeClaim(
      {ExactRequest("a", 1), ExactRequest("b", 1), ExactRequest("c", 1), ExactRequest("d", 1)});
  claim->requests[1].exactly->device_class = "plain";
  claim->requests[3].exactly->device_class = "other";
  const ClaimPtr wanted = claim;
  const ClassLookup classes =
      [&](std::string_view name) -> Result<std::shared_ptr<const device::DeviceClass>> {
    for (const auto& one : {configured, plain, other}) {
      if (one->name == name) return std::shared_ptr<const device::DeviceClass>(one);
    }
    return NotFound("no such class");
  };
  const Problem problem = cluster.allocator.Prepare(std::span(&wanted, 1), classes);
  const auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
  ASSERT_NE(AsYes(outcome), nullptr);
  EXPECT_EQ(ConfigOf(AsYes(outcome)->results[0]),
            (std::vector<std::string>{"class a,c: 1", "class a,c: 2", "class d: 3"}));
}

TEST(AllocationConfig, OfTheOnlyClassIsForAllRequests) {
  Cluster cluster(1);
  auto configured = std::make_shared<device::DeviceClass>(*PerfClass());
  configured->config = {device::OpaqueConfig{"d", "1"}};
  cluster.device_class = configured;
  EXPECT_EQ(ConfigOf(cluster.MustAllocate(MakeClaim({ExactRequest("a", 1), ExactRequest("b", 1)}))),
            std::vector<std::string>{"class all: 1"});
}

TEST(AllocationConfig, OfTheClaimAppliesIfItNamesARequestOrNone) {
  Cluster cluster(1, Prioritized());
  auto claim = MakeClaim({ExactRequest("a", 1), FirstAvailable("b", {"x", "y"})});
  const auto config = [](std::vector<std::string> requests, std::string parameters) {
    return device::ClaimConfig{std::move(requests), device::OpaqueConfig{"d", parameters}};
  };
  claim->config = {config({}, "1"),           config({"a"}, "2"),     config({"b"}, "3"),
                   config({"b/x"}, "4"),      config({"b/y"}, "5"),   config({"elsewhere"}, "6"),
                   config({"a", "b/x"}, "7"), config({"z", "a"}, "8")};
  EXPECT_EQ(ConfigOf(cluster.MustAllocate(claim)),
            (std::vector<std::string>{"claim all: 1", "claim a: 2", "claim b: 3", "claim b/x: 4",
                                      "claim all: 7", "claim z,a: 8"}))
      << "b/y was not chosen, and no request has the name elsewhere";
}

TEST(AllocationConfig, IsThatOfTheChosenAlternative) {
  Cluster cluster(1, Prioritized());
  auto claim = MakeClaim({FirstAvailable("b", {"x", "y"})});
  claim->requests[0].first_available[0].count = 11;
  claim->config = {{{"b/x"}, device::OpaqueConfig{"d", "1"}},
                   {{"b/y"}, device::OpaqueConfig{"d", "2"}}};
  EXPECT_EQ(ConfigOf(cluster.MustAllocate(claim)), std::vector<std::string>{"claim all: 2"});
}

TEST(AllocationResult, NamesTheAlternativeThatWasChosen) {
  Cluster cluster(1, Prioritized());
  auto claim = MakeClaim({FirstAvailable("b", {"x", "y"})});
  claim->requests[0].first_available[0].count = 11;
  const AllocationResult result = cluster.MustAllocate(claim);
  ASSERT_EQ(result.results.size(), 1u);
  EXPECT_EQ(result.results[0].request, "b/y");
}

TEST(AllocationResult, CopiesTolerationsAndAdminAccess) {
  Features features;
  features.admin_access = true;
  Cluster cluster(1, features);
  auto claim = MakeClaim({ExactRequest("a", 1), ExactRequest("b", 1)});
  claim->requests[0].exactly->tolerations = {{"k", "Exists", "", "", 5}};
  claim->requests[1].exactly->admin_access = true;
  const AllocationResult result = cluster.MustAllocate(claim);
  ASSERT_EQ(result.results.size(), 2u);
  EXPECT_EQ(result.results[0].tolerations, claim->requests[0].exactly->tolerations);
  EXPECT_FALSE(result.results[0].admin_access);
  EXPECT_TRUE(result.results[1].tolerations.empty());
  EXPECT_TRUE(result.results[1].admin_access);
}

TEST(AllocationResult, CopiesEveryConditionOfEveryDeviceIfTheGatesAreOn) {
  for (const bool on : {true, false}) {
    Features features;
    features.device_binding_and_status = on;
    auto slice = PerfSlice(0, 2);
    slice->devices[0].binding_failure_conditions = {"f1", "f2"};
    slice->devices[1].binding_failure_conditions = {"f3"};
    if (on) {
      slice->devices[0].binding_conditions = {"c1", "c2"};
      slice->devices[1].binding_conditions = {"c3"};
    }
    Cluster cluster(slice, features);
    const AllocationResult result = cluster.MustAllocate(MakeClaim({ExactRequest("a", 2)}));
    ASSERT_EQ(result.results.size(), 2u);
    using Names = std::vector<std::string>;
    EXPECT_EQ(result.results[0].binding_conditions, on ? (Names{"c1", "c2"}) : Names{});
    EXPECT_EQ(result.results[0].binding_failure_conditions, on ? (Names{"f1", "f2"}) : Names{});
    EXPECT_EQ(result.results[1].binding_conditions, on ? Names{"c3"} : Names{});
    EXPECT_EQ(result.results[1].binding_failure_conditions, on ? Names{"f3"} : Names{});
  }
}

TEST(AllocationResult, AShareHasAnIdAndEveryCapacityItConsumes) {
  Features features;
  features.consumable_capacity = true;
  auto slice = PerfSlice(0, 2);
  slice->devices[0].allow_multiple_allocations = true;
  Cluster cluster(slice, features);
  auto claim = MakeClaim({ExactRequest("a", 1), ExactRequest("b", 1), ExactRequest("c", 1)});
  for (std::size_t i : {0u, 1u}) {
    claim->requests[i].exactly->capacity = {{"memory", Amount("1Gi")}, {"millicores", Amount("1")}};
  }
  const AllocationResult result = cluster.MustAllocate(claim);
  ASSERT_EQ(result.results.size(), 3u);
  EXPECT_EQ(result.results[1].id, result.results[0].id) << "two shares of one device";
  EXPECT_NE(result.results[1].share_id, result.results[0].share_id);
  ASSERT_EQ(result.results[0].consumed_capacity.size(), 2u);
  EXPECT_EQ(result.results[0].consumed_capacity[0].name, "memory");
  EXPECT_EQ(result.results[0].consumed_capacity[0].value, Amount("1Gi"));
  EXPECT_EQ(result.results[0].consumed_capacity[1].name, "millicores");
  EXPECT_EQ(result.results[2].share_id, "") << "held exclusively";
  EXPECT_TRUE(result.results[2].consumed_capacity.empty());
}

TEST(AllocationResult, EachClaimOfAPodHasItsOwnDevices) {
  Cluster cluster(1);
  auto one = MakeClaim({ExactRequest("a", 2)});
  auto two = MakeClaim({ExactRequest("b", 1)});
  two->name = "two";
  const ClaimPtr claims[] = {one, two};
  const Problem problem = cluster.allocator.Prepare(claims, OneClass(PerfClass()));
  const auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
  ASSERT_NE(AsYes(outcome), nullptr);
  ASSERT_EQ(AsYes(outcome)->results.size(), 2u);
  ASSERT_EQ(AsYes(outcome)->results[0].results.size(), 2u);
  ASSERT_EQ(AsYes(outcome)->results[1].results.size(), 1u);
  EXPECT_EQ(AsYes(outcome)->results[0].results[1].id.device, "basic-device-1");
  EXPECT_EQ(AsYes(outcome)->results[1].results[0].id.device, "basic-device-2");
  EXPECT_EQ(AsYes(outcome)->results[1].results[0].request, "b");
}

// A slice for the nodes of a selector.
std::shared_ptr<device::Slice> Selecting(int number, NodeSelector selector) {
  auto slice = PerfSlice(number, 1);
  slice->target = {"", false, std::move(selector)};
  return slice;
}

NodeSelector ZoneSelector(std::vector<std::string> zones) {
  return {{{{{"zone", "In", std::move(zones)}}, {}}}};
}

struct ZoneCluster : Cluster {
  ZoneCluster() : Cluster(0) { allocator.SetNode({NodeName(0), {{"zone", "a"}}, {}}); }
};

TEST(AllocationNodeSelector, OfADeviceOfOneNodeIsThatNode) {
  Cluster cluster(1);
  EXPECT_EQ(cluster.MustAllocate(MakeClaim({ExactRequest("a", 1)})).node_selector,
            device::SelectNode(NodeName(0)));
}

TEST(AllocationNodeSelector, IsAbsentIfEveryNodeWillDo) {
  ZoneCluster cluster;
  auto slice = PerfSlice(0, 1);
  slice->target = {"", true, {}};
  cluster.inventory.SetSlice(slice);
  EXPECT_FALSE(cluster.MustAllocate(MakeClaim({ExactRequest("a", 1)})).node_selector);
}

TEST(AllocationNodeSelector, IsTheNodeIfTheDeviceBindsToIt) {
  ZoneCluster cluster;
  auto slice = PerfSlice(0, 1);
  slice->target = {"", true, {}};
  slice->devices[0].binds_to_node = true;
  cluster.inventory.SetSlice(slice);
  EXPECT_EQ(cluster.MustAllocate(MakeClaim({ExactRequest("a", 1)})).node_selector,
            device::SelectNode(NodeName(0)));
}

TEST(AllocationNodeSelector, OfSeveralDevicesHasEachRequirementOnce) {
  ZoneCluster cluster;
  NodeSelector named = ZoneSelector({"b", "a"});
  named.terms[0].match_fields = {{"metadata.name", "In", {NodeName(0)}}};
  cluster.inventory.SetSlice(Selecting(0, ZoneSelector({"a", "b"})));
  cluster.inventory.SetSlice(Selecting(1, named));
  cluster.inventory.SetSlice(Selecting(2, ZoneSelector({"a"})));
  const AllocationResult result = cluster.MustAllocate(MakeClaim({ExactRequest("a", 3)}));
  NodeSelector expected;
  expected.terms.push_back({{{"zone", "In", {"a", "b"}}, {"zone", "In", {"a"}}},
                            {{"metadata.name", "In", {NodeName(0)}}}});
  EXPECT_EQ(result.node_selector, expected) << "the order of values does not matter";
}

TEST(AllocationNodeSelector, MayHaveFieldsOrLabelsAlone) {
  NodeSelector named;
  named.terms.push_back({{}, {{"metadata.name", "In", {NodeName(0)}}}});
  for (const NodeSelector& selector : {named, ZoneSelector({"a"})}) {
    ZoneCluster cluster;
    cluster.inventory.SetSlice(Selecting(0, selector));
    EXPECT_EQ(cluster.MustAllocate(MakeClaim({ExactRequest("a", 1)})).node_selector, selector);
  }
}

TEST(AllocationNodeSelector, RequirementsThatDifferInAnythingAreKept) {
  Cluster cluster(0);
  cluster.allocator.SetNode({NodeName(0), {{"zone", "a"}, {"rack", "a"}}, {}});
  const auto selector = [](std::string key, std::string op) {
    NodeSelector made;
    made.terms.push_back({{{std::move(key), std::move(op), {"a"}}}, {}});
    return made;
  };
  NodeSelector not_in = selector("zone", "NotIn");
  not_in.terms[0].match_expressions[0].values = {"b"};
  cluster.inventory.SetSlice(Selecting(0, selector("zone", "In")));
  cluster.inventory.SetSlice(Selecting(1, selector("rack", "In")));
  cluster.inventory.SetSlice(Selecting(2, not_in));
  const AllocationResult result = cluster.MustAllocate(MakeClaim({ExactRequest("a", 3)}));
  ASSERT_TRUE(result.node_selector);
  EXPECT_EQ(result.node_selector->terms[0].match_expressions.size(), 3u);
}

TEST(AllocationNodeSelector, IsThatOfTheDeviceIfTheSliceSelectsPerDevice) {
  Features features;
  features.partitionable_devices = true;
  Cluster cluster(0, features);
  cluster.allocator.SetNode({NodeName(0), {{"zone", "a"}}, {}});
  auto slice = PerfSlice(0, 2);
  slice->target = {};
  slice->per_device_node_selection = true;
  slice->devices[0].target = {"elsewhere", false, {}};
  slice->devices[1].target = {"", false, ZoneSelector({"a"})};
  cluster.inventory.SetSlice(slice);
  const AllocationResult result = cluster.MustAllocate(MakeClaim({ExactRequest("a", 1)}));
  ASSERT_EQ(result.results.size(), 1u);
  EXPECT_EQ(result.results[0].id.device, "basic-device-1");
  EXPECT_EQ(result.node_selector, ZoneSelector({"a"}));
}

TEST(AllocationNodeSelector, WithSeveralTermsIsAnError) {
  ZoneCluster cluster;
  NodeSelector selector = ZoneSelector({"a"});
  selector.terms.push_back(selector.terms[0]);
  cluster.inventory.SetSlice(Selecting(0, selector));
  EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("a", 1)})),
            "create NodeSelector for claim claim: unsupported ResourceSlice.NodeSelector with 2 "
            "terms");
}

}  // namespace
}  // namespace drakkar::allocator
