// Devices, pools and nodes that are equal share their answers. Those that differ in anything an
// answer depends on must not.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "allocator/testing/cluster.h"
#include "allocator/view/pool_view.h"
#include "allocator/view/shape_table.h"

namespace drakkar::allocator {
namespace {

constexpr char kDomain[] = "d.example.com";

struct Wish {
  device::Device device;
  std::vector<device::Taint> taints;
  bool skips = false;
  std::string driver = kDomain;
};

// A device that sets everything, each list twice.
Wish Full() {
  Wish wish;
  device::Device& device = wish.device;
  device.name = "dev";
  device.attributes = {{"d.example.com/own", std::int64_t{1}},
                       {"other.com/x", std::string("x")},
                       {"own", std::int64_t{2}},
                       {"unread", std::string("whatever")}};
  device::CapacityPolicy policy;
  policy.default_value = Amount("1");
  policy.valid_values = {Amount("1"), Amount("2")};
  policy.valid_range = device::CapacityRange{Amount("1"), Amount("8"), Amount("1")};
  device.capacity = {{"cores", Amount("8"), policy}, {"memory", Amount("1Gi"), {}}};
  device.consumes_counters = {{"set-1", {{"a", Amount("1")}, {"b", Amount("2")}}, {"g1", "g2"}},
                              {"set-2", {{"c", Amount("3")}}, {}}};
  device.binding_conditions = {"Ready"};
  wish.taints = {{"k1", "v1", "NoSchedule", ""}, {"k2", "v2", "NoExecute", ""}};
  return wish;
}

std::uint32_t Shape(ShapeTable& table, const Wish& wish) {
  return table.Intern(wish.driver, wish.device, wish.taints, wish.skips);
}

TEST(ShapeKey, DevicesThatDifferInOneThingHaveDifferentShapes) {
  using Change = std::function<void(Wish&)>;
  const auto policy = [](Wish& w) -> device::CapacityPolicy& {
    return *w.device.capacity[0].policy;
  };
  const std::map<std::string, Change> changes = {
      {"driver", [](Wish& w) { w.driver = "e.example.com"; }},
      {"skips", [](Wish& w) { w.skips = true; }},
      {"sharing", [](Wish& w) { w.device.allow_multiple_allocations = true; }},
      {"binding conditions", [](Wish& w) { w.device.binding_conditions.clear(); }},
      {"attribute", [](Wish& w) { w.device.attributes[1].value = std::string("y"); }},
      {"attribute type", [](Wish& w) { w.device.attributes[1].value = device::VersionText{"x"}; }},
      {"no attribute", [](Wish& w) { w.device.attributes.erase(w.device.attributes.begin() + 1); }},
      {"own attribute", [](Wish& w) { w.device.attributes[0].value = std::int64_t{9}; }},
      {"own attribute without domain",
       [](Wish& w) { w.device.attributes[2].value = std::int64_t{9}; }},
      {"only with domain",
       [](Wish& w) { w.device.attributes.erase(w.device.attributes.begin() + 2); }},
      {"a broken version that nobody reads",
       [](Wish& w) { w.device.attributes[3].value = device::VersionText{"not a version"}; }},
      {"another broken version",
       [](Wish& w) { w.device.attributes[3].value = device::VersionText{"nor this"}; }},
      {"a broken version in a list",
       [](Wish& w) {
         w.device.attributes[3].value =
             std::vector<device::VersionText>{{"1.2.3"}, {"not a version"}};
       }},
      {"an attribute of an unknown kind",
       [](Wish& w) { w.device.attributes[3].value = std::monostate(); }},
      {"capacity name", [](Wish& w) { w.device.capacity[1].name = "memory2"; }},
      {"capacity value", [](Wish& w) { w.device.capacity[1].value = Amount("2Gi"); }},
      {"first capacity", [](Wish& w) { w.device.capacity[0].value = Amount("9"); }},
      {"capacities", [](Wish& w) { w.device.capacity.pop_back(); }},
      {"policy", [](Wish& w) { w.device.capacity[0].policy.reset(); }},
      {"default", [&](Wish& w) { policy(w).default_value = Amount("2"); }},
      {"no default", [&](Wish& w) { policy(w).default_value.reset(); }},
      {"first valid value", [&](Wish& w) { policy(w).valid_values[0] = Amount("3"); }},
      {"second valid value", [&](Wish& w) { policy(w).valid_values[1] = Amount("3"); }},
      {"valid values", [&](Wish& w) { policy(w).valid_values.clear(); }},
      {"range", [&](Wish& w) { policy(w).valid_range.reset(); }},
      {"min", [&](Wish& w) { policy(w).valid_range->min = Amount("2"); }},
      {"max", [&](Wish& w) { policy(w).valid_range->max = Amount("9"); }},
      {"step", [&](Wish& w) { policy(w).valid_range->step = Amount("2"); }},
      {"no step", [&](Wish& w) { policy(w).valid_range->step.reset(); }},
      {"taint key", [](Wish& w) { w.taints[1].key = "x"; }},
      {"taint value", [](Wish& w) { w.taints[1].value = "x"; }},
      {"taint effect", [](Wish& w) { w.taints[1].effect = "NoSchedule"; }},
      {"first taint", [](Wish& w) { w.taints[0].key = "x"; }},
      {"taints", [](Wish& w) { w.taints.pop_back(); }},
      {"counter set", [](Wish& w) { w.device.consumes_counters[1].counter_set = "set-3"; }},
      {"counter", [](Wish& w) { w.device.consumes_counters[0].counters[1].name = "x"; }},
      {"counter value",
       [](Wish& w) { w.device.consumes_counters[0].counters[1].value = Amount("9"); }},
      {"first counter",
       [](Wish& w) { w.device.consumes_counters[0].counters[0].value = Amount("9"); }},
      {"counters", [](Wish& w) { w.device.consumes_counters[0].counters.pop_back(); }},
      {"group", [](Wish& w) { w.device.consumes_counters[0].compatibility_groups[1] = "g3"; }},
      {"groups", [](Wish& w) { w.device.consumes_counters[0].compatibility_groups.clear(); }},
      {"consumptions", [](Wish& w) { w.device.consumes_counters.pop_back(); }},
      {"no consumptions", [](Wish& w) { w.device.consumes_counters.clear(); }},
  };
  ShapeTable table;
  table.AddInterest("d.example.com/own");
  table.AddInterest("other.com/x");
  std::map<std::uint32_t, std::string> shapes = {{Shape(table, Full()), "unchanged"}};
  for (const auto& [what, change] : changes) {
    Wish wish = Full();
    change(wish);
    const auto [at, is_new] = shapes.emplace(Shape(table, wish), what);
    EXPECT_TRUE(is_new) << what << " has the shape of: " << at->second;
    EXPECT_EQ(Shape(table, wish), at->first) << what;
  }
  EXPECT_EQ(table.size(), shapes.size());
}

TEST(ShapeKey, DevicesThatDifferInWhatNobodyReadsHaveTheSameShape) {
  ShapeTable table;
  table.AddInterest("other.com/x");
  const std::uint32_t shape = Shape(table, Full());
  Wish wish = Full();
  wish.device.name = "other";
  wish.device.attributes[3].value = std::string("another");
  wish.taints[0].time_added = "2026-01-01T00:00:00Z";
  EXPECT_EQ(Shape(table, wish), shape);
  const std::uint64_t epoch = table.epoch();
  table.AddInterest("other.com/x");
  EXPECT_EQ(table.epoch(), epoch) << "known already";
  table.AddInterest("d.example.com/unread");
  EXPECT_GT(table.epoch(), epoch);
  EXPECT_EQ(table.size(), 0u) << "renumbered";
  EXPECT_NE(Shape(table, wish), Shape(table, Full()));
}

TEST(ShapeKey, OfEveryKindOfAttributeIncludesEveryElement) {
  using Bools = std::vector<bool>;
  using Ints = std::vector<std::int64_t>;
  using Texts = std::vector<std::string>;
  using Versions = std::vector<device::VersionText>;
  const std::vector<device::AttributeValue> values = {
      std::int64_t{1},
      std::int64_t{2},
      true,
      false,
      std::string("1.0.0"),
      std::string("1.0.1"),
      device::VersionText{"1.0.0"},
      device::VersionText{"1.0.1"},
      Bools{true, true},
      Bools{true, false},
      Bools{true},
      Ints{1, 2},
      Ints{1, 3},
      Ints{1},
      Texts{"1.0.0", "b"},
      Texts{"1.0.0", "c"},
      Texts{"1.0.0"},
      Versions{{"1.0.0"}, {"2.0.0"}},
      Versions{{"1.0.0"}, {"3.0.0"}},
      Versions{{"1.0.0"}},
  };
  for (const bool everything : {false, true}) {
    ShapeTable table;
    table.AddInterest(device::Reads{everything, {"other.com/x"}});
    std::map<std::uint32_t, std::size_t> shapes;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Wish wish = Full();
      wish.device.attributes[1].value = values[i];
      const auto [at, is_new] = shapes.emplace(Shape(table, wish), i);
      EXPECT_TRUE(is_new) << i << " and " << at->second;
    }
  }
}

TEST(ShapeKey, AttributesOfTheSameValueAreNotMixedUp) {
  ShapeTable table;
  table.AddInterest(device::Reads{false, {"a.com/a", "b.com/b"}});
  Wish a, b, both;
  a.device.attributes = {{"a.com/a", true}};
  b.device.attributes = {{"b.com/b", true}};
  both.device.attributes = {{"a.com/a", true}, {"b.com/b", true}};
  EXPECT_NE(Shape(table, a), Shape(table, b));
  EXPECT_NE(Shape(table, a), Shape(table, both));
  EXPECT_NE(Shape(table, b), Shape(table, both));
}

TEST(ShapeKey, IfAnExpressionMayReadEverythingEveryAttributeCounts) {
  ShapeTable table;
  table.AddInterest(device::Reads{true, {}});
  const std::uint64_t epoch = table.epoch();
  EXPECT_GT(epoch, 0u);
  table.AddInterest(device::Reads{true, {}});
  table.AddInterest("other.com/x");
  EXPECT_EQ(table.epoch(), epoch) << "nothing can be added to everything";
  Wish value = Full(), name = Full();
  value.device.attributes[3].value = std::string("another");
  name.device.attributes[3].name = "unread2";
  EXPECT_NE(Shape(table, value), Shape(table, Full()));
  EXPECT_NE(Shape(table, name), Shape(table, Full()));
}

TEST(ShapeKey, BeyondTheBoundEveryAttributeCounts) {
  ShapeTable table;
  Wish wish = Full();
  wish.device.attributes[3].value = std::string("another");
  for (std::size_t i = 0; i < ShapeTable::kMaxInterest; ++i) table.AddInterest(StrCat("x.com/", i));
  EXPECT_EQ(Shape(table, wish), Shape(table, Full()));
  table.AddInterest("one.more/x");
  EXPECT_NE(Shape(table, wish), Shape(table, Full()));
}

TEST(ShapeKey, MechanicsLeaveOutDriverAttributesAndCounters) {
  ShapeTable table;
  table.AddInterest("other.com/x");
  Wish attribute = Full(), counters = Full(), taint = Full();
  attribute.device.attributes[1].value = std::string("y");
  attribute.driver = "e.example.com";
  counters.device.consumes_counters.clear();
  taint.taints.clear();
  const std::uint32_t full = table.mechanics(Shape(table, Full()));
  EXPECT_EQ(table.mechanics(Shape(table, attribute)), full);
  EXPECT_EQ(table.mechanics(Shape(table, counters)), full);
  EXPECT_NE(table.mechanics(Shape(table, taint)), full);
}

// A pool of two shareable devices that consume counters.
std::shared_ptr<device::Slice> CounterSlice(int node = 0) {
  auto slice = PerfSlice(node, 3);
  for (device::Device& device : slice->devices) {
    device.attributes.clear();
    device.consumes_counters = {{"set", {{"a", Amount("1")}, {"b", Amount("2")}}, {}}};
  }
  slice->slice_count = 2;
  return slice;
}
std::shared_ptr<device::Slice> CounterTotals(int node = 0, std::string a = "10",
                                             std::string b = "10") {
  auto slice = PerfSlice(node, 0);
  slice->name = StrCat("totals-", node);
  slice->slice_count = 2;
  slice->shared_counters = {{"set", {{"a", Amount(a)}, {"b", Amount(b)}}}};
  return slice;
}

Features Partitionable() {
  Features features;
  features.partitionable_devices = features.consumable_capacity = true;
  return features;
}

TEST(PoolKey, PoolsInDifferentUseHaveDifferentStates) {
  using Change = std::function<void(device::AllocatedState&)>;
  const device::DeviceId first{kTestDriver, NodeName(0), "basic-device-0"};
  const device::DeviceId second{kTestDriver, NodeName(0), "basic-device-1"};
  const auto share = [&](device::AllocatedState& state, std::string amount,
                         std::string name = "memory") {
    state.AddShare(first, "s");
    state.AddConsumed(first, {{name, Amount(amount)}});
  };
  const std::map<std::string, Change> uses = {
      {"unused", [](device::AllocatedState&) {}},
      {"held", [&](device::AllocatedState& s) { s.AddExclusive(first); }},
      {"the other one held", [&](device::AllocatedState& s) { s.AddExclusive(second); }},
      {"both held",
       [&](device::AllocatedState& s) {
         s.AddExclusive(first);
         s.AddExclusive(second);
       }},
      {"barred", [&](device::AllocatedState& s) { s.Bar(first); }},
      {"shared", [&](device::AllocatedState& s) { s.AddShare(first, "s"); }},
      {"shared and barred",
       [&](device::AllocatedState& s) {
         s.AddShare(first, "s");
         s.Bar(first);
       }},
      {"shared and held",
       [&](device::AllocatedState& s) {
         s.AddShare(first, "s");
         s.AddExclusive(first);
       }},
      {"consumed", [&](device::AllocatedState& s) { share(s, "1"); }},
      {"consumed more", [&](device::AllocatedState& s) { share(s, "2"); }},
      {"consumed of another", [&](device::AllocatedState& s) { share(s, "1", "millicores"); }},
      {"consumed of two",
       [&](device::AllocatedState& s) {
         share(s, "1");
         s.AddConsumed(first, {{"millicores", Amount("1")}});
       }},
  };
  device::Inventory inventory;
  inventory.SetSlice(PerfSlice(0));
  const device::Pool& pool = *inventory.FindPool({kTestDriver, NodeName(0)});
  const Features features = Partitionable();
  const PoolTargets targets = FindTargets(pool, {NodeName(0), {}, {}}, features);
  ShapeTable shapes;
  Interner pool_shapes, pool_states;
  std::map<std::uint32_t, std::string> states;
  for (const auto& [what, use] : uses) {
    device::AllocatedState allocated;
    use(allocated);
    const std::shared_ptr<PoolView> view = BuildPoolView(pool, targets, features);
    RefreshShapes(*view, shapes, pool_shapes);
    RefreshUse(*view, allocated.FindPool(pool.id), pool_states);
    const auto [at, is_new] = states.emplace(view->state_id, what);
    EXPECT_TRUE(is_new) << what << " is in the state of: " << at->second;
  }
}

TEST(PoolKey, PoolsWithDifferentTotalsHaveDifferentShapes) {
  ShapeTable shapes;
  Interner pool_shapes;
  std::map<std::uint32_t, std::string> seen;
  const auto add = [&](std::string what, const std::shared_ptr<device::Slice>& devices,
                       const std::shared_ptr<device::Slice>& totals) {
    device::Inventory inventory;
    inventory.SetSlice(devices);
    inventory.SetSlice(totals);
    const device::Pool& pool = *inventory.FindPool({kTestDriver, NodeName(0)});
    const auto view = BuildPoolView(pool, FindTargets(pool, {NodeName(0), {}, {}}, Partitionable()),
                                    Partitionable());
    RefreshShapes(*view, shapes, pool_shapes);
    const auto [at, is_new] = seen.emplace(view->shape_id, what);
    EXPECT_TRUE(is_new) << what << " has the shape of: " << at->second;
  };
  add("usual", CounterSlice(), CounterTotals());
  add("first total", CounterSlice(), CounterTotals(0, "9"));
  add("second total", CounterSlice(), CounterTotals(0, "10", "9"));
  auto renamed = CounterTotals();
  renamed->shared_counters[0].counters[1].name = "c";
  auto renamed_devices = CounterSlice();
  for (device::Device& device : renamed_devices->devices) {
    device.consumes_counters[0].counters.pop_back();
  }
  add("fewer counters", renamed_devices, CounterTotals());
  add("another name", renamed_devices, renamed);
  auto fewer = CounterSlice();
  fewer->devices.pop_back();
  add("fewer devices", fewer, CounterTotals());
  auto last_differs = CounterSlice();
  last_differs->devices.back().allow_multiple_allocations = true;
  add("the last device", last_differs, CounterTotals());
}

TEST(PoolView, EveryCounterOfADeviceIsTakenAndOneThatIsOverdrawnBlocksThePool) {
  const auto fits = [](std::string a, std::string b, int held, int wanted = 1) {
    Cluster cluster(CounterSlice(), Partitionable());
    cluster.inventory.SetSlice(CounterTotals(0, a, b));
    for (int i = 0; i < held; ++i) {
      cluster.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
    }
    return AsYes(cluster.Allocate(MakeClaim({ExactRequest("r", wanted)}))) != nullptr;
  };
  EXPECT_TRUE(fits("3", "6", 2));
  EXPECT_TRUE(fits("3", "6", 0, 3));
  EXPECT_FALSE(fits("2", "6", 2)) << "the first counter is used up";
  EXPECT_FALSE(fits("3", "5", 2)) << "the second is";
  EXPECT_FALSE(fits("3", "5", 0, 3));
}

TEST(PoolView, ACounterThatIsOverdrawnBlocksDevicesThatDoNotUseIt) {
  for (const char* overdrawn : {"a", "b"}) {
    auto slice = CounterSlice();
    slice->devices[2].consumes_counters = {
        {"set", {{std::string(overdrawn) == "a" ? "b" : "a", Amount("1")}}, {}}};
    Cluster cluster(slice, Partitionable());
    const bool is_a = std::string(overdrawn) == "a";
    cluster.inventory.SetSlice(CounterTotals(0, is_a ? "1" : "10", is_a ? "10" : "1"));
    for (const char* device : {"basic-device-0", "basic-device-1"}) {
      cluster.allocated.AddExclusive({kTestDriver, NodeName(0), device});
    }
    EXPECT_EQ(AsYes(cluster.Allocate(MakeClaim({ExactRequest("r", 1)}))), nullptr) << overdrawn;
  }
}

TEST(PoolView, ACounterThatIsUsedUpExactlyBlocksNoOtherDevice) {
  auto slice = CounterSlice();
  slice->devices[2].consumes_counters = {{"set", {{"b", Amount("1")}}, {}}};
  Cluster cluster(slice, Partitionable());
  cluster.inventory.SetSlice(CounterTotals(0, "1", "10"));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  EXPECT_EQ(cluster.MustAllocate(MakeClaim({ExactRequest("r", 1)})).results[0].id.device,
            "basic-device-2");
}

TEST(PoolView, OnlySlicesOfTheNewestGenerationCount) {
  // Slices are in the order of their names.
  for (const bool newest_first : {false, true}) {
    auto old = PerfSlice(0, 3);
    auto newest = PerfSlice(0, 1);
    old->name = newest_first ? "b" : "a";
    newest->name = newest_first ? "a" : "b";
    newest->generation = 2;
    newest->devices[0].name = "new";
    Cluster cluster(old);
    cluster.inventory.SetSlice(newest);
    const auto result = cluster.MustAllocate(MakeClaim({ExactRequest("r", 1)}));
    ASSERT_EQ(result.results.size(), 1u);
    EXPECT_EQ(result.results[0].id.device, "new") << newest_first;
    EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("r", 2)})), "cannot allocate all claims");
  }
}

