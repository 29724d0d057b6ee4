// KEP-5007 through the API: what happens after a failure, a timeout or a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Cpu(int cores, int priority = 0) {
  return StrCat(R"(,"priority":)", priority, R"(,"initContainers":[{"name":"i","image":"i",)",
                R"("resources":{"requests":{"cpu":")", cores, R"("}}}])");
}

std::string NominatedNode(TestCluster& cluster, std::string pod) {
  return std::string(
      cluster.Find("Pod", std::move(pod))->root()["status"]["nominatedNodeName"].str());
}

// Writes an allocation of one device as another scheduler would; `extra` holds more members of the
// allocation and of the status.
void AllocateByHand(TestCluster& cluster, const std::string& claim, const std::string& node,
                    const std::string& device, const std::string& timestamp) {
  cluster.Update("ResourceClaim", claim, "status", [&](api::Draft& draft) {
    api::Draft result{
        {"request", "req"}, {"driver", "d.example.com"}, {"pool", node}, {"device", device}};
    result["bindingConditions"].Append(kAttached);
    result["bindingFailureConditions"].Append(kFailed);
    api::Draft& allocation = draft["status"]["allocation"];
    allocation["devices"]["results"].Append(std::move(result));
    if (!timestamp.empty()) allocation["allocationTimestamp"] = timestamp;
  });
}

class BindingRecovery : public ::testing::Test {
 protected:
  void StartWaiting(TestCluster& cluster, int devices, std::string spec = "") {
    cluster.CreateNode("n1");
    cluster.CreateSlice("n1", devices, kConditions);
    cluster.CreateClass();
    cluster.CreateClaim("c");
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p", {"c"}, std::move(spec));
    cluster.Settle();
    ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  }
};

TEST_F(BindingRecovery, AFailureOfAClaimAllocatedEarlierIsDetectedAndTakesPrecedence) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 2, kConditions);
  cluster.CreateClass();
  cluster.CreateClaim("c");
  AllocateByHand(cluster, "c", "n1", "dev-0", "2027-01-15T08:00:00Z");
  cluster.Update("ResourceClaim", "c", "status", [](api::Draft& claim) {
    api::Draft device{{"driver", "d.example.com"}, {"pool", "n1"}, {"device", "dev-0"}};
    for (const char* type : {kAttached, kFailed}) {
      device["conditions"].Append({{"type", type},
                                   {"status", "True"},
                                   {"reason", "R"},
                                   {"message", "m"},
                                   {"lastTransitionTime", "2027-01-01T00:00:00Z"}});
    }
    claim["status"]["devices"].Append(std::move(device));
  });
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.loop().Advance(seconds(2));
  EXPECT_EQ(cluster.NodeOf("p"), "");
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-1"))
      << "cleared, and the device that failed is avoided";
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"),
              Contains(HasSubstr("device binding failed: claim=c, device=d.example.com/n1/dev-0, "
                                 "condition=d.example.com/failed")));
}

TEST_F(BindingRecovery, WithoutATimestampTheTimeoutCountsFromWhenTheWaitWasFirstSeen) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 2, kConditions);
  cluster.CreateClass();
  cluster.CreateClaim("c");
  AllocateByHand(cluster, "c", "n1", "dev-0", "");
  cluster.loop().Advance(minutes(30));
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.loop().Advance(minutes(6));
  cluster.CreatePodWithClaims("q", {"c"});  // its wait does not restart the timeout
  cluster.loop().Advance(minutes(3));
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"));
  EXPECT_FALSE(cluster.Find("ResourceClaim", "c")
                   ->root()["status"]["allocation"]["allocationTimestamp"]
                   .exists())
      << "never written into an allocation that was there before";
  cluster.loop().Advance(minutes(1) + seconds(5));
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-1"));
  EXPECT_THAT(cluster.Events("q", "FailedScheduling"),
              ElementsAre(HasSubstr("device binding timeout: claim=c")));
}

TEST_F(BindingRecovery, WaitersThatFailTogetherDoNotUndoEachOthersNextAttempt) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  cluster.CreatePodWithClaims("q", {"c"});
  cluster.CreatePodWithClaims("r", {"c"});
  cluster.Settle();
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 3u);
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.loop().Advance(seconds(3));
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-1"));
  EXPECT_THAT(cluster.ReservedFor("c"), ::testing::UnorderedElementsAre("p", "q", "r"));
  for (const char* pod : {"p", "q", "r"}) {
    EXPECT_THAT(cluster.Events(pod, "FailedScheduling"), Contains(HasSubstr("dev-0"))) << pod;
    EXPECT_THAT(cluster.Events(pod, "FailedScheduling"), Not(Contains(HasSubstr("dev-1")))) << pod;
  }
  cluster.SetDeviceCondition("c", kAttached, "True");
  for (const char* pod : {"p", "q", "r"}) EXPECT_EQ(cluster.NodeOf(pod), "n1") << pod;
}

