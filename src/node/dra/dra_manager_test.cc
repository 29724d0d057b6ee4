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

TEST(DraManager, WaitsForAMissingDriverAndStartsAtOnceWhenItComes) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePodWithClaim();
  node.Advance(seconds(200));
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u) << "a pod that failed leaves no trace";
  const auto events = node.Events("FailedPrepareDynamicResources");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0],
            "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver "
            "gpu.example.com is not registered");
  FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
  driver.Start();
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, APodWhoseDriverNeverCameIsDeletedAtOnce) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePodWithClaim();
  node.DeletePod("p");
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, AnnouncesToDriversThatListenAndCallsThemWhenTheIntentIsOnDisk) {
  GpuNode node;
  node.CreatePodWithClaim();
  EXPECT_TRUE(node.driver.plugin.announcements.empty()) << "it did not say that it listens";
  node.DeletePod("p");
  node.Advance(seconds(2));
  node.driver.Stop();
  node.driver.plugin.info.supported_versions.emplace_back(rpc::kAnnouncementService);
  node.driver.Start();
  std::vector<std::string> order;
  // The claim had an intent before; the second pod's is a new one.
  const auto intent_is_on_disk = [&] {
    const auto slots = node.files.ReadFile("/var/lib/kubelet/dra_manager_state.intents");
    return slots.ok() && slots->find(node.Pod("p2")->uid()) != std::string::npos;
  };
  node.driver.plugin.on_announcement = [&] { order.push_back("announced"); };
  node.driver.plugin.prepare_claim =
      [&, prepare = node.driver.plugin.prepare_claim](const rpc::ClaimReference& claim) {
        // Nothing but the announcement may come before what survives a crash.
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
  // What the node has read, so that the driver need not.
  const auto claim = api::ParseJson(announced.object);
  ASSERT_TRUE(claim.ok()) << announced.object;
  EXPECT_EQ((*claim)->root()["metadata"]["uid"].str(), announced.reference.uid);
  EXPECT_EQ((*claim)->root()["status"]["allocation"]["devices"]["results"].at(0)["device"].str(),
            "dev-0");
}

TEST(DraManager, ClaimsThatAreTooLargeTogetherAreOnlyNamed) {
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
  for (const rpc::AnnouncedClaim& claim : announced) bytes += claim.object.size();
  EXPECT_LE(bytes, DraManager::kMaxAnnouncedBytes);
  EXPECT_FALSE(announced.front().object.empty());
  EXPECT_TRUE(announced.back().object.empty());
}

TEST(DraManager, AnnouncesNothingThatFailsItsChecks) {
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

TEST(DraManager, ProcessorsStayAwakeWhileAClaimIsPrepared) {
  // A file in the device's place: what was asked for last.
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

TEST(DraManager, RetriesAFailedPrepare) {
  GpuNode node;
  auto works = node.driver.plugin.prepare_claim;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    return rpc::PrepareResult{.error = "no power"};
  };
  node.CreatePodWithClaim();
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources failed for ResourceClaim c: no power"));
  node.driver.plugin.prepare_claim = works;
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, TwoPodsShareAClaimAndTheLastOneGivesItBack) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p1", kUsesClaim, {"c"});
  node.CreatePod("p2", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p2"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.DeletePod("p1");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p1"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.DeletePod("p2");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p2"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(DraManager, ServesWhichPodHoldsWhichDevice) {
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

TEST(DraManager, WipesTheSlicesOfADriverThatIsGoneForThirtySeconds) {
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

TEST(DraManager, AClaimThatIsNotReservedForThePodIsNotTouched) {
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

TEST(DraManager, AContainerSeesOnlyTheRequestsItNames) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [&](const rpc::ClaimReference&) {
    rpc::PrepareResult result;
    for (const char* request : {"r", "other"}) {
      EXPECT_TRUE(
          node.files
              .WriteFile(StrCat("/var/run/cdi/", request, ".json"),
                         StrCat(R"({"cdiVersion":"0.5.0","kind":"x.com/)", request,
                                R"(","devices":[{"name":"d","containerEdits":{"env":["GOT_)",
                                request, R"(=yes"]}}]})"),
                         0644)
              .ok());
      result.devices.push_back({.request_names = {request},
                                .pool_name = "pool",
                                .device_name = request,
                                .cdi_device_ids = {StrCat("x.com/", request, "=d")}});
    }
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p", R"("containers":[
      {"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}},
      {"name":"b","image":"busybox:1"}])",
                 {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a")[0], "GOT_r"), "yes");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a")[0], "GOT_other"), "(none)");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "b")[0], "GOT_r"), "(none)");
}

