// ResourceSlices of drivers that have disconnected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "api/json/reader.h"
#include "base/exec/wakefulness.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DriverSlices, SlicesOfADriverAreDeletedThirtySecondsAfterItDisconnects) {
  GpuNode node;
  auto create = [&] {
    node.api.Create(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},
      "spec":{"driver":"gpu.example.com","nodeName":"node-1","pool":{"name":"node-1","generation":1,"resourceSliceCount":1},
      "devices":[{"name":"dev-0"}]}})");
  };
  create();
  node.driver.Stop();
  node.Advance(seconds(20));
  node.driver.Start();
  node.Advance(seconds(20));
  EXPECT_NE(node.api.Get("ResourceSlice", "s"), nullptr) << "it was back in time";
  node.driver.Stop();
  node.Advance(seconds(29));
  EXPECT_NE(node.api.Get("ResourceSlice", "s"), nullptr);
  node.Advance(seconds(2));
  EXPECT_EQ(node.api.Get("ResourceSlice", "s"), nullptr);
}

TEST(DriverSlices, WithTwoInstancesTheSlicesStayUntilTheLastDisconnects) {
  NodeHarness node;
  node.StartAgent();
  FakeDriver old_one(node, "gpu.example.com", "gpu-1.sock"),
      new_one(node, "gpu.example.com", "gpu-2.sock");
  old_one.Start();
  new_one.Start();
  node.api.Create(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},
    "spec":{"driver":"gpu.example.com","nodeName":"node-1","pool":{"name":"node-1","generation":1,"resourceSliceCount":1},
    "devices":[{"name":"dev-0"}]}})");
  node.CreatePodWithClaim();
  EXPECT_EQ(new_one.plugin.prepare_calls.size(), 1u) << "the newest is called";
  EXPECT_TRUE(old_one.plugin.prepare_calls.empty());
  new_one.Stop();
  node.Advance(seconds(60));
  EXPECT_NE(node.api.Get("ResourceSlice", "s"), nullptr);
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(old_one.plugin.unprepare_calls.size(), 1u)
      << "what one instance prepared the other takes back";
  old_one.Stop();
  node.Advance(seconds(31));
  EXPECT_EQ(node.api.Get("ResourceSlice", "s"), nullptr);
}

TEST(DriverSlices, SlicesOfARegisteredDriverWithoutAConnectionAreDeletedAfterThirtySeconds) {
  GpuNode node;
  auto slice = [&] { return node.api.Get("ResourceSlice", "s"); };
  auto create = [&] {
    node.api.Create(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},
      "spec":{"driver":"gpu.example.com","nodeName":"node-1","pool":{"name":"node-1","generation":1,"resourceSliceCount":1},
      "devices":[{"name":"dev-0"}]}})");
  };
  create();
  node.driver.Kill();
  ASSERT_TRUE(node.agent->plugins().GetPlugin("gpu.example.com").ok()) << "its socket is there";
  node.Advance(seconds(29));
  EXPECT_NE(slice(), nullptr);
  node.Advance(seconds(2));
  EXPECT_EQ(slice(), nullptr);
  // It answers the registration, but its service never listens.
  node.driver.plugin.info.endpoint = "/var/lib/kubelet/plugins/gpu.example.com/dra.sock";
  node.driver.Start();
  ASSERT_TRUE(node.driver.plugin.notifications.back().plugin_registered);
  create();
  node.Advance(seconds(29));
  EXPECT_NE(slice(), nullptr);
  node.Advance(seconds(2));
  EXPECT_EQ(slice(), nullptr);
}

}  // namespace
}  // namespace drakkar::node