TEST_F(BindingRecovery, ALaterWaiterSharesTheTimeoutOfTheClaim) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.loop().Advance(minutes(7));
  cluster.CreatePodWithClaims("late", {"c"});
  cluster.Settle();
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 2u);
  cluster.loop().Advance(minutes(3) + seconds(1));
  EXPECT_THAT(cluster.Events("late", "FailedScheduling"),
              Contains(HasSubstr("device binding timeout: claim=c")));
}

TEST_F(BindingRecovery, EachClaimOfAPodHasItsOwnTimeout) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 2, kConditions);
  cluster.CreateClass();
  cluster.CreateClaim("old");
  cluster.CreateClaim("new");
  // Allocated six minutes ago, for a pod that was deleted since.
  AllocateByHand(cluster, "old", "n1", "dev-0", "2027-01-15T08:00:00Z");
  cluster.loop().Advance(minutes(6));
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"old", "new"});
  cluster.loop().Advance(minutes(4) + seconds(1));
  EXPECT_THAT(
      cluster.Events("p", "FailedScheduling"),
      ElementsAre(HasSubstr("device binding timeout: claim=old, device=d.example.com/n1/dev-0")));
  EXPECT_EQ(cluster.Find("ResourceClaim", "new")
                ->root()["status"]["allocation"]["allocationTimestamp"]
                .str(),
            "2027-01-15T08:06:00Z")
      << "kept: the pod can still use it";
}

TEST_F(BindingRecovery, AllClaimsOfThePodMustBeReady) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 2, kConditions);
  cluster.CreateClass();
  cluster.CreateClaim("a");
  cluster.CreateClaim("b");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"a", "b"});
  cluster.Settle();
  cluster.SetDeviceCondition("a", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "");
  cluster.SetDeviceCondition("b", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

// Two drivers on two nodes; the pod needs a device of each.
class TwoDrivers : public BindingRecovery {
 protected:
  void StartWaiting(TestCluster& cluster, int waiting_devices_on_n1) {
    for (const char* node : {"n1", "n2"}) {
      cluster.CreateNode(node);
      cluster.CreateSlice(node, std::string(node) == "n1" ? waiting_devices_on_n1 : 1, kConditions);
      cluster.Create("ResourceSlice",
                     StrCat(R"({"metadata":{"name":"plain-)", node,
                            R"("},"spec":{"driver":"e.example.com","pool":{"name":")", node,
                            R"(","generation":1,"resourceSliceCount":1},"nodeName":")", node,
                            R"(","devices":[{"name":"plain"}]}})"));
    }
    cluster.CreateClass();
    cluster.Create("DeviceClass", R"({"metadata":{"name":"plain"},"spec":{"selectors":[
        {"cel":{"expression":"device.driver == \"e.example.com\""}}]}})");
    cluster.CreateClaim("waits");
    cluster.CreateClaim("plain", 1, "plain");
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p", {"waits", "plain"}, R"(,"affinity":{"nodeAffinity":{
        "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":9,"preference":{"matchFields":[
        {"key":"metadata.name","operator":"In","values":["n1"]}]}}]}})");
    cluster.Settle();
    ASSERT_THAT(cluster.DevicesOf("plain"), ElementsAre("e.example.com/n1/plain"));
  }
};

TEST_F(TwoDrivers, TheOtherClaimStaysWhileThePodCanStillUseIt) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  const auto allocation = [&] {
    return cluster.Find("ResourceClaim", "plain")->resource_version();
  };
  const std::int64_t before = allocation();
  cluster.SetDeviceCondition("waits", kFailed, "True");
  cluster.LetPauseEnd();
  EXPECT_THAT(cluster.DevicesOf("waits"), ElementsAre("d.example.com/n1/dev-1"));
  EXPECT_EQ(allocation(), before) << "not even touched";
}

TEST_F(TwoDrivers, TheOtherClaimIsClearedWhenOnlyAnotherNodeHasADeviceLeft) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.SetDeviceCondition("waits", kFailed, "True");
  cluster.LetPauseEnd();
  EXPECT_THAT(cluster.DevicesOf("waits"), ElementsAre("d.example.com/n2/dev-0"));
  EXPECT_THAT(cluster.DevicesOf("plain"), ElementsAre("e.example.com/n2/plain"));
  cluster.SetDeviceCondition("waits", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
}

TEST_F(BindingRecovery, AnotherNodeIsTriedBeforeTheOneThatFailed) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  cluster.CreateNode("n0");  // has more free resources
  cluster.CreateSlice("n0", 2, kConditions);
  cluster.Settle();
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.LetPauseEnd();
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n0/dev-0"));
  EXPECT_EQ(NominatedNode(cluster, "p"), "n0");
}

TEST_F(BindingRecovery, AnotherNodeIsTakenWhenTheNominatedOneDoesNotFit) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.CreateNode("n0");
  cluster.CreateSlice("n0", 1, kConditions);
  cluster.Settle();
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.LetPauseEnd();
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n0/dev-0"));
  EXPECT_EQ(NominatedNode(cluster, "p"), "n0");
}

