#include "rpc/podresources/podresources.h"

#include <gtest/gtest.h>

#include "rpc/podresources/podresources_codec.h"
#include "rpc/server/service_set.h"
#include "rpc/testing/contract_test.h"

namespace drakkar::rpc {
namespace {

using std::chrono::seconds;

PodResources FullPod() {
  const NumaTopology topology{.node_ids = {0, 1}};
  const ContainerMemory memory{
      .memory_type = "hugepages-2Mi", .size_bytes = 1ull << 40, .topology = topology};
  ContainerResources container;
  container.name = "main";
  container.devices = {{.resource_name = "example.com/gpu", .device_ids = {"0", "1"}}};
  container.cpu_ids = {3, 4};
  container.memory = {memory};
  container.dynamic_resources = {{.claim_name = "claim",
                                  .claim_namespace = "ns",
                                  .claim_resources = {{.cdi_device_ids = {"v/c=1"},
                                                       .driver_name = "gpu.example.com",
                                                       .pool_name = "pool",
                                                       .device_name = "dev",
                                                       .share_id = "share"},
                                                      {.driver_name = "nic.example.com"}}}};
  return {.name = "pod",
          .namespace_name = "ns",
          .containers = {container},
          .cpu_ids = {5},
          .memory = {memory}};
}

class FakeProvider final : public PodResourcesProvider {
 public:
  Result<std::vector<PodResources>> ListPodResources() override { return pods; }
  Result<AllocatableResources> GetAllocatableResources() override {
    return AllocatableResources{
        .devices = FullPod().containers[0].devices, .cpu_ids = {0, 1}, .memory = FullPod().memory};
  }
  Result<PodResources> GetPodResources(const PodReference& pod) override {
    for (const PodResources& each : pods) {
      if (each.name == pod.name && each.namespace_name == pod.namespace_name) return each;
    }
    return NotFound("pod " + pod.name + " in namespace " + pod.namespace_name + " not found");
  }

  std::vector<PodResources> pods;
};

class PodResourcesTest : public ContractTest {
 protected:
  PodResourcesTest() {
    provider_.pods = {FullPod(), {.name = "empty", .namespace_name = "ns"}};
    Do([this] {
      const std::string path = SocketPath("kubelet.sock");
      ServiceSet services;
      services.pod_resources = &provider_;
      server_ = CreateServer(transport(), path, services);
      EXPECT_TRUE(server_->Start().ok());
      client_ = MakePodResourcesClient(transport(), path);
    });
  }
  ~PodResourcesTest() override {
    Do([this] {
      client_.reset();
      server_.reset();
    });
  }

  FakeProvider provider_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<PodResourcesClient> client_;
};

TEST_P(PodResourcesTest, ListCarriesEveryField) {
  const auto pods = Await<std::vector<PodResources>>(
      [&](auto done) { client_->List(seconds(10), std::move(done)); });
  ASSERT_TRUE(pods.ok()) << pods.error().message;
  EXPECT_EQ(*pods, provider_.pods);
}

TEST_P(PodResourcesTest, ListOfAFullNodeFitsIntoOneMessage) {
  Do([&] {
    PodResources pod = FullPod();
    pod.containers.resize(20, pod.containers[0]);
    provider_.pods.assign(500, pod);
  });
  const auto pods = Await<std::vector<PodResources>>(
      [&](auto done) { client_->List(seconds(10), std::move(done)); });
  ASSERT_TRUE(pods.ok()) << pods.error().message;
  EXPECT_EQ(pods->size(), 500u);
}

TEST_P(PodResourcesTest, AllocatableCarriesEveryField) {
  const auto resources = Await<AllocatableResources>(
      [&](auto done) { client_->GetAllocatable(seconds(10), std::move(done)); });
  ASSERT_TRUE(resources.ok()) << resources.error().message;
  EXPECT_EQ(*resources, *provider_.GetAllocatableResources());
}

TEST_P(PodResourcesTest, GetFindsOnePodOrSaysThatThereIsNone) {
  const auto get = [&](const std::string& name) {
    return Await<PodResources>([&](auto done) {
      client_->Get({.name = name, .namespace_name = "ns"}, seconds(10), std::move(done));
    });
  };
  EXPECT_EQ(get("pod").value(), FullPod());
  const auto missing = get("nobody");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error(),
            NotFound("rpc error: code = NotFound desc = pod nobody in namespace ns not found"));
}

INSTANTIATE_CONTRACT_TEST(PodResourcesTest);

TEST(PodResourcesCodec, MatchesTheWireFormat) {
  PodResources pod;
  pod.name = "p";
  pod.containers = {
      {.name = "c", .dynamic_resources = {{.claim_name = "x", .claim_namespace = "y"}}}};
  pod.cpu_ids = {1};
  // Containers in field 3, dynamic resources in 5 (names in 2 and 3), CPUs packed in 4.
  EXPECT_EQ(podresources::EncodeGetResponse(pod),
            "\x0a\x13\x0a\x01p\x1a\x0b\x0a\x01"
            "c\x2a\x06\x12\x01x\x1a\x01y\x22\x01\x01");
}

}  // namespace
}  // namespace drakkar::rpc
