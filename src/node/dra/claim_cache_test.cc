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

}  // namespace
}  // namespace drakkar::node
