// The fabric controller together with the scheduler, when it misses events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/fabric/fabric_controller.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar {
namespace {

using std::chrono::seconds;

TEST(Fabric, AnAllocationIsAttachedEvenIfTheEndOfThePreviousOneWasMissed) {
  scheduler::TestCluster cluster;
  cluster.binding_timeout = seconds(20);
  testing::FaultyClient client(cluster.loop(), cluster.client());
  fabric::FabricController fabric(
      {.loop = cluster.loop(),
       .random = cluster.loop().random(),
       .client = client,
       .devices = {{"gpu-0", fabric::Behaviour::kHangs}, {"gpu-1", fabric::Behaviour::kAttaches}}});
  // Its watch is interrupted whenever the claim is not allocated.
  client.hides = [](const client::WatchEvent& event) {
    return event.object->kind() == "ResourceClaim" &&
           !event.object->root()["status"]["allocation"].has_value();
  };
  fabric.Start();
  cluster.CreateNode("n1");
  cluster.Create("DeviceClass", R"({"metadata":{"name":"fabric"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"fabric.example.com\""}}]}})");
  cluster.CreateClaim("c", 1, "fabric");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.loop().Advance(seconds(10));
  ASSERT_THAT(cluster.DevicesOf("c"), ::testing::ElementsAre("fabric.example.com/fabric/gpu-0"));
  cluster.loop().Advance(seconds(20));
  EXPECT_THAT(cluster.DevicesOf("c"), ::testing::ElementsAre("fabric.example.com/fabric/gpu-1"));
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

}  // namespace
}  // namespace drakkar
