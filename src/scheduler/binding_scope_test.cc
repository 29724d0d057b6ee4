// KEP-5007: which fields count, the effect of gates and old releases, and what is measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "device/allocated_state.h"
#include "scheduler/binding/binding_conditions.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void StartOneNode(TestCluster& cluster, std::string device_extra) {
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1, std::move(device_extra));
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
}

void CreateFabricSlice(TestCluster& cluster, std::string device_extra) {
  cluster.Create("ResourceSlice",
                 StrCat(R"({"metadata":{"name":"fabric"},"spec":{"driver":"d.example.com",)",
                        R"("pool":{"name":"fabric","generation":1,"resourceSliceCount":1},)",
                        R"("allNodes":true,"devices":[{"name":"dev-0")", device_extra, "}]}}"));
}

TEST(BindingScope, ADeviceThatBindsToItsNodePinsTheClaimToExactlyThatNode) {
  TestCluster cluster;
  for (const char* node : {"n0", "n1"}) cluster.CreateNode(node);
  CreateFabricSlice(cluster, StrCat(R"(,"bindsToNode":true)", kConditions));
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  const api::Value terms =
      cluster.Find("ResourceClaim", "c")
          ->root()["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 1u);
  const api::Value field = terms.at(0)["matchFields"].at(0);
  EXPECT_EQ(field["key"].str(), "metadata.name");
  EXPECT_EQ(field["operator"].str(), "In");
  ASSERT_EQ(field["values"].size(), 1u);
  EXPECT_EQ(field["values"].at(0).str(),
            cluster.Find("Pod", "p")->root()["status"]["nominatedNodeName"].str())
      << "what a fabric controller reads before it attaches";
}

TEST(BindingScope, EitherListMayStandAlone) {
  {
    TestCluster cluster;
    StartOneNode(cluster, R"(,"bindingConditions":["d.example.com/attached"])");
    EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
    cluster.SetDeviceCondition("c", kAttached, "True");
    EXPECT_EQ(cluster.NodeOf("p"), "n1");
  }
  TestCluster cluster;
  StartOneNode(cluster, R"(,"bindingFailureConditions":["d.example.com/failed"])");
  EXPECT_EQ(cluster.NodeOf("p"), "n1") << "nothing to wait for";
}

TEST(BindingScope, ConditionsAreTakenFromTheSliceAtAllocationTime) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.Update("ResourceSlice", "slice-n1", "", [](api::Draft& object) {
    api::Draft& device = object["spec"]["devices"].at(0);
    device["bindingConditions"] = api::Draft::Array();
    device["bindingConditions"].Append("d.example.com/another");
    device["bindingFailureConditions"] = api::Draft::Array();
    device["bindingFailureConditions"].Append("d.example.com/other-failure");
  });
  cluster.Settle();
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.SetDeviceCondition("c", "d.example.com/another", "True");
  EXPECT_EQ(cluster.NodeOf("p"), "");
  cluster.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST(BindingScope, EitherGateOffMeansThatSuchDevicesAreNotChosen) {
  for (const Gate gate : {Gate::kDRADeviceBindingConditions, Gate::kDRAResourceClaimDeviceStatus}) {
    TestCluster cluster(FeatureGates().With(gate, false));
    StartOneNode(cluster, kConditions);
    EXPECT_EQ(cluster.NodeOf("p"), "");
    EXPECT_THAT(cluster.DevicesOf("c"), IsEmpty());
  }
}

TEST(BindingScope, OnlyStatusTrueCounts) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  for (const char* status : {"False", "Unknown"}) {
    cluster.SetDeviceCondition("c", kAttached, status);
    EXPECT_EQ(cluster.NodeOf("p"), "") << status;
    cluster.SetDeviceCondition("c", kFailed, status);
    EXPECT_THAT(cluster.DevicesOf("c"), ::testing::SizeIs(1)) << status;
  }
  cluster.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST(BindingScope, ConditionsAreTrackedPerShareOfADevice) {
  device::AllocatedState allocated;
  ClaimCache claims(allocated);
  const auto state = [&](std::string devices, int version) {
    auto tree = api::ParseJson(StrCat(
        R"({"metadata":{"name":"c","namespace":"ns","uid":"u","resourceVersion":")", version,
        R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"k"}}]}},)",
        R"("status":{"allocation":{"devices":{"results":[)",
        R"({"request":"r","driver":"d","pool":"p","device":"x","shareID":"11111111-1111-1111-1111-111111111111","bindingConditions":["ready"],"bindingFailureConditions":["bad"]},)",
        R"({"request":"r","driver":"d","pool":"p","device":"x","shareID":"22222222-2222-2222-2222-222222222222","bindingConditions":["ready"],"bindingFailureConditions":["bad"]}]}},)",
        R"("devices":[)", devices, "]}}"));
    EXPECT_TRUE(tree.ok());
    claims.Observe(std::make_shared<const api::Object>(*tree));
    return EvaluateBinding(*claims.Find("ns/c")).kind;
  };
  const auto share = [](const char* id, const char* condition) {
    return StrCat(R"({"driver":"d","pool":"p","device":"x","shareID":")", id,
                  R"(","conditions":[{"type":")", condition, R"(","status":"True"}]})");
  };
  const std::string first = share("11111111-1111-1111-1111-111111111111", "ready");
  using Kind = BindingState::Kind;
  EXPECT_EQ(state("", 1), Kind::kWaiting);
  EXPECT_EQ(state(first, 2), Kind::kWaiting) << "the other share is not ready";
  EXPECT_EQ(state(first + "," + share("22222222-2222-2222-2222-222222222222", "ready"), 3),
            Kind::kReady);
  EXPECT_EQ(state(first + "," + share("22222222-2222-2222-2222-222222222222", "bad"), 4),
            Kind::kFailed);
  EXPECT_EQ(state(first + "," + share("33333333-3333-3333-3333-333333333333", "bad"), 5),
            Kind::kWaiting)
      << "a share of somebody else";
}

