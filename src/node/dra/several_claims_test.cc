// Pods with several claims of several drivers and devices, and several pods with one claim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text/text.h"
#include "claims/claim.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Two drivers. For each claim they prepare the device "0" for request "r" and "1" for request
// "other/small", each with two CDI devices that set a variable.
struct TwoDrivers : NodeHarness {
  TwoDrivers()
      : gpu(*this, "gpu.example.com", "gpu.sock"), nic(*this, "nic.example.com", "n.sock") {
    for (FakeDriver* driver : {&gpu, &nic}) {
      const std::string name = driver == &gpu ? "gpu" : "nic";
      driver->plugin.prepare_claim = [this, name](const rpc::ClaimReference& claim) {
        history.push_back(StrCat("prepare ", claim.name, " ", name));
        rpc::PrepareResult result;
        for (int i = 0; i < 2; ++i) {
          rpc::PreparedDevice device{.request_names = {i == 0 ? "r" : "other/small"},
                                     .pool_name = "pool",
                                     .device_name = std::to_string(i)};
          for (const char* part : {"a", "b"}) {
            const std::string id = StrCat(claim.name, "-", name, "-", i, "-", part);
            WriteSpec(id);
            device.cdi_device_ids.push_back(StrCat("x.com/", id, "=d"));
          }
          result.devices.push_back(std::move(device));
        }
        return result;
      };
      driver->plugin.unprepare_claim = [this, name](const rpc::ClaimReference& claim) {
        history.push_back(StrCat("unprepare ", claim.name, " ", name));
        return rpc::UnprepareResult();
      };
    }
    StartAgent();
    gpu.Start();
    nic.Start();
  }
  void WriteSpec(const std::string& id) {
    EXPECT_TRUE(files
                    .WriteFile(StrCat("/var/run/cdi/", id, ".json"),
                               StrCat(R"({"cdiVersion":"0.5.0","kind":"x.com/)", id,
                                      R"(","devices":[{"name":"d","containerEdits":{"env":["GOT_)",
                                      id, R"(=yes"]}}]})"),
                               0644)
                    .ok());
  }
  // The CDI devices that the container got, in their order.
  std::string Got(const std::string& pod, const std::string& container) {
    std::string text;
    for (const auto& variable : Containers(pod, container).at(0)->config.environment) {
      if (variable.name.starts_with("GOT_")) text += variable.name.substr(4) + " ";
    }
    return text;
  }
  FakeDriver gpu;
  FakeDriver nic;
};

std::vector<std::string> Names(const std::vector<rpc::ClaimReference>& claims) {
  std::vector<std::string> names;
  for (const auto& claim : claims) names.push_back(claim.name);
  return names;
}

TEST(SeveralClaims, EachContainerGetsTheDevicesOfItsRequestsOfEveryClaimAndDriver) {
  TwoDrivers node;
  node.CreateClaim("c", {"gpu.example.com/0", "gpu.example.com/1", "nic.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/2"});
  node.CreatePod("p", R"("containers":[
      {"name":"all","image":"busybox:1","resources":{"claims":[{"name":"d"},{"name":"c"}]}},
      {"name":"one","image":"busybox:1","resources":{"claims":[{"name":"c","request":"other"},{"name":"d","request":"r"}]}},
      {"name":"none","image":"busybox:1","resources":{"claims":[{"name":"c","request":"smaller"}]}}])",
                 {"c", "d"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Got("p", "all"),
            "d-gpu-0-a d-gpu-0-b d-gpu-1-a d-gpu-1-b c-gpu-0-a c-gpu-0-b c-gpu-1-a c-gpu-1-b "
            "c-nic-0-a c-nic-0-b c-nic-1-a c-nic-1-b ");
  EXPECT_EQ(node.Got("p", "one"), "c-gpu-1-a c-gpu-1-b c-nic-1-a c-nic-1-b d-gpu-0-a d-gpu-0-b ");
  EXPECT_EQ(node.Got("p", "none"), "");
}