TEST_F(BindingRecovery, NoPodOfLowerOrEqualPriorityTakesTheRoomOfAPodThatWillBeRetried) {
  TestCluster cluster;
  StartWaiting(cluster, 1, Cpu(3, 5));
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.Settle();
  ASSERT_EQ(cluster.scheduler().counts().backoff, 1u);
  EXPECT_EQ(NominatedNode(cluster, "p"), "n1") << "the nomination stays";
  cluster.CreatePod("lower", Cpu(3, 1));
  cluster.CreatePod("equal", Cpu(3, 5));
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("lower"), "");
  EXPECT_EQ(cluster.NodeOf("equal"), "");
  EXPECT_THAT(cluster.ConditionMessage("equal"),
              HasSubstr("1 Insufficient cpu (room is kept for nominated pod default/p)"));
  cluster.loop().Advance(seconds(3));
  cluster.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST_F(BindingRecovery, APodOfHigherPriorityMayUseTheKeptRoom) {
  TestCluster cluster;
  StartWaiting(cluster, 1, Cpu(3, 5));
  cluster.SetDeviceCondition("c", kFailed, "True");
  cluster.Settle();
  cluster.CreatePod("higher", Cpu(3, 9));
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("higher"), "n1");
}

TEST_F(BindingRecovery, ADeviceThatFitsOnlyOnAFullNodeCausesNoHotLoop) {
  TestCluster cluster;
  StartWaiting(cluster, 1, Cpu(2));
  cluster.CreateNode("full");
  cluster.CreateSlice("full", 1, kConditions);
  cluster.CreatePod(
      "hog",
      StrCat(Cpu(4), R"(,"nodeSelector":{})",
             R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)",
             R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",)",
             R"("operator":"In","values":["full"]}]}]}}})"));
  cluster.Settle();
  ASSERT_EQ(cluster.NodeOf("hog"), "full");
  int failures = 0;
  for (int i = 0; i < 40; ++i) {  // four seconds
    if (!cluster.DevicesOf("c").empty()) {
      ++failures;
      cluster.SetDeviceCondition("c", kFailed, "True");
    }
    cluster.loop().Advance(std::chrono::milliseconds(100));
  }
  EXPECT_GE(failures, 2);
  EXPECT_LE(failures, 4) << "at once, after one second, after two more";
}

TEST_F(BindingRecovery, AFabricDeviceIsWaitedForOnTheSameNodeAfterARestart) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.Create("ResourceSlice",
                 StrCat(R"({"metadata":{"name":"fabric"},"spec":{"driver":"d.example.com",)",
                        R"("pool":{"name":"fabric","generation":1,"resourceSliceCount":1},)",
                        R"("allNodes":true,"devices":[{"name":"dev-0")", kConditions, "}]}}"));
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"}, Cpu(1));
  cluster.Settle();
  EXPECT_FALSE(
      cluster.Find("ResourceClaim", "c")->root()["status"]["allocation"]["nodeSelector"].exists());
  cluster.KillScheduler();
  for (const char* node : {"n0", "n2"}) cluster.CreateNode(node);
  cluster.CreatePod("filler", R"(,"nodeName":"n1")");
  cluster.StartScheduler();
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1") << "where it was nominated, though others are emptier";
}

TEST_F(BindingRecovery, APodWhoseDeviceWasAttachedWhileNoSchedulerRanIsBoundAtOnce) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.KillScheduler();
  cluster.SetDeviceCondition("c", kAttached, "True");
  cluster.StartScheduler();
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST_F(BindingRecovery, AClockJumpDoesNotExtendOrShortenAWait) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.loop().Advance(minutes(1));
  cluster.loop().fake_clock().JumpWall(-std::chrono::hours(5));
  cluster.loop().Advance(minutes(8));
  cluster.loop().fake_clock().JumpWall(std::chrono::hours(9));
  cluster.loop().Advance(seconds(30));
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"), IsEmpty());
  cluster.loop().Advance(seconds(31));
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"),
              ElementsAre(HasSubstr("device binding timeout: claim=c")));
}

TEST_F(BindingRecovery, ADeviceThatDisappearsFromItsSliceIsReplacedByAnother) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  cluster.Update("ResourceSlice", "slice-n1", "", [](api::Draft& slice) {
    slice["spec"]["pool"]["generation"] = 2;
    api::Draft left{{"name", "dev-1"}};
    left["bindingConditions"].Append(kAttached);
    left["bindingFailureConditions"].Append(kFailed);
    slice["spec"]["devices"] = api::Draft::Array({std::move(left)});
  });
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0")) << "still allocated";
  for (int i = 0; i < 3; ++i) {
    cluster.SetDeviceCondition("c", kFailed, "True");
    cluster.loop().Advance(seconds(30));
    EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-1"))
        << "however often that one fails";
  }
}

TEST_F(BindingRecovery, AfterATimeoutTheNextAttemptMaySucceed) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.loop().Advance(minutes(10) + seconds(1));
  ASSERT_THAT(cluster.Events("p", "FailedScheduling"), ::testing::SizeIs(1));
  cluster.loop().Advance(seconds(3));
  ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.SetDeviceCondition("c", kAttached, "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

}  // namespace
}  // namespace drakkar::scheduler