TEST(BindingScope, WithTheGateOffTheReasonNamesTheGate) {
  TestCluster cluster(FeatureGates().With(Gate::kDRADeviceBindingConditions, false));
  StartOneNode(cluster, kConditions);
  EXPECT_EQ(cluster.ConditionMessage("p"),
            "0/1 nodes are available: 1 cannot allocate all claims: devices have binding "
            "conditions, but the DRADeviceBindingConditions feature gate is disabled.");
}

TEST(BindingScope, WithTheGateOffOtherDevicesAreStillChosen) {
  TestCluster cluster(FeatureGates().With(Gate::kDRAResourceClaimDeviceStatus, false));
  cluster.CreateNode("n0");
  cluster.CreateSlice("n0", 1);
  StartOneNode(cluster, kConditions);
  EXPECT_EQ(cluster.NodeOf("p"), "n0");
  EXPECT_FALSE(cluster.Find("ResourceClaim", "c")
                   ->root()["status"]["allocation"]["allocationTimestamp"]
                   .exists());
}

TEST(BindingScope, TurningTheGateOffAndOnAgain) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.KillScheduler();
  cluster.SetGates(FeatureGates().With(Gate::kDRADeviceBindingConditions, false));
  cluster.StartScheduler();
  EXPECT_EQ(cluster.NodeOf("p"), "n1") << "allocated already: bound without waiting";

  cluster.KillScheduler();
  cluster.SetGates(FeatureGates());
  cluster.StartScheduler();
  EXPECT_EQ(cluster.NodeOf("p"), "n1") << "nothing happens to what runs";
  cluster.CreateNode("n2");
  cluster.CreateSlice("n2", 1, kConditions);
  cluster.CreateClaim("c2");
  cluster.CreatePodWithClaims("p2", {"c2"});
  cluster.Settle();
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.SetDeviceCondition("c2", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p2"), "n2");
}

TEST(BindingScope, AReleaseBeforeTheFeatureDoesNotSeeTheFields) {
  const Result<FeatureGates> old =
      FeatureGates::Create({.emulated = {1, 33}, .overrides = "DynamicResourceAllocation=true"});
  ASSERT_TRUE(old.ok());
  TestCluster cluster(*old);
  StartOneNode(cluster, StrCat(R"(,"bindsToNode":true)", kConditions));
  EXPECT_EQ(cluster.NodeOf("p"), "n1") << "bound as if there were nothing to wait for";
  const api::Value result = cluster.Find("ResourceClaim", "c")
                                ->root()["status"]["allocation"]["devices"]["results"]
                                .at(0);
  EXPECT_FALSE(result["bindingConditions"].exists());
  EXPECT_FALSE(result["bindingFailureConditions"].exists());
}