TEST(SeveralClaims, AContainerGetsTheDevicesThatItsExtendedResourcesAreMappedTo) {
  TwoDrivers node;
  node.CreateClaim("x", {"gpu.example.com/0"});
  const std::string container =
      R"({"name":"%","image":"busybox:1","resources":{"limits":{"e.x/gpu":"1"}}})";
  const auto named = [&](char name) {
    std::string text = container;
    text[text.find('%')] = name;
    return text;
  };
  const api::ObjectPtr pod = node.api.Create(
      StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},)",
             R"("spec":{"containers":[)", named('a'), ",", named('b'),
             R"(,{"name":"c","image":"busybox:1"}]}})"));
  api::Draft claim(node.api.Get("ResourceClaim", "default/x")->tree());
  claims::AddReservation(claim, {"p", std::string(pod->uid())});
  ASSERT_TRUE(node.api.Update("ResourceClaim", "default/x", "status", claim.Freeze()).ok());
  api::Draft changed(pod->tree());
  api::Draft& status = changed["status"]["extendedResourceClaimStatus"];
  status["resourceClaimName"] = "x";
  for (const auto& [name, request] : {std::pair("a", "r"), std::pair("b", "other")}) {
    status["requestMappings"].Append({{"containerName", api::Draft(name)},
                                      {"resourceName", api::Draft("e.x/gpu")},
                                      {"requestName", api::Draft(request)}});
  }
  ASSERT_TRUE(node.api.Update("Pod", "default/p", "status", changed.Freeze()).ok());
  api::Draft binding{
      {"metadata", api::Draft({{"name", api::Draft("p")}})},
      {"target", api::Draft({{"kind", api::Draft("Node")}, {"name", api::Draft("node-1")}})}};
  node.api.client().Create({testing::KindNamed("Pod"), "default", "p", "binding"}, binding.Freeze(),
                           {}, [](client::Reply reply) { EXPECT_TRUE(reply.ok()); });
  node.Run();
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Got("p", "a"), "x-gpu-0-a x-gpu-0-b ");
  EXPECT_EQ(node.Got("p", "b"), "x-gpu-1-a x-gpu-1-b ");
  EXPECT_EQ(node.Got("p", "c"), "");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.gpu.plugin.unprepare_calls.size(), 1u);
}

TEST(SeveralClaims, AreUnpreparedByEachOfTheirDrivers) {
  TwoDrivers node;
  node.CreateClaim("c", {"gpu.example.com/0", "nic.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/1", "nic.example.com/1"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_THAT(node.history, UnorderedElementsAre("prepare c gpu", "prepare c nic", "prepare d gpu",
                                                 "prepare d nic"));
  node.history.clear();
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  for (const FakeDriver* driver : {&node.gpu, &node.nic}) {
    ASSERT_EQ(driver->plugin.unprepare_calls.size(), 1u);
    EXPECT_THAT(Names(driver->plugin.unprepare_calls[0]), ElementsAre("c", "d"));
  }
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
}

TEST(SeveralClaims, AnErrorOfOneClaimNamesItAndTheWholePodWaits) {
  TwoDrivers node;
  node.CreateClaim("c", {"gpu.example.com/0"});
  node.CreateClaim("d", {"nic.example.com/0"});
  node.nic.plugin.prepare_claim = [works = node.nic.plugin.prepare_claim,
                                   left = 1](const rpc::ClaimReference& claim) mutable {
    return left-- > 0 ? rpc::PrepareResult{.error = "no link"} : works(claim);
  };
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("prepare dynamic resources: NodePrepareResources failed for ResourceClaim "
                        "d: no link"));
  EXPECT_TRUE(node.Containers("p", "a").empty());
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
  node.nic.plugin.unprepare_claim = [left = 1](const rpc::ClaimReference&) mutable {
    return rpc::UnprepareResult{.error = left-- > 0 ? "busy" : ""};
  };
  node.DeletePod("p");
  node.Advance(milliseconds(10));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0),
              HasSubstr("unprepare dynamic resources: NodeUnprepareResources failed for "
                        "ResourceClaim d: busy"));
  EXPECT_NE(node.Phase("p"), "(gone)");
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(SeveralClaims, AreKnownOnlyOnceEachDriverOfEachHasAnswered) {
  TwoDrivers node;
  node.CreateClaim("c", {"gpu.example.com/0", "nic.example.com/0"});
  node.nic.plugin.prepare_error = Unavailable("busy");
  const auto pod = node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Pending");
  ASSERT_THAT(node.history, ElementsAre("prepare c gpu")) << "one of two has answered";
  EXPECT_FALSE(node.agent->dra().KnowsDevices(pod->root()));
  EXPECT_FALSE(node.agent->dra().IsPrepared(pod->root()));
  node.nic.plugin.prepare_error.reset();
  node.Advance(seconds(5));
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_TRUE(node.agent->dra().KnowsDevices(pod->root()));
  EXPECT_TRUE(node.agent->dra().IsPrepared(pod->root()));
}

