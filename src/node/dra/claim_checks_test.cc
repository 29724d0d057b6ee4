// Claims that must not be prepared, and driver answers that must not be accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "api/json/reader.h"
#include "base/exec/wakefulness.h"
#include "base/text/text.h"
#include "claims/claim.h"
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

TEST(ClaimChecks, AClaimThatIsNotReservedForThePodIsNotTouched) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.api.Create(StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"node-1",)",
      kUsesClaim, R"(,"resourceClaims":[{"name":"c","resourceClaimName":"c"}]}})"));
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_TRUE(node.history.empty());
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("is not allowed to use ResourceClaim c"));
}

TEST(ClaimChecks, AClaimOfThePodsGroupIsAcceptedWithTheGate) {
  for (const bool enabled : {false, true}) {
    GpuNode node(NodeHarness::DefaultGates().With(Gate::kDRAWorkloadResourceClaims, enabled));
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    api::Draft claim(node.api.Get("ResourceClaim", "default/c")->tree());
    claim["metadata"]["ownerReferences"].Append(
        {{"apiVersion", api::Draft("scheduling.k8s.io/v1beta1")},
         {"kind", api::Draft("PodGroup")},
         {"name", api::Draft("g")},
         {"uid", api::Draft("g-uid")},
         {"controller", api::Draft(true)}});
    ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "", claim.Freeze()).ok());
    api::Draft reserved(node.api.Get("ResourceClaim", "default/c")->tree());
    claims::AddReservation(reserved, {"g", "g-uid", true});
    ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "status", reserved.Freeze()).ok());
    node.CreatePod("p", R"("schedulingGroup":{"podGroupName":"g"},
        "containers":[{"name":"a","image":"busybox:1"}],
        "resourceClaims":[{"name":"c","resourceClaimTemplateName":"t"}])");
    api::Draft status(node.Pod("p")->tree());
    status["status"]["resourceClaimStatuses"].Append(
        {{"name", api::Draft("c")}, {"resourceClaimName", api::Draft("c")}});
    ASSERT_TRUE(node.api.Update("Pod", "default/p", "status", status.Freeze()).ok());
    node.Advance(seconds(5));
    EXPECT_EQ(node.Phase("p"), enabled ? "Running" : "Pending");
  }
}

TEST(ClaimChecks, ATemplateClaimOfAnotherPodIsRefused) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  auto pod = node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}],
      "resourceClaims":[{"name":"c","resourceClaimTemplateName":"t"}])");
  ASSERT_NE(pod, nullptr);
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("ResourceClaim not created yet"));
  for (const char* path : {"pod", "claim"}) {
    if (std::string(path) == "pod") {
      api::Draft changed(node.Pod("p")->tree());
      changed["status"]["resourceClaimStatuses"].Append(
          {{"name", api::Draft("c")}, {"resourceClaimName", api::Draft("c")}});
      ASSERT_TRUE(node.api.Update("Pod", "default/p", "status", changed.Freeze()).ok());
    } else {
      api::Draft changed(node.api.Get("ResourceClaim", "default/c")->tree());
      changed["status"]["reservedFor"].Append({{"resource", api::Draft("pods")},
                                               {"name", api::Draft("p")},
                                               {"uid", api::Draft(std::string(pod->uid()))}});
      ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "status", changed.Freeze()).ok());
    }
  }
  node.Advance(seconds(5));
  const auto events = node.Events("FailedPrepareDynamicResources");
  EXPECT_THAT(events,
              ::testing::Contains(HasSubstr(
                  "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)")));
  EXPECT_TRUE(node.history.empty());
  api::Draft owned(node.api.Get("ResourceClaim", "default/c")->tree());
  owned["metadata"]["ownerReferences"].Append({{"apiVersion", api::Draft("v1")},
                                               {"kind", api::Draft("Pod")},
                                               {"name", api::Draft("p")},
                                               {"uid", api::Draft(std::string(pod->uid()))},
                                               {"controller", api::Draft(true)}});
  ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "", owned.Freeze()).ok());
  node.Advance(seconds(30));
  EXPECT_EQ(node.Phase("p"), "Running") << "a claim that was made for the pod";
}