TEST(PoolView, ASliceWithCompatibilityGroupsIsIgnoredWithoutTheFeature) {
  // The groups are in the last consumption of the last device.
  auto grouped = PerfSlice(0, 2);
  grouped->slice_count = 2;
  grouped->devices[1].consumes_counters = {{"s", {{"a", Amount("1")}}, {}},
                                           {"t", {{"a", Amount("1")}}, {"g"}}};
  auto totals = PerfSlice(0, 0);
  totals->name = "totals";
  totals->slice_count = 2;
  totals->shared_counters = {{"s", {{"a", Amount("9")}}}, {"t", {{"a", Amount("9")}}}};
  for (const bool enabled : {false, true}) {
    Features features;
    features.partitionable_devices = true;
    features.compatibility_groups = enabled;
    Cluster cluster(grouped, features);
    cluster.inventory.SetSlice(totals);
    EXPECT_EQ(AsYes(cluster.Allocate(MakeClaim({ExactRequest("r", 1)}))) != nullptr, enabled);
  }
}

TEST(PoolView, APoolWithSlicesOfSeveralNodesShowsEachNodeWhatIsHeld) {
  Cluster cluster(0);
  for (int i = 0; i < 2; ++i) {
    auto slice = PerfSlice(i, 1);
    slice->pool = "pool";
    slice->slice_count = 2;
    slice->devices[0].name = StrCat("dev-", i);
    cluster.inventory.SetSlice(slice);
    cluster.allocator.SetNode({NodeName(i), {}, {}});
  }
  const auto claim = MakeClaim({ExactRequest("r", 1)});
  for (const int node : {0, 1}) {
    EXPECT_NE(AsYes(cluster.Allocate(claim, node)), nullptr) << node;
    cluster.allocated.AddExclusive({kTestDriver, "pool", StrCat("dev-", node)});
    EXPECT_EQ(AsYes(cluster.Allocate(claim, node)), nullptr) << node;
  }
}

