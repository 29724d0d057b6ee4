// Announcements to drivers before they are called.
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

TEST(DraAnnouncement, AnnouncesClaimsEarlyAndCallsDriversOnceTheIntentIsOnDisk) {
  GpuNode node;
  node.CreatePodWithClaim();
  EXPECT_TRUE(node.driver.plugin.announcements.empty()) << "it did not say that it listens";
  node.DeletePod("p");
  node.Advance(seconds(2));
  node.driver.Stop();
  node.driver.plugin.info.supported_versions.emplace_back(rpc::kAnnouncementService);
  node.driver.Start();
  std::vector<std::string> order;
  // The claim already had an intent; the second pod's is a new one.
  const auto intent_is_on_disk = [&] {
    const auto slots = node.files.ReadFile("/var/lib/kubelet/dra_manager_state.intents");
    return slots.ok() && slots->find(node.Pod("p2")->uid()) != std::string::npos;
  };
  node.driver.plugin.on_announcement = [&] { order.push_back("announced"); };
  node.driver.plugin.prepare_claim =
      [&, prepare = node.driver.plugin.prepare_claim](const rpc::ClaimReference& claim) {
        // Only the announcement may precede the durable intent.
        EXPECT_TRUE(intent_is_on_disk());
        order.push_back("prepared");
        return prepare(claim);
      };
  node.CreatePod("p2", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p2"), "Running");
  EXPECT_THAT(order, ElementsAre("announced", "prepared"));
  ASSERT_EQ(node.driver.plugin.announcements.size(), 1u);
  const rpc::AnnouncedClaim& announced = node.driver.plugin.announcements.front().at(0);
  EXPECT_THAT(node.driver.plugin.prepare_calls.back(), ElementsAre(announced.reference));
  // The claim as the node fetched it, so that the driver need not.
  const auto claim = api::ParseJson(announced.object);
  ASSERT_TRUE(claim.ok()) << announced.object;
  EXPECT_EQ((*claim)->root()["metadata"]["uid"].str(), announced.reference.uid);
  EXPECT_EQ((*claim)->root()["status"]["allocation"]["devices"]["results"].at(0)["device"].str(),
            "dev-0");
}

TEST(DraAnnouncement, ClaimsBeyondTheByteLimitAreAnnouncedByNameOnly) {
  GpuNode node;
  node.driver.Stop();
  node.driver.plugin.info.supported_versions.emplace_back(rpc::kAnnouncementService);
  node.driver.Start();
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(StrCat("c", i));
    node.CreateClaim(names.back(), {StrCat("gpu.example.com/dev-", i)});
    const std::string key = StrCat("default/", names.back());
    api::Draft changed(node.api.Get("ResourceClaim", key)->tree());
    changed["metadata"]["annotations"]["note"] = std::string(250 << 10, 'x');
    ASSERT_TRUE(node.api.Update("ResourceClaim", key, "", changed.Freeze()).ok());
  }
  node.CreatePod(
      "p",
      R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c0"}]}}])",
      names);
  ASSERT_EQ(node.Phase("p"), "Running");
  ASSERT_EQ(node.driver.plugin.announcements.size(), 1u);
  const auto& announced = node.driver.plugin.announcements.front();
  ASSERT_EQ(announced.size(), 5u);
  std::size_t bytes = 0;
  std::size_t complete = 0;
  for (const rpc::AnnouncedClaim& claim : announced) {
    bytes += claim.object.size();
    if (claim.object.empty()) continue;
    ++complete;
    const auto object = api::ParseJson(claim.object);
    ASSERT_TRUE(object.ok());
    EXPECT_EQ((*object)->root()["metadata"]["uid"].str(), claim.reference.uid) << "its own object";
  }
  EXPECT_LE(bytes, DraManager::kMaxAnnouncedBytes);
  EXPECT_EQ(complete, 4u);
  EXPECT_TRUE(announced.back().object.empty());
}

TEST(DraAnnouncement, ClaimsThatFailTheirChecksAreNotAnnounced) {
  GpuNode node;
  node.driver.Stop();
  node.driver.plugin.info.supported_versions.emplace_back(rpc::kAnnouncementService);
  node.driver.Start();
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.api.Create(StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"node-1",)",
      kUsesClaim, R"(,"resourceClaims":[{"name":"c","resourceClaimName":"c"}]}})"));
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_TRUE(node.driver.plugin.announcements.empty());
}

TEST(DraAnnouncement, ProcessorsStayAwakeWhileAClaimIsPrepared) {
  // A file in place of the device holds the last value written.
  const std::string path = StrCat(::testing::TempDir(), "dra-wakefulness-", ::getpid());
  auto asked = [&] {
    std::int32_t value = -1;
    std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  std::ofstream(path, std::ios::binary).write("none", 4);
  {
    NodeHarness node;
    Wakefulness wakefulness(node.loop, path);
    node.wakefulness = &wakefulness;
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    driver.plugin.hold_calls = true;
    node.CreatePodWithClaim();
    EXPECT_EQ(asked(), 0);
    node.Advance(Wakefulness::kLimit);
    EXPECT_NE(asked(), 0) << "not for a driver that takes its time";
    driver.plugin.hold_calls = false;
    driver.plugin.ReleaseCalls();
    node.Run();
    EXPECT_EQ(node.Phase("p"), "Running");
    EXPECT_NE(asked(), 0);
    node.KillAgent();
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace drakkar::node