TEST(DraManager, RefusesToStartOnACorruptCheckpoint) {
  NodeHarness node;
  ASSERT_TRUE(
      node.files
          .WriteFile("/var/lib/kubelet/dra_manager_state", "{\"Data\":\"x\",\"Checksum\":1}", 0600)
          .ok());
  node.StartAgent();
  ASSERT_FALSE(node.started.ok());
  EXPECT_THAT(node.started.error().message, HasSubstr("checkpoint is corrupted"));
}

TEST(DraManager, StopsInTheMiddleOfADriverCallAndGoesOnAfterwards) {
  GpuNode node;
  node.driver.plugin.hold_calls = true;
  node.CreatePodWithClaim();
  ASSERT_EQ(node.driver.plugin.held_calls(), 1u);
  EXPECT_THAT(*node.files.ReadFile("/var/lib/kubelet/dra_manager_state.intents"),
              HasSubstr("gpu.example.com"))
      << "the intent is on disk before the call";
  node.KillAgent();
  node.transport.BreakConnections("/var/lib/kubelet/plugins_registry/gpu-reg.sock");
  node.driver.plugin.ReleaseCalls();
  node.driver.plugin.hold_calls = false;
  node.Advance(seconds(50));
  node.StartAgent();
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, OneCallPerDriverHasAllClaimsOfThePod) {
  NodeHarness node;
  node.StartAgent();
  FakeDriver gpu(node, "gpu.example.com", "gpu.sock"), nic(node, "nic.example.com", "nic.sock");
  gpu.Start();
  nic.Start();
  node.CreateClaim("c", {"gpu.example.com/0", "nic.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/1"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  ASSERT_EQ(node.Phase("p"), "Running");
  ASSERT_EQ(gpu.plugin.prepare_calls.size(), 1u);
  EXPECT_EQ(gpu.plugin.prepare_calls[0].size(), 2u);
  ASSERT_EQ(nic.plugin.prepare_calls.size(), 1u);
  EXPECT_EQ(nic.plugin.prepare_calls[0].size(), 1u);
  node.DeletePod("p");
  node.Advance(seconds(1));
  ASSERT_EQ(gpu.plugin.unprepare_calls.size(), 1u);
  EXPECT_EQ(gpu.plugin.unprepare_calls[0].size(), 2u);
}

TEST(DraManager, ACallThatTakesLongerThanItMayIsGivenUpAndMadeAgain) {
  GpuNode node;
  node.driver.plugin.hold_calls = true;
  node.CreatePodWithClaim();
  node.Advance(seconds(44));
  EXPECT_TRUE(node.Events("FailedPrepareDynamicResources").empty());
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0), HasSubstr("DeadlineExceeded"));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.DropCalls();
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_GE(node.driver.plugin.prepare_calls.size(), 2u);
  node.driver.plugin.hold_calls = true;
  node.DeletePod("p");
  node.Advance(seconds(80));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0), HasSubstr("DeadlineExceeded"));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.DropCalls();
  node.Advance(seconds(60));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, ARepeatedPrepareReplacesTheDevicesAndDoesNotDoubleThem) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.Advance(seconds(1));
  node.KillAgent();
  node.StartAgent();
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("q"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare c"))
      << "a restart forgets that it was prepared";
  const auto& claims = node.agent->dra().cache().claims();
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims.begin()->second.drivers.at("gpu.example.com").devices.size(), 1u);
  EXPECT_EQ(claims.begin()->second.pod_uids.size(), 2u);
}

TEST(DraManager, AnswersThatDoNotFitTheQuestionAreErrors) {
  GpuNode node;
  node.driver.plugin.prepare_error = Internal("no memory");
  node.CreatePodWithClaim();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("prepare dynamic resources: NodePrepareResources: "));
  node.driver.plugin.prepare_error.reset();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, ATemplateClaimOfAnotherPodIsRefused) {
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
}

TEST(DraManager, AClaimThatIsNotAllocatedOrWasReplacedIsNotTouched) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();  // so that the first pod cannot give the claim back
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