TEST(BindingScope, CountsEachPreBindThatNeededConditionsOnce) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  const auto has = [&](std::string line) {
    return cluster.metrics().Text().find(line) != std::string::npos;
  };
  constexpr char kCount[] = "scheduler_dra_bindingconditions_allocations_total{status=";
  EXPECT_FALSE(has(kCount)) << "counted when it ends";
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.loop().Advance(seconds(3));
  EXPECT_TRUE(has(StrCat(kCount, "\"failure\"} 1")));
  cluster.loop().Advance(minutes(10) + seconds(1));
  EXPECT_TRUE(has(StrCat(kCount, "\"timeout\"} 1")));
  cluster.loop().Advance(seconds(3));
  cluster.SetDeviceCondition("c", kAttached, "True");
  ASSERT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_TRUE(has(StrCat(kCount, "\"success\"} 1")));
  // A pod whose devices have no conditions counts only in the duration.
  cluster.CreateNode("n2");
  cluster.CreateSlice("n2", 1);
  cluster.CreateClaim("plain");
  cluster.CreatePodWithClaims("q", {"plain"});
  cluster.Settle();
  ASSERT_EQ(cluster.NodeOf("q"), "n2");
  EXPECT_TRUE(has(StrCat(kCount, "\"success\"} 1")));
  constexpr char kDuration[] = "scheduler_dra_bindingconditions_prebind_duration_seconds_count{";
  for (const char* status : {"success", "failure", "timeout"}) {
    EXPECT_TRUE(
        has(StrCat(kDuration, R"(requires_bindingconditions="true",status=")", status, "\"} 1")))
        << status << "\n"
        << cluster.metrics().Text();
  }
  EXPECT_TRUE(has(StrCat(kDuration, R"(requires_bindingconditions="false",status="success"} 1)")));
}

TEST(BindingScope, DurationsBeyondTheTimeoutHaveTheirOwnBuckets) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  cluster.loop().Advance(minutes(10) + seconds(1));
  const std::string text = cluster.metrics().Text();
  const auto last_bucket = [&](std::string name) {
    double last = 0;
    for (std::string_view line : Split(text, '\n')) {
      if (!line.starts_with(name + "_bucket") || line.find("+Inf") != line.npos) continue;
      const std::size_t at = std::min(line.find(",le=\""), line.find("{le=\"")) + 5;
      last = std::max(last, std::stod(std::string(line.substr(at, line.find('"', at) - at))));
    }
    return last;
  };
  EXPECT_GT(last_bucket("scheduler_dra_bindingconditions_prebind_duration_seconds"), 600);
  EXPECT_NEAR(last_bucket("scheduler_dra_bindingconditions_wait_duration_seconds"), 819.2, 0.1);
  EXPECT_THAT(text, HasSubstr(R"(scheduler_dra_bindingconditions_wait_duration_seconds_count{)"
                              R"(driver="d.example.com",profile="default-scheduler",)"
                              R"(status="timeout"} 1)"));
}

TEST(BindingScope, AThousandWaitingPodsDelayNoOtherPod) {
  constexpr int kWaiting = 1'000;
  TestCluster cluster;
  constexpr int kPerNode = 100;
  for (int i = 0; i < kWaiting / kPerNode; ++i) {
    cluster.CreateNode(StrCat("n", i));
    cluster.CreateSlice(StrCat("n", i), kPerNode, kConditions);
  }
  cluster.CreateClass();
  cluster.StartScheduler();
  for (int i = 0; i < kWaiting; ++i) {
    cluster.CreateClaim(StrCat("c", i));
    cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  cluster.Settle();
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, std::size_t{kWaiting});
  cluster.CreatePod("other");
  cluster.Settle();
  EXPECT_NE(cluster.NodeOf("other"), "") << "at once";
  // A condition wakes only its own pod, with no more work than if that pod were alone.
  const auto work_of = [&](std::string claim) {
    cluster.loop().RunUntilIdle();
    cluster.SetDeviceCondition(claim, kAttached, "True");
    return cluster.NodeOf("p" + claim.substr(1));
  };
  EXPECT_NE(work_of("c500"), "");
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, std::size_t{kWaiting - 1});
}