// A selector that reads another attribute renumbers all shapes. What a plan knows about the old
// numbers is void.
TEST(Plan, ForgetsEverythingItKnowsAboutShapesWhenTheyAreRenumbered) {
  struct Case {
    const char* what;
    std::function<void(device::Device& odd)> change;    // to the third device
    std::function<void(device::Claim& claim)> request;  // such that only the third device fits
  };
  const Case cases[] = {
      {"selection", [](device::Device& odd) { odd.attributes[4].value = std::string("odd"); },
       [](device::Claim& claim) {
         claim.requests[0].exactly->selectors = {
             {StrCat("device.attributes[\"", kTestDriver, "\"].model == \"odd\"")}};
       }},
      {"capacity", [](device::Device& odd) { odd.capacity[0].value = Amount("99999Mi"); },
       [](device::Claim& claim) {
         claim.requests[0].exactly->capacity = {{"memory", Amount("50000Mi")}};
       }},
  };
  for (const Case& c : cases) {
    Features features;
    features.consumable_capacity = features.device_taints = true;
    auto slice = PerfSlice(0, 3);
    slice->devices[1].attributes[2].value = std::string("another family");
    for (device::Device& device : slice->devices) device.allow_multiple_allocations = true;
    c.change(slice->devices[2]);
    Cluster cluster(slice, features);
    auto claim = MakeClaim({ExactRequest("r", 1)});
    c.request(*claim);
    const auto device = [&] {
      const auto outcome = cluster.Allocate(claim);
      const Allocation* yes = AsYes(outcome);
      return yes == nullptr ? "none" : yes->results[0].results[0].id.device;
    };
    EXPECT_EQ(device(), "basic-device-2") << c.what;
    // Now the first two devices have shapes of their own.
    (void)cluster.Allocate(MakeClaim({ExactRequest(
        "r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].family == \"x\""))}));
    cluster.allocated.AddExclusive({kTestDriver, "elsewhere", "x"});
    EXPECT_EQ(device(), "basic-device-2") << c.what;
  }
}

