#include "sdk/driver/slices/desired_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using ::testing::HasSubstr;

DriverResources OnePool(Pool pool) {
  DriverResources resources;
  resources.pools["pool"] = std::move(pool);
  return resources;
}

Pool WithSlice(Slice slice) {
  Pool pool;
  pool.slices.push_back(std::move(slice));
  return pool;
}

Slice Devices(std::size_t count) {
  Slice slice;
  for (std::size_t i = 0; i < count; ++i) slice.devices.push_back({.name = StrCat("d-", i)});
  return slice;
}

DesiredPool Make(Pool pool, bool on_node = true) {
  auto desired = MakeDesiredPools(OnePool(std::move(pool)), on_node);
  EXPECT_TRUE(desired.ok()) << desired.error().message;
  return desired.ok() ? desired->at("pool") : DesiredPool();
}

std::string ErrorOf(Pool pool, bool on_node = true) {
  auto desired = MakeDesiredPools(OnePool(std::move(pool)), on_node);
  return desired.ok() ? "" : desired.error().message;
}

TEST(DesiredPool, RendersEveryFieldOfADevice) {
  Device device{.name = "gpu-0"};
  device.attributes = {
      {"model", std::string("x")}, {"n", std::int64_t{3}}, {"ok", true}, {"v", Version{"1.2.3"}}};
  device.capacity = {{"memory", "1024Mi"}};
  device.taints = {{.key = "k", .value = "v", .effect = "NoSchedule"}};
  device.binds_to_node = true;
  device.binding_conditions = {"example.com/a"};
  device.binding_failure_conditions = {"example.com/b"};
  device.allow_multiple_allocations = true;
  Slice slice;
  slice.devices = {device};
  slice.skip_node_operations = {"*"};
  const DesiredPool pool = Make(WithSlice(slice));
  ASSERT_EQ(pool.specs.size(), 1u);
  const std::string json = api::WriteJson(pool.specs[0]->root());
  EXPECT_THAT(json, HasSubstr(R"("model":{"string":"x"})"));
  EXPECT_THAT(json, HasSubstr(R"("n":{"int":3})"));
  EXPECT_THAT(json, HasSubstr(R"("ok":{"bool":true})"));
  EXPECT_THAT(json, HasSubstr(R"("v":{"version":"1.2.3"})"));
  EXPECT_THAT(json, HasSubstr(R"("memory":{"value":"1Gi"})"));
  EXPECT_THAT(json, HasSubstr(R"("taints":[{"key":"k","value":"v","effect":"NoSchedule"}])"));
  EXPECT_THAT(json, HasSubstr(R"("bindsToNode":true)"));
  EXPECT_THAT(json, HasSubstr(R"("bindingConditions":["example.com/a"])"));
  EXPECT_THAT(json, HasSubstr(R"("bindingFailureConditions":["example.com/b"])"));
  EXPECT_THAT(json, HasSubstr(R"("allowMultipleAllocations":true)"));
  EXPECT_THAT(json, HasSubstr(R"("skipNodeOperations":["*"])"));
}

TEST(DesiredPool, SplitsAtTheDeviceLimit) {
  EXPECT_EQ(Make(WithSlice(Devices(128))).specs.size(), 1u);
  const DesiredPool pool = Make(WithSlice(Devices(300)));
  ASSERT_EQ(pool.specs.size(), 3u);
  EXPECT_EQ(pool.specs[0]->root()["devices"].size(), 128u);
  EXPECT_EQ(pool.specs[2]->root()["devices"].size(), 44u);
  EXPECT_EQ(pool.specs[1]->root()["devices"].at(0)["name"].str(), "d-128");
}

