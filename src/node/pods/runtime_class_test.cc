// Pods that name a RuntimeClass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kPod[] =
    R"("runtimeClassName":"sandboxed","containers":[{"name":"a","image":"busybox:1"}])";

void CreateClass(NodeHarness& node) {
  node.api.Create(R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass",
    "metadata":{"name":"sandboxed"},"handler":"runsc"})");
}

std::vector<std::string> HandlersOfSandboxes(const NodeHarness& node) {
  std::vector<std::string> handlers;
  for (const auto& [id, config] : node.machine.sandbox_configs) {
    handlers.push_back(config.runtime_handler);
  }
  return handlers;
}

TEST(PodRuntimeClass, ThePodRunsWithItsHandlerAndTheNodeReportsThem) {
  NodeHarness node;
  CreateClass(node);
  node.machine.handlers = {
      {.name = ""},
      {.name = "runsc", .recursive_read_only_mounts = false, .user_namespaces = true}};
  node.StartAgent();
  node.CreatePod("p", kPod);
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(HandlersOfSandboxes(node), std::vector<std::string>{"runsc"});
  const auto object = node.api.Get("Node", "node-1");
  const api::Value handlers = (*object)["status"]["runtimeHandlers"];
  ASSERT_EQ(handlers.size(), 2u);
  EXPECT_TRUE(handlers.at(0)["name"].has_value());
  EXPECT_FALSE(handlers.at(0)["features"].has_value());
  EXPECT_EQ(handlers.at(1)["name"].str(), "runsc");
  EXPECT_EQ(handlers.at(1)["features"]["userNamespaces"].optional_boolean(), true);
  EXPECT_EQ(handlers.at(1)["features"]["recursiveReadOnlyMounts"].optional_boolean(), false);
}

TEST(PodRuntimeClass, ARuntimeThatDoesNotListItsHandlersIsAsked) {
  NodeHarness node;
  CreateClass(node);
  node.machine.handlers.reset();
  node.StartAgent();
  node.CreatePod("p", kPod);
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(HandlersOfSandboxes(node), std::vector<std::string>{"runsc"});
  EXPECT_FALSE((*node.api.Get("Node", "node-1"))["status"]["runtimeHandlers"].has_value());
}

TEST(PodRuntimeClass, APodWhoseHandlerOrClassIsMissingIsRejected) {
  NodeHarness node;
  CreateClass(node);
  node.machine.handlers = {{.name = "kata"}, {.name = "runc"}};
  node.StartAgent();
  node.CreatePod("p", kPod);
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "RuntimeClassUnsupported");
  EXPECT_EQ((*node.Pod("p"))["status"]["message"].str(),
            "Pod was rejected: this node's runtime has no handler \"runsc\", which RuntimeClass "
            "\"sandboxed\" asks for; it has kata, runc");
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "get runtimeclasses") return NotFound("gone");
    return std::nullopt;
  };
  node.CreatePod("q", kPod);
  EXPECT_EQ((*node.Pod("q"))["status"]["reason"].str(), "RuntimeClassNotFound");
  EXPECT_THAT((*node.Pod("q"))["status"]["message"].str(),
              HasSubstr("\"sandboxed\" does not exist"));
  EXPECT_TRUE(node.machine.sandboxes.empty());
}

TEST(PodRuntimeClass, AClassThatCannotBeReadIsReadAgain) {
  NodeHarness node;
  CreateClass(node);
  node.machine.handlers = {{.name = "runsc"}};
  node.StartAgent();
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "get runtimeclasses") return Unavailable("connection closed");
    return std::nullopt;
  };
  node.CreatePod("p", kPod);
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_NE(node.Phase("p"), "Failed");
  node.api_fault = nullptr;
  node.Advance(seconds(61));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(PodRuntimeClass, APodOfAnEarlierAgentKeepsRunningAndGetsItsHandlerAgain) {
  NodeHarness node;
  CreateClass(node);
  node.machine.handlers = {{.name = "runsc"}};
  node.StartAgent();
  node.CreatePod("p", kPod);
  ASSERT_EQ(node.Phase("p"), "Running");
  node.KillAgent();
  node.machine.handlers = {{.name = "runsc"}};
  bool missing = true;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (missing && what == "get runtimeclasses") return NotFound("gone");
    return std::nullopt;
  };
  node.StartAgent();
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Running") << "its sandbox needs no class";
  // The sandbox is lost while the class is missing.
  node.KillAgent();
  for (auto& [id, sandbox] : node.machine.sandboxes) sandbox.state = SandboxState::kNotReady;
  for (auto& [id, container] : node.machine.containers) {
    container.status.state = ContainerState::kExited;
    container.status.exit_code = 137;
  }
  node.StartAgent();
  node.Advance(seconds(30));
  ASSERT_FALSE(node.Events("FailedCreatePodSandBox").empty());
  EXPECT_THAT(node.Events("FailedCreatePodSandBox").back(), HasSubstr("does not exist"));
  missing = false;
  node.Advance(seconds(400));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(HandlersOfSandboxes(node).back(), "runsc");
}

}  // namespace
}  // namespace drakkar::node