TEST(ClaimChecks, AClaimThatIsNotAllocatedOrWasReplacedIsNotTouched) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();  // so that the first pod cannot unprepare the claim
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  api::Draft released(node.api.Get("ResourceClaim", "default/c")->tree());
  released["status"] = api::Draft::Object();
  ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "status", released.Freeze()).ok());
  ASSERT_TRUE(node.api.Delete("ResourceClaim", "default/c").ok());
  node.Run();
  FakeDriver other(node, "nic.example.com", "nic.sock");
  other.Start();
  node.CreateClaim("c", {"nic.example.com/dev-0"});
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("old ResourceClaim with same name c and different UID"));
  node.driver.Start();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("q"), "Running") << "once the old one was given back";
}

TEST(ClaimChecks, AReservedClaimWithoutAllocationIsNotTouched) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.client->instead = [](const api::ObjectPtr& object) -> api::ObjectPtr {
    if (object->kind() != "ResourceClaim") return object;
    api::Draft changed(object->tree());
    changed["status"]["allocation"] = api::Draft();
    return std::make_shared<const api::Object>(changed.Freeze());
  };
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("prepare dynamic resources: ResourceClaim c: not allocated"));
  EXPECT_TRUE(node.history.empty());
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
  node.client->instead = nullptr;
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(ClaimChecks, NoPodCanAttachToAClaimThatIsBeingUnprepared) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.plugin.hold_calls = true;
  node.DeletePod("p");
  node.Advance(std::chrono::milliseconds(10));
  ASSERT_EQ(node.driver.plugin.held_calls(), 1u);
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("prepare dynamic resources: ResourceClaim c is being unprepared"));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.ReleaseCalls();
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_EQ(node.Phase("q"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c", "prepare c"));
}

TEST(ClaimChecks, AnswersThatDoNotMatchTheRequestAreErrors) {
  GpuNode node;
  node.driver.plugin.prepare_error = Internal("no memory");
  node.CreatePodWithClaim();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("prepare dynamic resources: NodePrepareResources: "));
  node.driver.plugin.prepare_error.reset();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(ClaimChecks, AnswersThatAreTooLargeAreRefusedAndErrorsAreTruncated) {
  GpuNode node;
  std::size_t devices = 0;
  std::size_t name_bytes = 1;
  node.driver.plugin.change_prepare_answer = [&](rpc::PrepareResults& results) {
    for (auto& [uid, result] : results) {
      const rpc::PreparedDevice first = result.devices.at(0);
      while (result.devices.size() < devices) result.devices.push_back(first);
      result.devices[0].cdi_device_ids.push_back(std::string(name_bytes, 'x'));
    }
  };
  devices = DraManager::kMaxPreparedDevices + 1;
  node.CreatePodWithClaim();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources: returned 1025 devices for one claim"));
  devices = 1;
  name_bytes = DraManager::kMaxPreparedBytes;
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources"),
              ::testing::Contains(HasSubstr("bytes of names for one claim, more than 1048576")));
  node.driver.plugin.change_prepare_answer = [](rpc::PrepareResults& results) {
    for (auto& [uid, result] : results) result.error = std::string(12 << 20, 'e');
  };
  node.Advance(seconds(4));
  for (const std::string& message : node.Events("FailedPrepareDynamicResources")) {
    EXPECT_LE(message.size(), DraManager::kMaxDriverTextBytes + 200);
  }
  node.driver.plugin.change_prepare_answer = [](rpc::PrepareResults& results) {
    results[std::string(12 << 20, 'u')] = {};
  };
  node.Advance(seconds(8));
  for (const std::string& message : node.Events("FailedPrepareDynamicResources")) {
    EXPECT_LE(message.size(), DraManager::kMaxDriverTextBytes + 200);
  }
  EXPECT_EQ(node.Phase("p"), "Pending");
  node.driver.plugin.change_prepare_answer = nullptr;
  node.Advance(seconds(20));
  ASSERT_EQ(node.Phase("p"), "Running");
  node.driver.plugin.change_unprepare_answer = [](rpc::UnprepareResults& results) {
    for (auto& [uid, result] : results) result.error = std::string(12 << 20, 'e');
  };
  node.DeletePod("p");
  node.Advance(std::chrono::milliseconds(10));
  EXPECT_LE(node.Events("FailedUnprepareDynamicResources").at(0).size(),
            DraManager::kMaxDriverTextBytes + 200);
}

