// KEP-5007: where and when a pod is retried, what ends a wait, and what is reported about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BindingRetry : public ::testing::Test {
 protected:
  BindingRetry() { cluster_.CreateClass(); }

  // Devices that any node can use once they are attached.
  void CreateFabric(int count) {
    std::string devices;
    for (int i = 0; i < count; ++i) {
      devices += StrCat(i > 0 ? "," : "", R"({"name":"dev-)", i, R"(","bindsToNode":true)",
                        kConditions, "}");
    }
    cluster_.Create("ResourceSlice",
                    StrCat(R"({"metadata":{"name":"fabric"},"spec":{"driver":"d.example.com",)",
                           R"("pool":{"name":"fabric","generation":1,"resourceSliceCount":1},)",
                           R"("allNodes":true,"devices":[)", devices, "]}}"));
  }
  void StartPod(std::string spec = "") {
    cluster_.CreateClaim("c");
    cluster_.StartScheduler();
    cluster_.CreatePodWithClaims("p", {"c"}, std::move(spec));
    cluster_.Settle();
  }
  void FailDevice() { cluster_.SetDeviceCondition("c", kFailed, "True"); }
  std::string NominatedNode() {
    return std::string(cluster_.Find("Pod", "p")->root()["status"]["nominatedNodeName"].str());
  }
  std::size_t Waiting() { return cluster_.scheduler().counts().waiting_for_conditions; }

  TestCluster cluster_;
};

TEST_F(BindingRetry, FailedNodesAreAvoidedAndRetriedRoundRobin) {
  for (const char* node : {"n1", "n2", "n3"}) cluster_.CreateNode(node);
  CreateFabric(20);
  StartPod();
  std::vector<std::string> tried;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(Waiting(), 1u);
    tried.push_back(NominatedNode());
    FailDevice();
    cluster_.LetPauseEnd();
  }
  EXPECT_EQ(std::set<std::string>(tried.begin(), tried.begin() + 3).size(), 3u)
      << "every node is tried: " << Join(tried, " ");
  EXPECT_TRUE(std::equal(tried.begin(), tried.begin() + 3, tried.begin() + 3)) << Join(tried, " ");
}

TEST_F(BindingRetry, ATimeoutAlsoSendsThePodToAnotherNode) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(1);
  StartPod();
  const std::string first = NominatedNode();
  cluster_.loop().Advance(minutes(10) + seconds(10));
  ASSERT_EQ(Waiting(), 1u) << "the only device there is, tried again";
  EXPECT_NE(NominatedNode(), first);
}

TEST_F(BindingRetry, AFailureFoundAfterARestartSendsThePodToAnotherNode) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(4);
  StartPod();
  const std::string first = NominatedNode();
  cluster_.KillScheduler();
  FailDevice();
  cluster_.StartScheduler();
  cluster_.loop().Advance(seconds(3));
  ASSERT_EQ(Waiting(), 1u);
  EXPECT_NE(NominatedNode(), first);
}

TEST_F(BindingRetry, AReadyDeviceBeatsTheNominatedNode) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(4);
  StartPod();
  const std::string other = NominatedNode() == "n1" ? "n2" : "n1";
  cluster_.CreateSlice(other, 1);
  FailDevice();
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p"), other) << "at once: there is nothing to wait for";
}

TEST_F(BindingRetry, AReadyDeviceOnTheNodeThatFailedIsTaken) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(4);
  StartPod();
  const std::string first = NominatedNode();
  cluster_.CreateSlice(first, 1);
  FailDevice();
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p"), first);
}

// A controller attaches a device and reports that the fabric's device failed. Shortly afterwards
// its driver publishes the attached device.
TEST_F(BindingRetry, ASliceThatArrivesAfterTheFailureEndsTheBackoff) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(4);
  StartPod();
  const std::string first = NominatedNode();
  FailDevice();
  cluster_.loop().Advance(milliseconds(100));
  ASSERT_THAT(cluster_.DevicesOf("c"), IsEmpty()) << "no second device of the fabric is taken";
  cluster_.CreateSlice(first, 1);
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p"), first);
  EXPECT_THAT(cluster_.DevicesOf("c"), ElementsAre(StrCat("d.example.com/", first, "/dev-0")));
}