TEST(DesiredPool, SplitsEarlierIfDevicesHaveTaintsCountersOrLists) {
  Slice tainted = Devices(130);
  tainted.devices[0].taints = {{.key = "k", .effect = "None"}};
  ASSERT_EQ(Make(WithSlice(tainted)).specs.size(), 2u);
  EXPECT_EQ(Make(WithSlice(tainted)).specs[0]->root()["devices"].size(), 64u);
  EXPECT_EQ(Make(WithSlice(tainted)).specs[1]->root()["devices"].size(), 66u);
  // Found when the slice already has more than 64: the device starts the next one.
  Slice late = Devices(130);
  late.devices[100].attributes["a"] = std::int64_t{1};
  late.devices[100].attributes["list"] = std::vector<std::int64_t>{1};
  const DesiredPool pool = Make(WithSlice(late));
  ASSERT_EQ(pool.specs.size(), 2u);
  EXPECT_EQ(pool.specs[0]->root()["devices"].size(), 100u);
  for (const api::TreePtr& spec : pool.specs) {
    EXPECT_LE(spec->root()["devices"].size(), kMaxDevicesPerSlice);
  }
}

TEST(DesiredPool, ReservesRoomForLaterTaints) {
  Pool pool = WithSlice(Devices(130));
  pool.may_be_tainted = true;
  const DesiredPool before = Make(pool);
  ASSERT_EQ(before.specs.size(), 3u);
  pool.slices[0].devices[70].taints = {{.key = "k", .effect = "None"}};
  const DesiredPool after = Make(pool);
  ASSERT_EQ(after.specs.size(), 3u);
  EXPECT_TRUE(api::Equal(before.specs[0]->root(), after.specs[0]->root()));
  EXPECT_FALSE(api::Equal(before.specs[1]->root(), after.specs[1]->root()));
}

TEST(DesiredPool, CountersHaveTheirOwnSlices) {
  Slice slice = Devices(1);
  slice.devices[0].consumes_counters = {{.counter_set = "set-8", .counters = {{"memory", "1Gi"}}}};
  for (int i = 0; i < 9; ++i) {
    slice.shared_counters.push_back({.name = StrCat("set-", i), .counters = {{"memory", "8Gi"}}});
  }
  const DesiredPool pool = Make(WithSlice(slice));
  ASSERT_EQ(pool.specs.size(), 3u);
  EXPECT_EQ(pool.specs[0]->root()["sharedCounters"].size(), 8u);
  EXPECT_FALSE(pool.specs[0]->root()["devices"].exists());
  EXPECT_EQ(pool.specs[1]->root()["sharedCounters"].size(), 1u);
  EXPECT_EQ(pool.specs[2]->root()["devices"].size(), 1u);
}

TEST(DesiredPool, APoolWithoutDevicesIsOneEmptySlice) {
  EXPECT_EQ(Make(Pool{}).specs.size(), 1u);
  EXPECT_EQ(Make(WithSlice(Slice{})).specs.size(), 1u);
}

TEST(DesiredPool, RejectsInconsistentResources) {
  Slice twice = Devices(1);
  twice.devices.push_back(twice.devices[0]);
  EXPECT_THAT(ErrorOf(WithSlice(twice)), HasSubstr("device \"d-0\" is listed twice"));
  Slice dangling = Devices(1);
  dangling.devices[0].consumes_counters = {{.counter_set = "none", .counters = {{"m", "1"}}}};
  EXPECT_THAT(ErrorOf(WithSlice(dangling)), HasSubstr("counter set \"none\""));
  dangling.shared_counters = {{.name = "none", .counters = {{"other", "1"}}}};
  EXPECT_THAT(ErrorOf(WithSlice(dangling)), HasSubstr("counter \"m\""));
  Slice sets;
  sets.shared_counters = {{.name = "s"}, {.name = "s"}};
  EXPECT_THAT(ErrorOf(WithSlice(sets)), HasSubstr("is listed twice"));
  Slice unknown = Devices(1);
  unknown.devices[0].more = *api::ParseJson(R"({"colour":"red"})");
  EXPECT_THAT(ErrorOf(WithSlice(unknown)), HasSubstr("colour"));
  Slice quantity = Devices(1);
  quantity.devices[0].capacity = {{"memory", "lots"}};
  EXPECT_NE(ErrorOf(WithSlice(quantity)), "");
  DriverResources bad_name;
  bad_name.pools["Not A Name"];
  EXPECT_FALSE(MakeDesiredPools(bad_name, true).ok());
}