TEST(ClaimChecks, AnswersForUnknownOrMissingClaimsAreRefused) {
  GpuNode node;
  node.driver.plugin.change_prepare_answer = [](rpc::PrepareResults& results) {
    results["stranger"] = {};
  };
  node.CreatePodWithClaim();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources returned result for unknown claim UID stranger"));
  node.driver.plugin.change_prepare_answer = [](rpc::PrepareResults& results) { results.clear(); };
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources"),
              ::testing::Contains(HasSubstr("NodePrepareResources skipped 1 ResourceClaims")));
  EXPECT_EQ(node.Phase("p"), "Pending");
  node.driver.plugin.change_prepare_answer = nullptr;
  node.Advance(seconds(5));
  ASSERT_EQ(node.Phase("p"), "Running");
  node.driver.plugin.change_unprepare_answer = [](rpc::UnprepareResults& results) {
    results["stranger"] = {};
  };
  node.DeletePod("p");
  node.Advance(std::chrono::milliseconds(10));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0),
              HasSubstr("NodeUnprepareResources returned result for unknown claim UID stranger"));
  node.driver.plugin.change_unprepare_answer = [](rpc::UnprepareResults& results) {
    results.clear();
  };
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources"),
              ::testing::Contains(HasSubstr("NodeUnprepareResources skipped 1 ResourceClaims")));
  EXPECT_NE(node.Phase("p"), "(gone)");
  node.driver.plugin.change_unprepare_answer = nullptr;
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(ClaimChecks, EveryTextOfAnAnswerCountsTowardsItsSize) {
  GpuNode node;
  const std::string half(DraManager::kMaxPreparedBytes / 2, 'x');
  using Fill = std::function<void(rpc::PreparedDevice&)>;
  const std::pair<const char*, Fill> members[] = {
      {"pool", [&](auto& device) { device.pool_name = half; }},
      {"device", [&](auto& device) { device.device_name = half; }},
      {"share", [&](auto& device) { device.share_id = half; }},
      {"request",
       [&](auto& device) {
         device.request_names = {"r", half};
       }},
      {"CDI device",
       [&](auto& device) {
         device.cdi_device_ids = {"a", half};
       }},
  };
  const auto answer = [&](const Fill& fill, int devices) {
    node.driver.plugin.change_prepare_answer = [&, devices](rpc::PrepareResults& results) {
      for (auto& [uid, result] : results) {
        result.devices.resize(static_cast<std::size_t>(devices));
        for (rpc::PreparedDevice& device : result.devices) fill(device);
      }
    };
  };
  std::size_t refused = 0;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  for (const auto& [member, fill] : members) {
    answer(fill, 2);
    const std::string pod = StrCat("p", refused);
    node.CreatePod(pod, kUsesClaim, {"c"});
    EXPECT_EQ(node.Phase(pod), "Pending") << member;
    EXPECT_EQ(node.Events("FailedPrepareDynamicResources").size(), ++refused) << member;
    node.DeletePod(pod);
    node.Advance(seconds(1));
  }
  answer([](rpc::PreparedDevice& device) { device.device_name = "d"; },
         static_cast<int>(DraManager::kMaxPreparedDevices));
  node.CreatePod("most", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("most"), "Running") << "exactly as many devices as allowed";
}

TEST(ClaimChecks, AnAnswerOfExactlyTheLargestSizeIsAccepted) {
  GpuNode node;
  // One byte is counted for the end of each of the three texts: pool, device and share.
  std::size_t name_bytes = DraManager::kMaxPreparedBytes - 2;
  node.driver.plugin.change_prepare_answer = [&](rpc::PrepareResults& results) {
    for (auto& [uid, result] : results) {
      result.devices = {{.pool_name = "", .device_name = std::string(name_bytes, 'd')}};
    }
  };
  node.CreatePodWithClaim();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources: returned devices with 1048577 bytes of names"));
  --name_bytes;
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
}

}  // namespace
}  // namespace drakkar::node