TEST_F(BindingRetry, SlicesThatKeepChangingCauseNoHotLoop) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(100);
  StartPod();
  int attempts = 0;
  for (int i = 0; i < 300; ++i) {  // fifteen seconds
    if (!cluster_.DevicesOf("c").empty()) {
      ++attempts;
      FailDevice();
    }
    cluster_.Update("ResourceSlice", "fabric", "", [&](api::Draft& slice) {
      slice["metadata"]["annotations"].Entry("changed") = std::to_string(i);
    });
    cluster_.loop().Advance(milliseconds(50));
  }
  EXPECT_GE(attempts, 8);
  EXPECT_LE(attempts, 18);
}

TEST_F(BindingRetry, APodTiedToANodeByOtherClaimsLeavesItAfterRepeatedFailures) {
  for (const char* node : {"n1", "n2"}) {
    cluster_.CreateNode(node);
    cluster_.Create("ResourceSlice",
                    StrCat(R"({"metadata":{"name":"plain-)", node,
                           R"("},"spec":{"driver":"e.example.com","pool":{"name":")", node,
                           R"(","generation":1,"resourceSliceCount":1},"nodeName":")", node,
                           R"(","devices":[{"name":"plain"}]}})"));
  }
  cluster_.Create("DeviceClass", R"({"metadata":{"name":"plain"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
  CreateFabric(50);
  cluster_.CreateClaim("c");
  cluster_.CreateClaim("plain", 1, "plain");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c", "plain"});
  cluster_.Settle();
  const std::string first = NominatedNode();
  FailDevice();
  cluster_.LetPauseEnd();
  EXPECT_EQ(NominatedNode(), first) << "another device, where the other claim is";
  FailDevice();
  cluster_.LetPauseEnd();
  const std::string second = NominatedNode();
  EXPECT_NE(second, first);
  cluster_.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), second);
}

TEST_F(BindingRetry, DeletingTheClaimEndsTheWait) {
  cluster_.CreateNode("n1");
  CreateFabric(1);
  StartPod();
  ASSERT_EQ(Waiting(), 1u);
  cluster_.Delete("ResourceClaim", "c");
  ASSERT_NE(cluster_.Find("ResourceClaim", "c"), nullptr) << "its finalizer keeps it";
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_THAT(cluster_.DevicesOf("c"), IsEmpty()) << "so that it can go";
  EXPECT_THAT(cluster_.ReservedFor("c"), IsEmpty());
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              Contains("claim default/c is being deleted"));
  cluster_.loop().Advance(minutes(11));
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_THAT(cluster_.metrics().Text(),
              Not(HasSubstr("scheduler_dra_bindingconditions_allocations_total{")))
      << "neither a failure nor a timeout";
}

TEST_F(BindingRetry, DeletingAClaimWithoutConditionsEndsTheWaitForTheOthers) {
  cluster_.CreateNode("n1");
  CreateFabric(1);
  cluster_.Create("ResourceSlice", R"({"metadata":{"name":"plain"},"spec":{"driver":"e.example.com",
      "pool":{"name":"n1","generation":1,"resourceSliceCount":1},"nodeName":"n1",
      "devices":[{"name":"plain"}]}})");
  cluster_.Create("DeviceClass", R"({"metadata":{"name":"plain"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
  cluster_.CreateClaim("c");
  cluster_.CreateClaim("plain", 1, "plain");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c", "plain"});
  cluster_.Settle();
  ASSERT_EQ(Waiting(), 1u);
  cluster_.Delete("ResourceClaim", "plain");
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_THAT(cluster_.DevicesOf("plain"), IsEmpty());
}