TEST(SeveralClaims, AnAnswerThatLacksOneOfThemIsRefused) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/1"});
  auto drop_last = [](auto& results) { results.erase(std::prev(results.end())); };
  node.driver.plugin.change_prepare_answer = drop_last;
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources skipped 1 ResourceClaims"));
  node.driver.plugin.change_prepare_answer = nullptr;
  node.Advance(seconds(3));
  ASSERT_EQ(node.Phase("p"), "Running");
  node.driver.plugin.change_unprepare_answer = drop_last;
  node.DeletePod("p");
  node.Advance(milliseconds(10));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0),
              HasSubstr("NodeUnprepareResources skipped 1 ResourceClaims"));
}

TEST(SeveralClaims, OneThatIsMissingOrReservedForAnotherPodHoldsUpAllOfThem) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/1"});
  node.client->instead = [](const api::ObjectPtr& object) -> api::ObjectPtr {
    if (object->kind() != "ResourceClaim" || object->name() != "d") return object;
    api::Draft changed(object->tree());
    changed["status"]["reservedFor"] = api::Draft::Array();
    return std::make_shared<const api::Object>(changed.Freeze());
  };
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("is not allowed to use ResourceClaim d ("));
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
  EXPECT_TRUE(node.history.empty());
  node.client->instead = nullptr;
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare d"));
}

TEST(SeveralClaims, OfManyPodsEachIsUnpreparedWithItsOwnLastPod) {
  GpuNode node;
  for (const char* claim : {"c", "d"}) node.CreateClaim(claim, {StrCat("gpu.example.com/", claim)});
  node.CreatePod("both", kUsesClaim, {"c", "d"});
  node.CreatePod("first", kUsesClaim, {"c"});
  node.CreatePod("third", kUsesClaim, {"c"});
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare d"));
  const auto& claims = node.agent->dra().cache().claims();
  EXPECT_EQ(claims.at("default/c").pod_uids.size(), 3u);
  EXPECT_EQ(claims.at("default/d").pod_uids.size(), 1u);
  node.DeletePod("both");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("both"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare d", "unprepare d"));
  EXPECT_EQ(claims.at("default/c").pod_uids.size(), 2u);
  const std::string first_uid(node.Pod("first")->uid());
  const auto checkpoint = [&] {
    return *node.files.ReadFile("/var/lib/kubelet/dra_manager_state");
  };
  EXPECT_THAT(checkpoint(), HasSubstr(first_uid));
  EXPECT_THAT(checkpoint(), Not(HasSubstr("\\\"d\\\""))) << "nothing is left of claim d";
  // The release is in the checkpoint: after a restart, the last pod still frees the claim.
  node.KillAgent();
  node.StartAgent();
  node.DeletePod("first");
  node.Advance(seconds(2));
  EXPECT_THAT(checkpoint(), Not(HasSubstr(first_uid))) << "its release alone is written, too";
  node.DeletePod("third");
  node.Advance(seconds(2));
  EXPECT_EQ(node.history.back(), "unprepare c");
  EXPECT_EQ(std::ranges::count(node.history, "unprepare c"), 1);
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
}

TEST(SeveralClaims, ASecondPodWaitsForThePreparationThatTheFirstBegan) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/0"});
  node.driver.plugin.hold_calls = true;
  node.CreatePod("p", kUsesClaim, {"c"});
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_EQ(node.Phase("q"), "Pending");
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.ReleaseCalls();
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Phase("q"), "Running");
  EXPECT_NE(EnvironmentOf(*node.Containers("q", "a")[0], "DEVICE_OF_c"), "(none)");
}