TEST(DraManager, WithTwoInstancesTheSlicesStayUntilTheLastIsGone) {
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

TEST(DraManager, RetriesWithBackoffAndAtOnceWhenTheDriverIsBack) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();
  node.DeletePod("p");
  node.Advance(seconds(300));
  EXPECT_NE(node.Phase("p"), "(gone)");
  EXPECT_TRUE(node.driver.plugin.unprepare_calls.empty());
  node.driver.Start();
  EXPECT_EQ(node.driver.plugin.unprepare_calls.size(), 1u) << "not after a minute";
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, ClaimsOfPodsThatAreGoneAreGivenBackWhenTheirDriverComes) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  node.driver.Stop();
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  node.machine.sandboxes.clear();
  node.machine.containers.clear();
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 1u);
  node.driver.Start();
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
}

TEST(DraManager, EveryMetricHasBothNames) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0", "ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  for (const std::string prefix : {"\n", "\nkubelet_"}) {
    const std::string text = "\n" + node.metrics.Text();
    EXPECT_THAT(text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"<any>\"} 1"));
    EXPECT_THAT(
        text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"gpu.example.com\"} 1"));
    EXPECT_THAT(text, HasSubstr(prefix + "dra_operations_duration_seconds_bucket"));
    EXPECT_THAT(text, HasSubstr(prefix + "dra_grpc_operations_duration_seconds_bucket"));
    EXPECT_THAT(
        text,
        HasSubstr(prefix + "dra_node_prepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  }
  EXPECT_THAT(
      node.metrics.Text(),
      HasSubstr("method_name=\"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources\""));
  node.DeletePod("p");
  node.Advance(seconds(1));
  for (const std::string prefix : {"\n", "\nkubelet_"}) {
    const std::string text = "\n" + node.metrics.Text();
    EXPECT_THAT(text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"<any>\"} 0"));
    EXPECT_THAT(
        text,
        HasSubstr(prefix + "dra_node_unprepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  }
}

TEST(DraManager, PodResourcesAnswersGetAndAllocatable) {
  GpuNode node;
  node.CreatePodWithClaim();
  auto client =
      rpc::MakePodResourcesClient(node.transport, "/var/lib/kubelet/pod-resources/kubelet.sock");
  std::optional<Result<rpc::PodResources>> found, missing;
  std::optional<Result<rpc::AllocatableResources>> allocatable;
  client->Get({.name = "p", .namespace_name = "default"}, seconds(1),
              [&](auto result) { found = std::move(result); });
  client->Get({.name = "nobody", .namespace_name = "default"}, seconds(1),
              [&](auto result) { missing = std::move(result); });
  client->GetAllocatable(seconds(1), [&](auto result) { allocatable = std::move(result); });
  node.Run();
  ASSERT_TRUE(found && found->ok());
  const auto& resource = (*found)->containers.at(0).dynamic_resources.at(0).claim_resources.at(0);
  EXPECT_EQ(resource.driver_name, "gpu.example.com");
  EXPECT_EQ(resource.pool_name, "pool");
  EXPECT_EQ(resource.cdi_device_ids.size(), 1u);
  ASSERT_TRUE(missing && !missing->ok());
  EXPECT_THAT(missing->error().message, HasSubstr("pod nobody in namespace default not found"));
  EXPECT_TRUE(allocatable && allocatable->ok());
}

TEST(DraManager, TheSlicesOfADriverThatIsRegisteredWithoutAConnectionGoAfterThirtySeconds) {
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
  // One that answers the registration, but whose service never listens.
  node.driver.plugin.info.endpoint = "/var/lib/kubelet/plugins/gpu.example.com/dra.sock";
  node.driver.Start();
  ASSERT_TRUE(node.driver.plugin.notifications.back().plugin_registered);
  create();
  node.Advance(seconds(29));
  EXPECT_NE(slice(), nullptr);
  node.Advance(seconds(2));
  EXPECT_EQ(slice(), nullptr);
}

TEST(DraManager, AClaimThatIsBeingUnpreparedTakesNoFurtherPod) {
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

TEST(DraManager, AnAnswerAboutAnotherClaimOrWithoutOneIsRefused) {
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

TEST(DraManager, AClaimThatIsReservedAndNotAllocatedIsNotTouched) {
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

TEST(DraManager, PodResourcesAreThoseOfTheRequestsEachContainerNames) {
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

TEST(DraManager, PodResourcesAnswersAHundredQuestionsASecondAndTenAtOnce) {
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
