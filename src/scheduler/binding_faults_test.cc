// KEP-5007: slow writes, many failing devices, and nodes, pods and claims that are deleted while a
// pod is being scheduled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool IsClaimWrite(std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
  return verb == "update" && ref.kind->kind == "ResourceClaim";
}

class BindingFaults : public ::testing::Test {
 protected:
  BindingFaults() {
    cluster_.scheduler_client = &client_;
    cluster_.CreateClass();
  }
  ~BindingFaults() override { cluster_.KillScheduler(); }

  // Creates a node with devices that must be attached, a claim and a pod.
  void StartWaiting(int devices, std::vector<std::string> claims = {"c"}) {
    cluster_.CreateNode("n1");
    cluster_.CreateSlice("n1", devices, kConditions);
    for (const std::string& claim : claims) cluster_.CreateClaim(claim);
    cluster_.StartScheduler();
    cluster_.CreatePodWithClaims("p", claims);
    cluster_.Settle();
    ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  }
  // Devices that any node can use.
  void CreateFabric(std::string devices, std::string more = "", int slices = 1) {
    cluster_.Create("ResourceSlice",
                    StrCat(R"({"metadata":{"name":"fabric"},"spec":{"driver":"d.example.com",)",
                           R"("pool":{"name":"fabric","generation":1,"resourceSliceCount":)",
                           slices, R"(},"allNodes":true,"devices":[)", devices, "]", more, "}}"));
  }
  std::string Device(std::string claim) {
    const std::vector<std::string> devices = cluster_.DevicesOf(std::move(claim));
    if (devices.size() != 1) return "";
    return devices.front().substr(devices.front().rfind('/') + 1);
  }

  TestCluster cluster_;
  testing::FaultyClient client_{cluster_.loop(), cluster_.client()};
};

TEST_F(BindingFaults, PodsBeyondTheWriteLimitAllStartWaiting) {
  constexpr int kPods = 1'500, kPerNode = 100;
  for (int i = 0; i < kPods / kPerNode; ++i) {
    cluster_.CreateNode(StrCat("n", i));
    cluster_.CreateSlice(StrCat("n", i), kPerNode, kConditions);
  }
  for (int i = 0; i < kPods; ++i) {
    cluster_.CreateClaim(StrCat("c", i));
    cluster_.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  client_.holds = IsClaimWrite;
  cluster_.StartScheduler();
  ASSERT_LT(cluster_.scheduler().counts().binding, std::size_t{kPods});
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  EXPECT_EQ(cluster_.scheduler().counts().waiting_for_conditions, std::size_t{kPods});
}

TEST_F(BindingFaults, EveryDeviceOfThePoolIsTried) {
  constexpr int kDevices = 40;
  StartWaiting(kDevices);
  for (int i = 0; i < kDevices - 1; ++i) {
    ASSERT_EQ(Device("c"), StrCat("dev-", i));
    cluster_.SetDeviceCondition("c", kFailed, "True");
    cluster_.LetPauseEnd();
  }
  ASSERT_EQ(Device("c"), StrCat("dev-", kDevices - 1)) << "the only one that works";
  cluster_.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
}

TEST_F(BindingFaults, AnAvoidedDeviceTakesNothingFromTheOthers) {
  cluster_.CreateNode("n1");
  const std::string consumes =
      StrCat(R"(,"consumesCounters":[{"counterSet":"chip","counters":{"units":{"value":"4"}}}])",
             kConditions);
  CreateFabric(StrCat(R"({"name":"left")", consumes, R"(},{"name":"right")", consumes, "}"), "", 2);
  cluster_.Create("ResourceSlice", R"({"metadata":{"name":"counters"},"spec":{
      "driver":"d.example.com","pool":{"name":"fabric","generation":1,"resourceSliceCount":2},
      "allNodes":true,"sharedCounters":[{"name":"chip","counters":{"units":{"value":"4"}}}]}})");
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  ASSERT_EQ(Device("c"), "left");
  cluster_.SetDeviceCondition("c", kFailed, "True");
  cluster_.LetPauseEnd();
  EXPECT_EQ(Device("c"), "right") << "all of the chip is free";
}

TEST_F(BindingFaults, TheNominatedNodeIsWrittenDespiteServerErrors) {
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "Pod" && ref.subresource == "status";
  };
  StartWaiting(1);
  cluster_.loop().Advance(seconds(20));
  const auto nominated = [&] {
    return cluster_.Find("Pod", "p")->root()["status"]["nominatedNodeName"].str();
  };
  ASSERT_EQ(nominated(), "");
  client_.loses = nullptr;
  cluster_.loop().Advance(seconds(60));
  EXPECT_EQ(nominated(), "n1");
}