TEST(SeveralClaims, DevicesThatSkipKeepTheirRequestPoolNameAndShare) {
  GpuNode node;
  node.CreateClaim("c", {"ghost.example.com/0!", "ghost.example.com/1!"});
  node.client->instead = [](const api::ObjectPtr& object) -> api::ObjectPtr {
    if (object->kind() != "ResourceClaim") return object;
    api::Draft changed(object->tree());
    changed["status"]["allocation"]["devices"]["results"].MutableElements()[1]["shareID"] =
        "share-1";
    return std::make_shared<const api::Object>(changed.Freeze());
  };
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  const auto& devices =
      node.agent->dra().cache().claims().at("default/c").drivers.at("ghost.example.com").devices;
  ASSERT_EQ(devices.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(devices[i].request_names, ElementsAre("r"));
    EXPECT_EQ(devices[i].pool_name, "pool");
    EXPECT_EQ(devices[i].device_name, std::to_string(i));
    EXPECT_TRUE(devices[i].cdi_device_ids.empty());
  }
  EXPECT_FALSE(devices[0].share_id.has_value());
  EXPECT_EQ(devices[1].share_id, "share-1");
}

TEST(SeveralClaims, ADriverMayListOmitOrRenameDevicesThatSkip) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    rpc::PrepareResult result;
    for (const char* device : {"0", "2"}) {
      result.devices.push_back({.pool_name = "pool", .device_name = device});
    }
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/0!", "gpu.example.com/1!", "gpu.example.com/2"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  std::vector<std::string> names;
  for (const auto& device :
       node.agent->dra().cache().claims().at("default/c").drivers.at("gpu.example.com").devices) {
    names.push_back(device.device_name);
  }
  EXPECT_THAT(names, ElementsAre("0", "2", "1")) << "each once";
}