TEST_F(BindingRetry, TheDeadlineIsExact) {
  cluster_.binding_timeout = seconds(5);
  cluster_.CreateNode("n1");
  CreateFabric(1);
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.loop().Advance(milliseconds(700));  // the timestamp has a resolution of one second
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  ASSERT_EQ(Waiting(), 1u);
  cluster_.loop().Advance(milliseconds(4'980));
  EXPECT_EQ(Waiting(), 1u);
  cluster_.loop().Advance(milliseconds(20));
  EXPECT_EQ(Waiting(), 0u);
}

TEST_F(BindingRetry, ARestartDoesNotCutTheDeadlineShort) {
  cluster_.binding_timeout = seconds(5);
  cluster_.CreateNode("n1");
  CreateFabric(1);
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.loop().Advance(milliseconds(900));
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  cluster_.KillScheduler();
  cluster_.StartScheduler();
  ASSERT_EQ(Waiting(), 1u);
  cluster_.loop().Advance(milliseconds(4'980));
  EXPECT_EQ(Waiting(), 1u);
  cluster_.loop().Advance(seconds(1));
  EXPECT_EQ(Waiting(), 0u);
}

TEST_F(BindingRetry, AServerThatDropsTheConditionsIsDetected) {
  // The slice keeps its conditions from when the server had the gate on.
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.RestartServer(TestCluster::ServerGates().With(Gate::kDRADeviceBindingConditions, false));
  StartPod();
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  EXPECT_THAT(cluster_.DevicesOf("c"), IsEmpty());
  EXPECT_THAT(cluster_.ReservedFor("c"), IsEmpty());
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre("the API server did not store bindingConditions of device "
                          "d.example.com/n1/dev-0 in claim default/c: the feature gate "
                          "DRADeviceBindingConditions must be the same there and in the "
                          "scheduler"));
  EXPECT_EQ(cluster_.scheduler().counts().backoff, 1u);
}

TEST_F(BindingRetry, ACordonEndsTheWaitAndThePodGoesElsewhere) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(1);
  StartPod();
  const std::string first = NominatedNode();
  cluster_.Update("Node", first, "",
                  [](api::Draft& node) { node["spec"]["unschedulable"] = true; });
  cluster_.Settle();
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre(StrCat("node ", first, " stopped accepting the pod while it waited for ",
                                 "devices: node(s) were unschedulable")));
  ASSERT_EQ(Waiting(), 1u) << "at once";
  EXPECT_NE(NominatedNode(), first);
  EXPECT_THAT(cluster_.DevicesOf("c"), ElementsAre("d.example.com/fabric/dev-0"))
      << "it did not fail, so it is taken again";
}

TEST_F(BindingRetry, AnUntoleratedTaintEndsTheWaitToo) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(1);
  StartPod();
  const std::string first = NominatedNode();
  cluster_.Update("Node", first, "", [](api::Draft& node) {
    node["spec"]["taints"].Append({{"key", "k"}, {"value", "v"}, {"effect", "NoSchedule"}});
  });
  cluster_.Settle();
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre(HasSubstr("node(s) had untolerated taint {k: v}")));
  EXPECT_NE(NominatedNode(), first);
}

TEST_F(BindingRetry, ACordonWhileTheClaimIsBeingWrittenEndsTheWaitToo) {
  testing::FaultyClient faulty(cluster_.loop(), cluster_.client());
  cluster_.scheduler_client = &faulty;
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(1);
  faulty.holds = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "update" && ref.kind->kind == "ResourceClaim";
  };
  StartPod();
  for (const char* node : {"n1", "n2"}) {
    cluster_.Update("Node", node, "",
                    [](api::Draft& draft) { draft["spec"]["unschedulable"] = true; });
  }
  faulty.holds = nullptr;
  faulty.LetGo();
  cluster_.Settle();
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_THAT(
      cluster_.Events("p", "FailedScheduling"),
      Contains(HasSubstr("stopped accepting the pod while it waited for devices: node(s) were "
                         "unschedulable")));
  cluster_.KillScheduler();
}

TEST_F(BindingRetry, ATaintThatThePodToleratesEndsNothing) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  CreateFabric(1);
  StartPod(R"(,"tolerations":[{"key":"k","operator":"Exists"}])");
  const std::string first = NominatedNode();
  cluster_.Update("Node", first, "", [](api::Draft& node) {
    node["spec"]["taints"].Append({{"key", "k"}, {"value", "v"}, {"effect", "NoSchedule"}});
  });
  cluster_.Settle();
  EXPECT_EQ(Waiting(), 1u);
  EXPECT_EQ(NominatedNode(), first);
  cluster_.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), first);
}

// "first" devices must be waited for, "second" devices are ready.
class FirstAvailable : public BindingRetry {
 protected:
  FirstAvailable() {
    cluster_.Create("DeviceClass", R"({"metadata":{"name":"second"},"spec":{"selectors":[
        {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
    cluster_.Create("ResourceClaim", R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[
        {"name":"req","firstAvailable":[{"name":"good","deviceClassName":"gpu"},
        {"name":"fair","deviceClassName":"second"}]}]}}})");
  }
  void CreateReady(std::string node) {
    cluster_.Create("ResourceSlice",
                    StrCat(R"({"metadata":{"name":"ready"},"spec":{"driver":"e.example.com",)",
                           R"("pool":{"name":"ready","generation":1,"resourceSliceCount":1},)",
                           R"("nodeName":")", node, R"(","devices":[{"name":"ready"}]}})"));
  }
  void Start() {
    cluster_.StartScheduler();
    cluster_.CreatePodWithClaims("p", {"c"});
    cluster_.Settle();
  }
};

