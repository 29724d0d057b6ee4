// What pods and the Node see of a shutdown of the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/node_agent.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::SizeIs;

std::string ReadyMessage(NodeHarness& node) {
  const api::ObjectPtr object = node.api.Get("Node", "node-1");
  for (api::Value condition : (*object)["status"]["conditions"].elements()) {
    if (condition["type"].str() != "Ready") continue;
    return std::string(condition["status"].str()) + ": " + std::string(condition["message"].str());
  }
  return "(none)";
}

TEST(NodeShutdown, PodsFailTheNodeIsNotReadyAndNothingStarts) {
  NodeHarness node;
  node.shutdown_periods = {{0, 5}};
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  node.Run();
  ASSERT_EQ(node.Phase("p"), "Running");
  node.agent->BeginShutdown();
  node.Advance(seconds(6));
  EXPECT_EQ(ReadyMessage(node), "False: node is shutting down");
  EXPECT_THAT(node.Events("NodeShutdown"), SizeIs(1));
  const api::ObjectPtr pod = node.Pod("p");
  EXPECT_EQ((*pod)["status"]["phase"].str(), "Failed");
  EXPECT_EQ((*pod)["status"]["reason"].str(), "Terminated");
  EXPECT_EQ((*pod)["status"]["message"].str(),
            "Pod was terminated in response to imminent node shutdown.");
  node.CreatePod("q", R"("containers":[{"name":"a","image":"busybox:1"}])");
  node.Run();
  EXPECT_EQ((*node.Pod("q"))["status"]["reason"].str(), "NodeShutdown");
  node.agent->CancelShutdown();
  node.Advance(seconds(1));
  EXPECT_EQ(ReadyMessage(node), "True: kubelet is posting ready status");
}

TEST(NodeShutdown, WithoutAPeriodNothingHappens) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  node.Run();
  node.agent->BeginShutdown();
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Running");
}

}  // namespace
}  // namespace drakkar::node
