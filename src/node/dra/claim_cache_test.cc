#include "node/dra/claim_cache.h"

#include <gtest/gtest.h>

#include "node/dra/skip_operations.h"

namespace drakkar::node {
namespace {

ClaimInfo Claim() {
  ClaimInfo info;
  info.uid = "u";
  info.name = "c";
  info.namespace_name = "n";
  info.pod_uids = {"p", "q"};
  return info;
}

TEST(ClaimCache, DevicesSurviveTheCheckpointWithAllTheirMembers) {
  ClaimInfo info = Claim();
  info.drivers["d"] = {.devices = {{.request_names = {"r"},
                                    .pool_name = "pool",
                                    .device_name = "a",
                                    .cdi_device_ids = {"x.com/gpu=a"},
                                    .share_id = "share"},
                                   {.pool_name = "pool", .device_name = "b"}},
                       .answered = true};
  ClaimCache cache;
  cache.Add(info);
  ClaimCache again;
  again.Load(cache.Save());
  const ClaimInfo* loaded = again.Find("n/c");
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(loaded->uid, "u");
  EXPECT_EQ(loaded->pod_uids, info.pod_uids);
  const ClaimDriver& driver = loaded->drivers.at("d");
  EXPECT_TRUE(driver.answered);
  ASSERT_EQ(driver.devices.size(), 2u);
  EXPECT_EQ(driver.devices[0].request_names, std::vector<std::string>{"r"});
  EXPECT_EQ(driver.devices[0].cdi_device_ids, std::vector<std::string>{"x.com/gpu=a"});
  EXPECT_EQ(driver.devices[0].share_id, "share");
  EXPECT_EQ(driver.devices[1].device_name, "b");
  EXPECT_EQ(again.Save(), cache.Save());
}

// In the file, a driver with devices has answered.
TEST(ClaimCache, ADriverThatHasNotAnsweredHasNoDevicesInTheCheckpoint) {
  ClaimInfo info = Claim();
  info.drivers["mixed"].devices = {{.pool_name = "pool", .device_name = "skips"}};
  info.drivers["skips"] = {.devices = {{.pool_name = "pool", .device_name = "a"}},
                           .skip_node_operations = {std::string(kSkipAll)}};
  info.drivers["skips-unlisted"].skip_node_operations = {std::string(kSkipAll)};
  ClaimCache cache;
  cache.Add(info);
  const CheckpointState state = cache.Save();
  ASSERT_TRUE(state && state->size() == 1u);
  const auto& drivers = *state->front().driver_state;
  EXPECT_FALSE(drivers.at("mixed").devices.has_value());
  EXPECT_TRUE(drivers.at("skips").devices.has_value());
  EXPECT_FALSE(drivers.at("skips-unlisted").devices.has_value());
  ClaimCache again;
  again.Load(state);
  for (const auto& [name, driver] : again.Find("n/c")->drivers) {
    EXPECT_FALSE(driver.answered) << name;
  }
}

TEST(ClaimCache, EveryClaimAndDriverSurvivesTheCheckpoint) {
  ClaimCache cache;
  for (const char* name : {"c", "d"}) {
    ClaimInfo info = Claim();
    info.name = name;
    for (const char* driver : {"x", "y"}) {
      info.drivers[driver] = {.devices = {{.pool_name = "pool", .device_name = name}},
                              .answered = true,
                              .skip_node_operations = {"NodeUnprepareResources"}};
    }
    cache.Add(info);
  }
  ClaimCache again;
  ClaimInfo stale = Claim();
  stale.name = "stale";
  again.Add(stale);
  again.Load(cache.Save());
  EXPECT_EQ(again.claims().size(), 2u) << "what it held before is replaced";
  for (const char* name : {"n/c", "n/d"}) {
    ASSERT_NE(again.Find(name), nullptr);
    ASSERT_EQ(again.Find(name)->drivers.size(), 2u);
    for (const auto& [driver, state] : again.Find(name)->drivers) {
      EXPECT_EQ(state.skip_node_operations, std::vector<std::string>{"NodeUnprepareResources"});
      EXPECT_EQ(state.devices.size(), 1u);
      EXPECT_TRUE(state.answered) << "it skips only unprepare";
    }
  }
  again.Load(std::nullopt);
  EXPECT_TRUE(again.claims().empty());
}

// Kubernetes writes null for them.
TEST(ClaimCache, NothingIsAbsentInTheCheckpointAndNotAnEmptyList) {
  EXPECT_EQ(ClaimCache().Save(), std::nullopt);
  ClaimInfo info = Claim();
  info.drivers["d"] = {.devices = {{.pool_name = "pool", .device_name = "a"}}, .answered = true};
  ClaimCache cache;
  cache.Add(info);
  const CheckpointState state = cache.Save();
  const auto& device = state->front().driver_state->at("d").devices->front();
  EXPECT_FALSE(device.request_names.has_value());
  EXPECT_FALSE(device.cdi_device_ids.has_value());
  EXPECT_FALSE(device.share_id.has_value());
}

TEST(ClaimCache, FindsTheClaimsOfAPodAndThePodsOfAllClaims) {
  ClaimCache cache;
  for (const auto& [name, pods] : std::map<std::string, std::set<std::string>>{
           {"a", {"p"}}, {"b", {"q"}}, {"c", {"p", "r"}}}) {
    ClaimInfo info = Claim();
    info.name = name;
    info.pod_uids = pods;
    cache.Add(info);
  }
  EXPECT_EQ(cache.KeysOfPod("p"), (std::vector<std::string>{"n/a", "n/c"}));
  EXPECT_EQ(cache.KeysOfPod("r"), (std::vector<std::string>{"n/c"}));
  EXPECT_TRUE(cache.KeysOfPod("nobody").empty());
  EXPECT_EQ(cache.PodUids(), (std::set<std::string>{"p", "q", "r"}));
  const ClaimCache& constant = cache;
  EXPECT_EQ(constant.Find("n/b")->name, "b");
  EXPECT_EQ(constant.Find("n/x"), nullptr);
}

}  // namespace
}  // namespace drakkar::node