TEST_F(FirstAvailable, WinsOverReadinessOnOneNode) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  CreateReady("n1");
  Start();
  EXPECT_THAT(cluster_.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"));
  EXPECT_EQ(Waiting(), 1u);
}

TEST_F(FirstAvailable, WinsOverReadinessAcrossNodes) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  // Make n1 fuller than the other node, so that only the order of firstAvailable favors it.
  cluster_.CreatePod("filler", R"(,"nodeName":"n1","initContainers":[{"name":"i","image":"i",
      "resources":{"requests":{"cpu":"3","memory":"30Gi"}}}])");
  cluster_.CreateSlice("n1", 1, kConditions);
  CreateReady("n2");
  Start();
  EXPECT_THAT(cluster_.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"));
  EXPECT_EQ(Waiting(), 1u);
}

TEST_F(FirstAvailable, TheReadyOneOfEqualAlternativesWins) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.CreateSlice("n2", 1);
  CreateReady("n1");
  Start();
  EXPECT_EQ(cluster_.NodeOf("p"), "n2");
}

TEST_F(BindingRetry, AllConditionsOfADeviceMustBeTrue) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice(
      "n1", 1,
      R"(,"bindingConditions":["d.example.com/attached","d.example.com/warm"],)"
      R"("bindingFailureConditions":["d.example.com/failed","d.example.com/hot"])");
  StartPod();
  const auto set = [&](std::vector<std::string> types) {
    cluster_.Update("ResourceClaim", "c", "status", [&](api::Draft& claim) {
      api::Draft device{{"driver", "d.example.com"}, {"pool", "n1"}, {"device", "dev-0"}};
      for (const std::string& type : types) {
        device["conditions"].Append({{"type", type},
                                     {"status", "True"},
                                     {"reason", "R"},
                                     {"message", "m"},
                                     {"lastTransitionTime", "2027-01-01T00:00:00Z"}});
      }
      claim["status"]["devices"] = api::Draft::Array({std::move(device)});
    });
  };
  EXPECT_THAT(cluster_.Events("p", "BindingConditionsPending"),
              ElementsAre(AllOf(HasSubstr("condition=d.example.com/attached"),
                                HasSubstr("condition=d.example.com/warm"))));
  set({kAttached});
  EXPECT_EQ(cluster_.NodeOf("p"), "") << "the second is missing";
  set({"d.example.com/warm"});
  EXPECT_EQ(cluster_.NodeOf("p"), "") << "the first is missing";
  set({kAttached, "d.example.com/warm"});
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
}

TEST_F(BindingRetry, AnyFailureConditionOfADeviceEndsTheWait) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice(
      "n1", 1,
      R"(,"bindingConditions":["d.example.com/attached"],)"
      R"("bindingFailureConditions":["d.example.com/failed","d.example.com/hot"])");
  StartPod();
  cluster_.SetDeviceCondition("c", "d.example.com/hot", "True");
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre(HasSubstr("condition=d.example.com/hot")));
}

TEST_F(BindingRetry, AllDevicesOfAClaimMustBeReady) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2, kConditions);
  cluster_.CreateClaim("c", 2);
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  EXPECT_THAT(cluster_.Events("p", "BindingConditionsPending"),
              ElementsAre("waiting for binding conditions for device on node n1: "
                          "claim=c, device=d.example.com/n1/dev-0, "
                          "condition=d.example.com/attached; "
                          "claim=c, device=d.example.com/n1/dev-1, "
                          "condition=d.example.com/attached"));
  const auto attach = [&](std::vector<std::string> names) {
    cluster_.Update("ResourceClaim", "c", "status", [&](api::Draft& claim) {
      api::Draft devices = api::Draft::Array();
      for (const std::string& name : names) {
        api::Draft device{{"driver", "d.example.com"}, {"pool", "n1"}, {"device", name}};
        device["conditions"].Append({{"type", kAttached},
                                     {"status", "True"},
                                     {"reason", "R"},
                                     {"message", "m"},
                                     {"lastTransitionTime", "2027-01-01T00:00:00Z"}});
        devices.Append(std::move(device));
      }
      claim["status"]["devices"] = std::move(devices);
    });
  };
  attach({"dev-0"});
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  attach({"dev-1"});
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  attach({"dev-0", "dev-1"});
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
}

}  // namespace
}  // namespace drakkar::scheduler
