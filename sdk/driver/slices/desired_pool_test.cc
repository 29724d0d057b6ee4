#include "sdk/driver/slices/desired_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
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

}  // namespace
}  // namespace drakkar::driver