TEST_F(BindingFaults, DeletingTheNodeEndsTheWaitAndThePodGoesElsewhere) {
  cluster_.CreateNode("n1");
  CreateFabric(StrCat(R"({"name":"dev-0","bindsToNode":true)", kConditions, "}"));
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  cluster_.CreateNode("n2");
  cluster_.Delete("Node", "n1");
  cluster_.Settle();
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre(HasSubstr("node n1 was deleted")));
  EXPECT_EQ(Device("c"), "dev-0") << "it did not fail, so it is taken again";
  cluster_.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), "n2");
}

TEST_F(BindingFaults, NoPodIsBoundToADeletedNode) {
  cluster_.CreateNode("n1");
  CreateFabric(R"({"name":"dev-0"})");
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  cluster_.Delete("Node", "n1");
  cluster_.CreateNode("n2");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.loop().Advance(seconds(3));
  EXPECT_EQ(cluster_.NodeOf("p"), "n2");
}

TEST_F(BindingFaults, NothingWaitsForADeletedPod) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  cluster_.Delete("Pod", "p");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  EXPECT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 0u);
  EXPECT_EQ(cluster_.scheduler().counts().binding, 0u);
  EXPECT_THAT(cluster_.Events("p", "BindingConditionsPending"), IsEmpty());
}

TEST_F(BindingFaults, NothingIsRememberedAboutAPodDeletedWhileItsClaimsAreReleased) {
  StartWaiting(2, {"a", "b"});
  client_.holds = IsClaimWrite;
  cluster_.loop().Advance(minutes(10) + seconds(1));
  ASSERT_EQ(cluster_.scheduler().counts().with_failed_devices, 1u);
  cluster_.Delete("Pod", "p");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.loop().Advance(seconds(5));
  EXPECT_THAT(cluster_.DevicesOf("b"), IsEmpty());
  EXPECT_EQ(cluster_.scheduler().counts().with_failed_devices, 0u);
}

TEST_F(BindingFaults, DeletingWhatAPodWaitsForIsNotADeviceFailure) {
  StartWaiting(2);
  cluster_.Delete("Pod", "p");
  cluster_.Settle();
  cluster_.CreateClaim("d");
  cluster_.CreatePodWithClaims("q", {"d"});
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  cluster_.Update("ResourceClaim", "d", "",
                  [](api::Draft& claim) { claim["metadata"].Remove("finalizers"); });
  cluster_.Delete("ResourceClaim", "d");
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 0u);
  const std::string text = cluster_.metrics().Text();
  EXPECT_THAT(text, Not(HasSubstr("scheduler_dra_bindingconditions_allocations_total{")));
  EXPECT_THAT(text,
              Not(HasSubstr("prebind_duration_seconds_count{requires_bindingconditions=\"true\","
                            "status=\"failure\"}")));
}

// A controller may prevent a failed device from being picked again.
TEST_F(BindingFaults, ADeviceWhoseNodeSelectorChangedOrThatWasTaintedIsNotPickedAgain) {
  cluster_.CreateNode("n1", R"({"zone":"a"})");
  for (const char* name : {"0", "1", "2"}) {
    cluster_.Create(
        "ResourceSlice",
        StrCat(R"({"metadata":{"name":"s)", name, R"("},"spec":{"driver":"d.example.com",)",
               R"("pool":{"name":"p)", name, R"(","generation":1,"resourceSliceCount":1},)",
               R"("nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[)",
               R"({"key":"zone","operator":"In","values":["a"]}]}]},)",
               R"("devices":[{"name":"dev-)", name, "\"", kConditions, "}]}}"));
  }
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  ASSERT_EQ(Device("c"), "dev-0");
  cluster_.Update("ResourceSlice", "s0", "", [](api::Draft& slice) {
    api::Draft& term = slice["spec"]["nodeSelector"]["nodeSelectorTerms"].at(0);
    term["matchExpressions"].at(0)["values"].at(0) = "b";
  });
  cluster_.SetDeviceCondition("c", kFailed, "True");
  cluster_.LetPauseEnd();
  ASSERT_EQ(Device("c"), "dev-1");
  cluster_.Update("ResourceSlice", "s1", "", [](api::Draft& slice) {
    slice["spec"]["devices"].at(0)["taints"].Append({{"key", "broken"}, {"effect", "NoSchedule"}});
  });
  for (int i = 0; i < 4; ++i) {
    cluster_.SetDeviceCondition("c", kFailed, "True");
    cluster_.loop().Advance(seconds(30));
    EXPECT_EQ(Device("c"), "dev-2") << "the others are out of reach, however often it fails";
  }
}