TEST(BindingScope, AClusterOfFiveThousandNodesWaitsFailsAndBinds) {
  constexpr int kNodes = 5'000;
  constexpr int kPods = 50;
  TestCluster cluster;
  for (int i = 0; i < kNodes; ++i) {
    cluster.CreateNode(StrCat("n", i));
    cluster.CreateSlice(StrCat("n", i), 1, kConditions);
  }
  cluster.CreateClass();
  cluster.StartScheduler();
  for (int i = 0; i < kPods; ++i) {
    cluster.CreateClaim(StrCat("c", i));
    cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  cluster.Settle();
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, std::size_t{kPods});
  std::vector<std::string> failed;
  for (int i = 0; i < kPods; ++i) {
    failed.push_back(cluster.DevicesOf(StrCat("c", i)).at(0));
    cluster.SetDeviceCondition(StrCat("c", i), kFailed, "True");
  }
  EXPECT_EQ(std::set(failed.begin(), failed.end()).size(), failed.size())
      << "each pod has a device of its own";
  cluster.LetPauseEnd();
  for (int i = 0; i < kPods; ++i) {
    ASSERT_EQ(cluster.DevicesOf(StrCat("c", i)).size(), 1u) << i;
    EXPECT_NE(cluster.DevicesOf(StrCat("c", i))[0], failed[static_cast<std::size_t>(i)]);
    cluster.SetDeviceCondition(StrCat("c", i), kAttached, "True");
    EXPECT_NE(cluster.NodeOf(StrCat("p", i)), "");
  }
}

TEST(BindingScope, EventAndConditionNameDeviceAndCondition) {
  TestCluster cluster;
  StartOneNode(cluster, kConditions);
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.Settle();
  const std::string expected =
      "device binding failed: claim=c, device=d.example.com/n1/dev-0, "
      "condition=d.example.com/failed, reason=Test, message=\"said the test\"";
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"), ElementsAre(expected));
  EXPECT_EQ(cluster.ConditionMessage("p"), expected);
}

TEST(BindingScope, ANodeThatDeclaresTheFeatureWakesThePodAndOtherFeaturesDoNot) {
  TestCluster cluster(FeatureGates().With(Gate::kDRAOptionalNodePreparation, true));
  cluster.CreateNode("n1");
  cluster.Create("ResourceSlice", R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",
      "pool":{"name":"n1","generation":1,"resourceSliceCount":1},"nodeName":"n1",
      "skipNodeOperations":true,"devices":[{"name":"dev-0"}]}})");
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_THAT(
      cluster.ConditionMessage("p"),
      HasSubstr("node(s) did not match node declared features: DraOptionalNodePreparation"));
  constexpr char kWoken[] = "event=\"NodeDeclaredFeatureChange\"";
  const auto declare = [&](const char* feature) {
    cluster.Update("Node", "n1", "status",
                   [&](api::Draft& node) { node["status"]["declaredFeatures"].Append(feature); });
    cluster.Settle();
  };
  declare("AnotherFeature");
  EXPECT_THAT(cluster.metrics().Text(), Not(HasSubstr(kWoken)));
  declare("DraOptionalNodePreparation");
  EXPECT_THAT(cluster.metrics().Text(), HasSubstr(kWoken));
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST(BindingScope, ANodeWhoseFirstChoiceFitsBeatsOneWithTheSecond) {
  TestCluster cluster;
  for (const char* node : {"a", "b"}) cluster.CreateNode(node);
  cluster.Create("ResourceSlice", R"({"metadata":{"name":"a"},"spec":{"driver":"e.example.com",
      "pool":{"name":"a","generation":1,"resourceSliceCount":1},"nodeName":"a","devices":[{"name":"x"}]}})");
  cluster.CreateSlice("b", 1);
  cluster.CreateClass("first");
  cluster.Create("DeviceClass", R"({"metadata":{"name":"second"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
  cluster.Create("ResourceClaim", R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[
      {"name":"req","firstAvailable":[{"name":"good","deviceClassName":"first"},
      {"name":"fair","deviceClassName":"second"}]}]}}})");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "b");
}

}  // namespace
}  // namespace drakkar::scheduler