TEST(DesiredPool, WithoutANodeItNeedsANodeSelection) {
  EXPECT_THAT(ErrorOf(WithSlice(Devices(1)), false), HasSubstr("needs node_selector"));
  Pool everywhere = WithSlice(Devices(1));
  everywhere.all_nodes = true;
  EXPECT_TRUE(Make(everywhere, false).specs[0]->root()["allNodes"].boolean());
  EXPECT_THAT(ErrorOf(everywhere, true), HasSubstr("on a node"));
  Pool selected = WithSlice(Devices(1));
  selected.node_selector = *api::ParseJson(
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"rack","operator":"In","values":["a"]}]}]})");
  EXPECT_TRUE(Make(selected, false).specs[0]->root()["nodeSelector"].is_object());
  selected.all_nodes = true;
  EXPECT_THAT(ErrorOf(selected, false), HasSubstr("cannot have both"));
}

TEST(DesiredPool, EveryKindOfListMakesADeviceLarger) {
  const std::vector<std::function<void(Device&)>> kinds = {
      [](Device& device) {
        device.attributes["a"] = std::vector<std::int64_t>{1, 2};
      },
      [](Device& device) {
        device.attributes["a"] = std::vector<bool>{true, false};
      },
      [](Device& device) {
        device.attributes["a"] = std::vector<std::string>{"x", "y"};
      },
      [](Device& device) {
        device.attributes["a"] = std::vector<Version>{{"1.2.3"}, {"1.2.4"}};
      },
      [](Device& device) { device.taints = {{.key = "k", .effect = "None"}}; },
      [](Device& device) {
        device.consumes_counters = {{.counter_set = "set", .counters = {{"m", "1"}}}};
      }};
  std::string rendered;
  for (const auto& change : kinds) {
    Slice slice = Devices(65);
    slice.devices[30].attributes["plain"] = std::string("x");
    change(slice.devices[30]);
    slice.shared_counters = {{.name = "set", .counters = {{"m", "8"}}}};
    const DesiredPool pool = Make(WithSlice(slice));
    ASSERT_EQ(pool.specs.size(), 3u);
    EXPECT_EQ(pool.specs[1]->root()["devices"].size(), 64u);
    EXPECT_EQ(pool.specs[2]->root()["devices"].size(), 1u);
    rendered += api::WriteJson(pool.specs[1]->root()["devices"].at(30));
  }
  for (const char* part :
       {R"("ints":[1,2])", R"("bools":[true,false])", R"("strings":["x","y"])",
        R"("versions":["1.2.3","1.2.4"])", R"("taints":[{"key":"k","effect":"None"}])",
        R"("consumesCounters":[{"counterSet":"set","counters":{"m":{"value":"1"}}}])"}) {
    EXPECT_THAT(rendered, HasSubstr(part));
  }
  EXPECT_EQ(Make(WithSlice(Devices(65))).specs.size(), 1u);
}

TEST(DesiredPool, ASplitSliceMayHaveManyPlainDevicesAgain) {
  Slice slice = Devices(64 + 128 + 1);
  slice.devices[0].taints = {{.key = "k", .effect = "None"}};
  const DesiredPool pool = Make(WithSlice(slice));
  ASSERT_EQ(pool.specs.size(), 3u);
  EXPECT_EQ(pool.specs[0]->root()["devices"].size(), 64u);
  EXPECT_EQ(pool.specs[1]->root()["devices"].size(), 128u);
}