TEST_F(BindingFaults, AnUnavailableServerDuringAWaitOnlyDelaysTheBinding) {
  StartWaiting(1);
  client_.loses = [](std::string_view, const client::ResourceRef&, const api::TreePtr&) {
    return true;
  };
  cluster_.loop().Advance(minutes(1));
  cluster_.SetDeviceCondition("c", kAttached, "True");
  cluster_.loop().Advance(minutes(1));
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  client_.loses = nullptr;
  cluster_.loop().Advance(minutes(1));
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_THAT(cluster_.ReservedFor("c"), ElementsAre("p"));
  EXPECT_EQ(Device("c"), "dev-0");
}

TEST_F(BindingFaults, EveryClaimGetsATimestampAndOneWithoutConditionsDoesNotWait) {
  cluster_.Create("ResourceSlice", R"({"metadata":{"name":"plain"},"spec":{"driver":"e.example.com",
      "pool":{"name":"n1","generation":1,"resourceSliceCount":1},"nodeName":"n1",
      "devices":[{"name":"plain"}]}})");
  cluster_.Create("DeviceClass", R"({"metadata":{"name":"plain"},"spec":{"selectors":[
      {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1, kConditions);
  cluster_.CreateClaim("waits");
  cluster_.CreateClaim("plain", 1, "plain");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"plain", "waits"});
  cluster_.Settle();
  for (const char* claim : {"plain", "waits"}) {
    EXPECT_EQ(cluster_.Find("ResourceClaim", claim)
                  ->root()["status"]["allocation"]["allocationTimestamp"]
                  .str(),
              "2027-01-15T08:00:00Z")
        << claim;
    EXPECT_THAT(cluster_.ReservedFor(claim), ElementsAre("p")) << claim;
  }
  ASSERT_EQ(cluster_.NodeOf("p"), "");
  cluster_.SetDeviceCondition("waits", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
}

TEST_F(BindingFaults, EveryTimeoutCounts) {
  StartWaiting(1);
  for (int i = 1; i <= 3; ++i) {
    cluster_.loop().Advance(minutes(10) + seconds(20));
    EXPECT_THAT(cluster_.metrics().Text(),
                HasSubstr(StrCat(
                    "scheduler_dra_bindingconditions_allocations_total{status=\"timeout\"} ", i)));
  }
}

// Another scheduler of an API server that stores every allocation, as kube-apiserver does.
class AnotherScheduler : public BindingFaults {
 protected:
  AnotherScheduler() { cluster_.core().StopArbitration(); }

  void Allocate(std::string claim, std::string device) {
    cluster_.CreateClaim(claim);
    cluster_.Update("ResourceClaim", claim, "status", [&](api::Draft& draft) {
      draft["status"]["allocation"]["devices"]["results"].Append(
          {{"request", "req"}, {"driver", "d.example.com"}, {"pool", "n1"}, {"device", device}});
    });
  }
};

TEST_F(AnotherScheduler, AllocatesADeviceFirstAndThePodGetsAnother) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2);
  cluster_.CreateClaim("c");
  cluster_.StartScheduler();
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  Allocate("theirs", "dev-0");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_EQ(Device("c"), "dev-1");
  EXPECT_THAT(
      cluster_.Events("p", "FailedScheduling"),
      ElementsAre("a device of claim default/c is already allocated to claim default/theirs, "
                  "by another scheduler"));
}

TEST_F(BindingFaults, ADeviceThatTheServerRefusesIsReplacedByAnother) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2);
  cluster_.CreateClaim("c");
  cluster_.CreateClaim("theirs");
  cluster_.StartScheduler();
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  cluster_.Update("ResourceClaim", "theirs", "status", [](api::Draft& draft) {
    draft["status"]["allocation"]["devices"]["results"].Append(
        {{"request", "req"}, {"driver", "d.example.com"}, {"pool", "n1"}, {"device", "dev-0"}});
  });
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_EQ(Device("c"), "dev-1");
}

TEST_F(AnotherScheduler, ThatAllocatesTheSameDeviceLaterGivesItUp) {
  StartWaiting(2);
  ASSERT_EQ(Device("c"), "dev-0");
  Allocate("theirs", "dev-0");
  cluster_.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_EQ(Device("c"), "dev-0");
}

}  // namespace
}  // namespace drakkar::scheduler