// Removed devices leave gaps, so that there may be as many shapes after as before.
TEST(Plan, ForgetsShapesEvenIfTheirNumberStaysTheSame) {
  const auto slice = [](int count, std::string model) {
    auto made = PerfSlice(0, count);
    for (device::Device& device : made->devices) device.attributes[4].value = model;
    if (count > 1) made->devices[1].attributes[2].value = std::string("another family");
    return made;
  };
  Cluster cluster(slice(1, "a"));
  const auto is_model = [](std::string model) {
    return StrCat("device.attributes[\"", kTestDriver, "\"].model == \"", model, "\"");
  };
  const auto claim = MakeClaim({ExactRequest("r", 1, is_model("b"))});
  EXPECT_EQ(AsYes(cluster.Allocate(claim)), nullptr);
  cluster.inventory.SetSlice(slice(2, "b"));
  EXPECT_EQ(cluster.MustAllocate(claim).results[0].id.device, "basic-device-0");
  (void)cluster.Allocate(MakeClaim(
      {ExactRequest("r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].family == \"x\""))}));
  EXPECT_EQ(cluster.MustAllocate(claim).results[0].id.device, "basic-device-0");
}

TEST(Plan, ForgetsTaintsAndValuesOfRenumberedShapes) {
  Features features;
  features.device_taints = true;
  auto slice = PerfSlice(0, 3);
  slice->devices[1].attributes[2].value = std::string("another family");
  slice->devices[0].taints = slice->devices[1].taints = {{"k", "", "NoSchedule", ""}};
  Cluster cluster(slice, features);
  const auto family = [&] {
    (void)cluster.Allocate(MakeClaim({ExactRequest(
        "r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].family == \"x\""))}));
  };
  const auto claim = MakeClaim({ExactRequest("r", 1)});
  EXPECT_EQ(cluster.MustAllocate(claim).results[0].id.device, "basic-device-2");
  family();
  EXPECT_EQ(cluster.MustAllocate(claim).results[0].id.device, "basic-device-2");

  auto other = PerfSlice(0, 3);
  other->devices[1].attributes[2].value = std::string("another family");
  other->devices[2].attributes[4].value = std::string("odd");
  Cluster matching(other, features);
  auto pair = MakeClaim({ExactRequest("r", 2)});
  pair->constraints.push_back({{}, std::nullopt, StrCat(kTestDriver, "/model")});
  const auto devices = [&] {
    std::string names;
    for (const auto& result : matching.MustAllocate(pair).results) names += result.id.device + " ";
    return names;
  };
  EXPECT_EQ(devices(), "basic-device-0 basic-device-2 ");
  (void)matching.Allocate(MakeClaim(
      {ExactRequest("r", 1, StrCat("device.attributes[\"", kTestDriver, "\"].family == \"x\""))}));
  EXPECT_EQ(devices(), "basic-device-0 basic-device-2 ");
}

