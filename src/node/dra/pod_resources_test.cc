// The pod resources API.
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

struct Questions {
  explicit Questions(NodeHarness& on)
      : node(on),
        client(rpc::MakePodResourcesClient(on.transport,
                                           "/var/lib/kubelet/pod-resources/kubelet.sock")) {}
  rpc::PodResources Get(const std::string& name) {
    std::optional<Result<rpc::PodResources>> found;
    client->Get({.name = name, .namespace_name = "default"}, seconds(1),
                [&](auto result) { found = std::move(result); });
    node.Run();
    EXPECT_TRUE(found && found->ok());
    return found && found->ok() ? **found : rpc::PodResources();
  }
  NodeHarness& node;
  std::unique_ptr<rpc::PodResourcesClient> client;
};

TEST(PodResourcesService, ListsWhichPodHoldsWhichDevice) {
  GpuNode node;
  node.CreatePodWithClaim();
  auto client =
      rpc::MakePodResourcesClient(node.transport, "/var/lib/kubelet/pod-resources/kubelet.sock");
  std::optional<Result<std::vector<rpc::PodResources>>> list;
  client->List(seconds(1), [&](auto result) { list = std::move(result); });
  node.Run();
  ASSERT_TRUE(list && list->ok());
  ASSERT_EQ((**list).size(), 1u);
  const auto& resource = (**list)[0].containers.at(0).dynamic_resources.at(0);
  EXPECT_EQ(resource.claim_name, "c");
  EXPECT_EQ(resource.claim_resources.at(0).device_name, "device-c");
}

TEST(PodResourcesService, AnswersGetAndGetAllocatableResources) {
  GpuNode node;
  node.CreatePodWithClaim();
  auto client =
      rpc::MakePodResourcesClient(node.transport, "/var/lib/kubelet/pod-resources/kubelet.sock");
  std::optional<Result<rpc::PodResources>> found, missing, elsewhere;
  std::optional<Result<rpc::AllocatableResources>> allocatable;
  client->Get({.name = "p", .namespace_name = "default"}, seconds(1),
              [&](auto result) { found = std::move(result); });
  client->Get({.name = "nobody", .namespace_name = "default"}, seconds(1),
              [&](auto result) { missing = std::move(result); });
  client->Get({.name = "p", .namespace_name = "elsewhere"}, seconds(1),
              [&](auto result) { elsewhere = std::move(result); });
  client->GetAllocatable(seconds(1), [&](auto result) { allocatable = std::move(result); });
  node.Run();
  EXPECT_TRUE(elsewhere && !elsewhere->ok()) << "a pod of the same name";
  ASSERT_TRUE(found && found->ok());
  const auto& resource = (*found)->containers.at(0).dynamic_resources.at(0).claim_resources.at(0);
  EXPECT_EQ(resource.driver_name, "gpu.example.com");
  EXPECT_EQ(resource.pool_name, "pool");
  EXPECT_EQ(resource.cdi_device_ids.size(), 1u);
  ASSERT_TRUE(missing && !missing->ok());
  EXPECT_THAT(missing->error().message, HasSubstr("pod nobody in namespace default not found"));
  EXPECT_TRUE(allocatable && allocatable->ok());
}

TEST(PodResourcesService, EachContainerHasTheDevicesOfTheRequestsItNames) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    rpc::PrepareResult result;
    for (const char* request : {"r", "other/small"}) {
      result.devices.push_back({.request_names = {request},
                                .pool_name = "pool",
                                .device_name = "shared",
                                .share_id = std::string("share-") + request[0]});
    }
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p", R"("initContainers":[
      {"name":"once","image":"busybox:1","command":["true"],"resources":{"claims":[{"name":"c"}]}},
      {"name":"sidecar","image":"busybox:1","restartPolicy":"Always","resources":{"claims":[{"name":"c","request":"other"}]}}],
      "containers":[{"name":"all","image":"busybox:1","resources":{"claims":[{"name":"c"}]}},
                    {"name":"one","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}},
                    {"name":"none","image":"busybox:1"}])",
                 {"c"});
  std::vector<std::string> seen;
  for (const auto& container : Questions(node).Get("p").containers) {
    std::string line = container.name;
    for (const auto& resource : container.dynamic_resources) {
      for (const auto& device : resource.claim_resources)
        line += " " + device.device_name + "/" + device.share_id.value_or("");
    }
    seen.push_back(line);
  }
  EXPECT_THAT(seen, ElementsAre("sidecar shared/share-o", "all shared/share-o shared/share-r",
                                "one shared/share-r", "none"));
}

TEST(PodResourcesService, ListsEveryClaimOfAContainerAndEveryRequestOfADevice) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference& claim) {
    rpc::PrepareResult result;
    result.devices.push_back({.request_names = {"first", "second/small"},
                              .pool_name = "pool",
                              .device_name = "of-" + claim.name});
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreateClaim("d", {"gpu.example.com/dev-1"});
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[
      {"name":"c","request":"second"},{"name":"d","request":"first"}]}}])",
                 {"c", "d"});
  std::vector<std::string> seen;
  const rpc::PodResources described = Questions(node).Get("p");
  EXPECT_EQ(described.name, "p");
  EXPECT_EQ(described.namespace_name, "default");
  for (const auto& resource : described.containers.at(0).dynamic_resources) {
    EXPECT_EQ(resource.claim_namespace, "default");
    for (const auto& device : resource.claim_resources) {
      seen.push_back(resource.claim_name + " " + device.device_name);
    }
  }
  EXPECT_THAT(seen, ElementsAre("c of-c", "d of-d"));
}

TEST(PodResourcesService, CallsAreLimitedToAHundredPerSecondWithBurstsOfTen) {
  GpuNode node;
  Questions questions(node);
  int answered = 0;
  std::vector<Error> refused;
  auto ask = [&](int count) {
    answered = 0;
    for (int i = 0; i < count; ++i) {
      auto take = [&](const auto& result) {
        result.ok() ? void(++answered) : refused.push_back(result.error());
      };
      if (i % 2 == 0) questions.client->List(seconds(1), take);
      if (i % 2 == 1) questions.client->GetAllocatable(seconds(1), take);
    }
    node.Run();
  };
  ask(15);
  EXPECT_EQ(answered, 10);
  ASSERT_EQ(refused.size(), 5u);
  EXPECT_EQ(refused[0].code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused[0].message, HasSubstr("rejected by rate limit"));
  node.Advance(std::chrono::milliseconds(50));
  ask(15);
  EXPECT_EQ(answered, 5);
  node.Advance(seconds(10));
  ask(15);
  EXPECT_EQ(answered, 10);
}

}  // namespace
}  // namespace drakkar::node