TEST(SeveralClaims, ADeviceOfTheSameNameInAnotherPoolIsAnotherDevice) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    return rpc::PrepareResult{.devices = {{.pool_name = "other", .device_name = "0"}}};
  };
  node.CreateClaim("c", {"gpu.example.com/0!", "gpu.example.com/1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  std::vector<std::string> names;
  for (const auto& device :
       node.agent->dra().cache().claims().at("default/c").drivers.at("gpu.example.com").devices) {
    names.push_back(StrCat(device.pool_name, "/", device.device_name));
  }
  EXPECT_THAT(names, ElementsAre("other/0", "pool/0"));
}

TEST(SeveralClaims, OfOneDriverHaveTheirOwnDevicesEvenIfSomeSkip) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/0!", "gpu.example.com/1"});
  node.CreateClaim("d", {"gpu.example.com/2!", "gpu.example.com/3"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  ASSERT_EQ(node.Phase("p"), "Running");
  auto devices = [&](const std::string& claim) {
    std::vector<std::string> names;
    for (const auto& device : node.agent->dra()
                                  .cache()
                                  .claims()
                                  .at("default/" + claim)
                                  .drivers.at("gpu.example.com")
                                  .devices) {
      names.push_back(device.device_name);
    }
    return names;
  };
  EXPECT_THAT(devices("c"), ElementsAre("device-c", "0"));
  EXPECT_THAT(devices("d"), ElementsAre("device-d", "2"));
}

TEST(SeveralClaims, ADeviceWithoutRequestNamesServesEveryRequest) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/0"});
  node.CreatePod("p", R"("containers":[
      {"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}}])",
                 {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_NE(EnvironmentOf(*node.Containers("p", "a")[0], "DEVICE_OF_c"), "(none)");
}

TEST(SeveralClaims, WithTheGateOffADriverThatSkipsIsFoundBehindOthers) {
  GpuNode node;
  node.CreateClaim("a", {"gpu.example.com/0"});
  node.CreateClaim("c", {"gpu.example.com/1", "skips.example.com/0!"});
  const auto pod = node.CreatePod("p", kUsesClaim, {"a", "c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.agent->dra().FindDisallowedSkip(std::string(pod->uid())), std::nullopt);
  node.Advance(seconds(2));
  node.KillAgent();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  node.StartAgent();
  EXPECT_EQ(node.agent->dra().FindDisallowedSkip(std::string(pod->uid())), "default/c");
  EXPECT_EQ(node.agent->dra().FindDisallowedSkip("nobody"), std::nullopt);
}

TEST(SeveralClaims, OperationsAreTimedFromTheirBeginning) {
  GpuNode node;
  auto sum = [&](const std::string& metric) {
    const std::string text = node.metrics.Text();
    const std::size_t at = text.find(metric);
    if (at == std::string::npos) return std::string("(none)");
    const std::string value =
        text.substr(at + metric.size(), text.find('\n', at + 1) - at - metric.size());
    return StrCat(std::lround(std::stod(value)));
  };
  node.driver.plugin.hold_calls = true;
  node.CreatePodWithClaim();
  node.Advance(seconds(3));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.ReleaseCalls();
  node.Run();
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(sum("\ndra_operations_duration_seconds_sum{is_error=\"false\",operation_name=\""
                "PrepareResources\"} "),
            "3");
  EXPECT_EQ(sum("\ndrakkar_node_dra_prepare_stage_duration_seconds_sum{stage=\"driver\"} "), "3");
  EXPECT_EQ(sum("\ndrakkar_node_dra_prepare_stage_duration_seconds_sum{stage=\"claims\"} "), "0");
  node.driver.plugin.hold_calls = true;
  node.DeletePod("p");
  node.Advance(milliseconds(10));
  ASSERT_EQ(node.driver.plugin.held_calls(), 1u);
  node.Advance(seconds(2));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.ReleaseCalls();
  node.Run();
  EXPECT_EQ(sum("\ndra_operations_duration_seconds_sum{is_error=\"false\",operation_name=\""
                "UnprepareResources\"} "),
            "2");
}

TEST(SeveralClaims, MetricsCountThemByDriver) {
  TwoDrivers node;
  node.CreateClaim("c", {"gpu.example.com/0", "nic.example.com/0", "ghost.example.com/0!"});
  node.CreateClaim("d", {"gpu.example.com/1"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  auto in_use = [&](const std::string& driver) {
    return StrCat("\ndra_resource_claims_in_use{driver_name=\"", driver, "\"} ");
  };
  std::string text = node.metrics.Text();
  EXPECT_THAT(text, HasSubstr(in_use("<any>") + "2\n"));
  EXPECT_THAT(text, HasSubstr(in_use("gpu.example.com") + "2\n"));
  EXPECT_THAT(text, HasSubstr(in_use("nic.example.com") + "1\n"));
  EXPECT_THAT(text, HasSubstr(in_use("ghost.example.com") + "1\n"));
  for (const char* driver : {"gpu", "nic"}) {
    EXPECT_THAT(text,
                HasSubstr(StrCat("\nkubelet_dra_grpc_operations_duration_seconds_count{driver_"
                                 "name=\"",
                                 driver, ".example.com\"")));
  }
  EXPECT_THAT(text, HasSubstr("\ndra_operations_duration_seconds_count{is_error=\"false\","
                              "operation_name=\"PrepareResources\"} 1\n"));
  for (const auto& [stage, count] :
       std::map<std::string, int>{{"claims", 1}, {"checkpoint", 1}, {"driver", 2}}) {
    EXPECT_THAT(text, HasSubstr(StrCat("\ndrakkar_node_dra_prepare_stage_duration_seconds_count{"
                                       "stage=\"",
                                       stage, "\"} ", count, "\n")));
  }
  node.DeletePod("p");
  node.Advance(seconds(1));
  text = node.metrics.Text();
  EXPECT_THAT(text, HasSubstr(in_use("<any>") + "0\n"));
  EXPECT_THAT(text, Not(HasSubstr(in_use("gpu.example.com")))) << "nothing is left of it";
  EXPECT_THAT(text, HasSubstr("operation_name=\"UnprepareResources\"} 1\n"));
}

TEST(SeveralClaims, FailuresAreCountedWithTheirCode) {
  GpuNode node;
  node.driver.plugin.prepare_error = Unavailable("busy");
  node.CreatePodWithClaim();
  EXPECT_THAT(node.metrics.Text(), HasSubstr("grpc_status_code=\"Unavailable\""));
  EXPECT_THAT(node.metrics.Text(), Not(HasSubstr("grpc_status_code=\"OK\"")));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("{is_error=\"true\",operation_name=\"PrepareResources\"} 1\n"));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("\ndra_resource_claims_in_use{driver_name=\"<any>\"} 0\n"))
      << "attached, not prepared";
  node.driver.plugin.prepare_error.reset();
  node.Advance(seconds(3));
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_THAT(node.metrics.Text(), HasSubstr("grpc_status_code=\"OK\""));
  node.driver.plugin.unprepare_error = Internal("stuck");
  node.DeletePod("p");
  node.Advance(milliseconds(10));
  EXPECT_THAT(node.metrics.Text(), HasSubstr("grpc_status_code=\"Internal\""));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("{is_error=\"true\",operation_name=\"UnprepareResources\"} 1\n"));
}

TEST(SeveralClaims, OfEveryDeletedPodAreUnpreparedAtTheNextInterval) {
  GpuNode node;
  for (const char* name : {"a", "b", "kept"}) {
    node.CreateClaim(name, {StrCat("gpu.example.com/", name)});
    node.CreatePod(
        name,
        StrCat(R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{)",
               R"("name":")", name, R"("}]}}])"),
        {name});
  }
  node.KillAgent();
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(node.api.Delete("Pod", StrCat("default/", name), {.grace_period_seconds = 0}).ok());
  }
  node.machine.sandboxes.clear();
  node.machine.containers.clear();
  node.history.clear();
  int failures = 2;
  node.driver.plugin.unprepare_claim =
      [&, works = node.driver.plugin.unprepare_claim](const rpc::ClaimReference& claim) {
        return failures-- > 0 ? rpc::UnprepareResult{.error = "busy"} : works(claim);
      };
  node.StartAgent();
  node.Advance(seconds(59));
  EXPECT_EQ(std::ranges::count(node.history, "unprepare a"), 0) << "tried once, with an error";
  node.Advance(seconds(2));
  EXPECT_EQ(std::ranges::count(node.history, "unprepare a"), 1);
  EXPECT_EQ(std::ranges::count(node.history, "unprepare b"), 1);
  EXPECT_EQ(std::ranges::count(node.history, "unprepare kept"), 0);
  EXPECT_TRUE(node.agent->dra().cache().claims().contains("default/kept"));
}

}  // namespace
}  // namespace drakkar::node