// A pool that several nodes see is searched again only if it changes.
TEST(SharedPools, AnswersAreReusedUntilThePoolChanges) {
  auto slice = PerfSlice(0, 2);
  slice->target = {};
  slice->target.all_nodes = true;
  Cluster cluster(slice);
  const Problem problem = cluster.PrepareOne(MakeClaim({ExactRequest("r", 1)}));
  const auto fits = [&](const SearchBudget& budget) {
    const auto outcome = cluster.allocator.Allocate(problem, NodeName(0), budget);
    return AsYes(outcome) != nullptr;
  };
  SearchBudget none;
  none.steps = 0;
  EXPECT_FALSE(fits(none)) << "nothing is known yet";
  EXPECT_TRUE(fits({}));
  EXPECT_TRUE(fits(none)) << "known";
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-0"});
  EXPECT_FALSE(fits(none)) << "the answer is void";
  EXPECT_TRUE(fits({}));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-1"});
  EXPECT_FALSE(fits({}));
}

// More devices than there are candidates: found out by counting, not by trying all combinations.
TEST(Search, MoreDevicesThanCandidatesTakeNoSteps) {
  auto slice = PerfSlice(0, 25);
  int i = 0;
  for (device::Device& device : slice->devices) {
    device.capacity[1].value = Amount(StrCat(++i));  // no two are alike
  }
  Cluster cluster(slice);
  const auto steps = [&](int count) {
    SearchBudget budget;
    budget.steps = 100;
    const auto outcome = cluster.Allocate(MakeClaim({ExactRequest("r", count)}), 0, budget);
    return outcome.ok() && !std::holds_alternative<BudgetExceeded>(*outcome);
  };
  EXPECT_TRUE(steps(26));
  cluster.allocated.AddExclusive({kTestDriver, NodeName(0), "basic-device-3"});
  EXPECT_TRUE(steps(25)) << "one of them is held";
}

}  // namespace
}  // namespace drakkar::allocator