TEST(DesiredPool, EightCounterSetsFillASlice) {
  Slice slice;
  for (int i = 0; i < 8; ++i) {
    slice.shared_counters.push_back({.name = StrCat("set-", i), .counters = {{"memory", "8Gi"}}});
  }
  const DesiredPool counters = Make(WithSlice(slice));
  ASSERT_EQ(counters.specs.size(), 1u) << "no empty slice follows";
  EXPECT_EQ(counters.specs[0]->root()["sharedCounters"].size(), 8u);
  slice.devices = Devices(1).devices;
  EXPECT_EQ(Make(WithSlice(slice)).specs.size(), 2u);
}

TEST(DesiredPool, ASelectionPerDeviceReplacesThatOfThePool) {
  Pool pool = WithSlice(Devices(1));
  pool.all_nodes = true;
  pool.slices[0].per_device_node_selection = true;
  pool.slices[0].partition_type_attribute = "d.example.com/kind";
  pool.slices[0].shared_counters = {{.name = "set", .counters = {{"m", "8"}}}};
  pool.slices[0].skip_node_operations = {"*"};
  pool.slices.push_back(Devices(0));
  pool.slices[1].devices = {{.name = "other"}};
  const DesiredPool made = Make(pool, false);
  ASSERT_EQ(made.specs.size(), 3u);
  const api::Value counters = made.specs[0]->root();
  EXPECT_FALSE(counters["partitionTypeAttribute"].exists()) << "it is about devices";
  EXPECT_EQ(counters["skipNodeOperations"].size(), 1u);
  const api::Value selected = made.specs[1]->root();
  EXPECT_TRUE(selected["perDeviceNodeSelection"].boolean());
  EXPECT_FALSE(selected["allNodes"].exists());
  EXPECT_EQ(selected["partitionTypeAttribute"].str(), "d.example.com/kind");
  const api::Value other = made.specs[2]->root();
  EXPECT_FALSE(other["perDeviceNodeSelection"].exists());
  EXPECT_TRUE(other["allNodes"].boolean());
  EXPECT_FALSE(other["skipNodeOperations"].exists());
  EXPECT_THAT(ErrorOf(pool, true), HasSubstr("on a node"));
  pool.all_nodes = false;
  EXPECT_THAT(ErrorOf(pool, true), HasSubstr("cannot select other nodes for a device"));
  EXPECT_THAT(ErrorOf(pool, false), HasSubstr("needs node_selector")) << "the second slice";
  pool.slices.pop_back();
  EXPECT_EQ(ErrorOf(pool, false), "");
}

TEST(DesiredPool, TimesAreWholeSecondsAndGenerationsKept) {
  Pool pool = WithSlice(Devices(1));
  pool.generation = 7;
  const WallTime noon = *api::ParseTime("2026-01-02T12:00:00Z");
  for (const int milliseconds : {-500, 0, 499}) {
    pool.slices[0].devices[0].taints = {
        {.key = "k",
         .effect = "None",
         .time_added = noon + std::chrono::milliseconds(milliseconds)}};
    const DesiredPool made = Make(pool);
    EXPECT_EQ(made.generation, 7);
    EXPECT_EQ(made.specs[0]->root()["devices"].at(0)["taints"].at(0)["timeAdded"].str(),
              "2026-01-02T12:00:00Z")
        << milliseconds;
  }
}

TEST(DesiredPool, PoolsAreNamedByDomainsAndPaths) {
  const auto error = [](const std::string& name) {
    DriverResources resources;
    resources.pools[name];
    const auto made = MakeDesiredPools(resources, true);
    return made.ok() ? std::string() : made.error().message;
  };
  std::string longest(251, 'a');
  longest[100] = '/';
  EXPECT_EQ(error("a"), "");
  EXPECT_EQ(error("rack-1/node.example.com"), "");
  EXPECT_EQ(error(longest + ".a"), "");
  EXPECT_EQ(error(""), "pool \"\": a pool must have a name");
  EXPECT_THAT(error(longest + ".aa"), HasSubstr("must not exceed 253 bytes"));
  for (const char* bad : {"/a", "a/", "a//b", "a/B", "A/b"}) EXPECT_NE(error(bad), "") << bad;
}

}  // namespace
}  // namespace drakkar::driver
