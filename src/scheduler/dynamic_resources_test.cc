// Pods with claims, through the API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClaimScheduling, AllocatesReservesAndBindsAsKubernetesDoes) {
  TestCluster cluster;
  cluster.CreateNode("worker-0");
  cluster.CreateSlice("worker-0", 2);
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  ASSERT_EQ(cluster.NodeOf("p"), "worker-0") << cluster.ConditionMessage("p");
  const api::ObjectPtr claim = cluster.Find("ResourceClaim", "c");
  EXPECT_EQ(api::WriteJson(claim->root()["metadata"]["finalizers"]),
            R"(["resource.kubernetes.io/delete-protection"])");
  const std::string uid(cluster.Find("Pod", "p")->uid());
  EXPECT_EQ(api::WriteJson(claim->root()["status"], {.sort_members = true}),
            StrCat(R"({"allocation":{"allocationTimestamp":"2027-01-15T08:00:00Z","devices":{)",
                   R"("results":[{"device":"dev-0","driver":"d.example.com","pool":"worker-0",)",
                   R"("request":"req"}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{)",
                   R"("key":"metadata.name","operator":"In","values":["worker-0"]}]}]}},)",
                   R"("reservedFor":[{"name":"p","resource":"pods","uid":")", uid, R"("}]})"));
}

// KEP-5945 does not want this: only the driver knows whether its devices need preparation.
TEST(ClaimScheduling, AClaimCannotSayWhetherItsDevicesSkipPreparation) {
  for (const bool skips : {true, false}) {
    TestCluster cluster(TestCluster::ServerGates());
    cluster.Create("Node", R"({"metadata":{"name":"n"},"status":{"allocatable":{"pods":"9"},
        "declaredFeatures":["DRAOptionalNodeOperations","DraOptionalNodePreparation"]}})");
    cluster.Create("ResourceSlice",
                   StrCat(R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",)",
                          R"("nodeName":"n","pool":{"name":"n","generation":1,)",
                          R"("resourceSliceCount":1},"skipNodeOperations":)",
                          skips ? "true" : "false", R"(,"devices":[{"name":"dev-0"}]}})"));
    const std::string opposite = StrCat(R"("skipNodeOperations":)", skips ? "false" : "true");
    cluster.Create("DeviceClass", StrCat(R"({"metadata":{"name":"gpu"},"spec":{)", opposite, "}}"));
    cluster.Create("ResourceClaim",
                   StrCat(R"({"metadata":{"name":"c"},"spec":{)", opposite, R"(,"devices":{)",
                          opposite, R"(,"requests":[{"name":"req",)", opposite,
                          R"(,"exactly":{"deviceClassName":"gpu",)", opposite, "}}]}}}"));
    EXPECT_EQ(api::WriteJson(cluster.Find("ResourceClaim", "c")->root()).find("skipNode"),
              std::string::npos);
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p", {"c"});
    cluster.Settle();
    ASSERT_EQ(cluster.NodeOf("p"), "n") << cluster.ConditionMessage("p");
    const api::ObjectPtr claim = cluster.Find("ResourceClaim", "c");
    const api::Value result = claim->root()["status"]["allocation"]["devices"]["results"].at(0);
    EXPECT_EQ(result["skipNodeOperations"].boolean(), skips);
  }
}

TEST(ClaimScheduling, APodWaitsForADeviceAndGetsItWhenItIsFreed) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClass();
  cluster.CreateClaim("c1");
  cluster.CreateClaim("c2");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p1", {"c1"});
  cluster.CreatePodWithClaims("p2", {"c2"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p1"), "n1");
  EXPECT_EQ(cluster.ConditionMessage("p2"),
            "0/1 nodes are available: 1 cannot allocate all claims.");
  // Does what the claim controller does when the pod is gone.
  cluster.Delete("Pod", "p1");
  cluster.Update("ResourceClaim", "c1", "status", [](api::Draft& claim) {
    claim["status"].Remove("reservedFor");
    claim["status"].Remove("allocation");
  });
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p2"), "n1");
  EXPECT_THAT(cluster.DevicesOf("c2"), ElementsAre("d.example.com/n1/dev-0"));
}

TEST(ClaimScheduling, ManyPodsInFlightNeverShareADevice) {
  TestCluster cluster;
  for (int i = 0; i < 4; ++i) {
    cluster.CreateNode(StrCat("n", i));
    cluster.CreateSlice(StrCat("n", i), 5);
  }
  cluster.CreateClass();
  // Create all of them before the scheduler starts, so that all are in flight together.
  for (int i = 0; i < 25; ++i) {
    cluster.CreateClaim(StrCat("c", i));
    cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  }
  cluster.StartScheduler();
  std::set<std::string> devices;
  int bound = 0;
  for (int i = 0; i < 25; ++i) {
    if (!cluster.NodeOf(StrCat("p", i)).empty()) ++bound;
    for (const std::string& device : cluster.DevicesOf(StrCat("c", i))) {
      EXPECT_TRUE(devices.insert(device).second) << device;
    }
  }
  EXPECT_EQ(bound, 20);
  EXPECT_EQ(devices.size(), 20u);
}

TEST(ClaimScheduling, PodsMayShareAClaimAndFollowItsNode) {
  TestCluster cluster;
  cluster.CreateNode("n0");
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClass();
  cluster.CreateClaim("shared");
  cluster.StartScheduler();
  for (const char* pod : {"a", "b", "c"}) cluster.CreatePodWithClaims(pod, {"shared"});
  cluster.Settle();
  for (const char* pod : {"a", "b", "c"}) EXPECT_EQ(cluster.NodeOf(pod), "n1");
  EXPECT_THAT(cluster.ReservedFor("shared"), ::testing::UnorderedElementsAre("a", "b", "c"));
}

TEST(ClaimScheduling, AMissingClaimKeepsThePodOutOfTheQueue) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClass();
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"late"});
  cluster.Settle();
  EXPECT_EQ(cluster.scheduler().counts().gated, 1u);
  cluster.CreateClaim("late");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST(ClaimScheduling, AMissingClassIsNamedAndItsArrivalWakesThePod) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("p"),
            "0/1 nodes are available: request req: device class gpu does not exist.");
  cluster.CreateClass();
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST(ClaimScheduling, SlicesThatArriveLaterWakeThePod) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "");
  cluster.CreateSlice("n1", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

// A client that lets another client write first.
TEST(ClaimScheduling, AConflictIsResolvedByReadingAgainAndRetrying) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1);
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  // Run step by step while somebody else keeps changing the claim.
  int changes = 0;
  for (int i = 0; i < 400 && cluster.NodeOf("p").empty(); ++i) {
    if (changes < 3 && i % 7 == 3) {
      ++changes;
      api::Draft draft(cluster.Find("ResourceClaim", "c")->tree());
      draft["metadata"]["labels"].Entry("round") = std::to_string(i);
      cluster.client().Update(
          {api::FindKind("resource.k8s.io", "v1", "ResourceClaim"), "default", "c", ""},
          draft.Freeze(), {}, [](client::Reply) {});
    }
    if (!cluster.loop().RunOne()) cluster.loop().Advance(std::chrono::milliseconds(12));
  }
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_THAT(cluster.ReservedFor("c"), ElementsAre("p"));
}

TEST(ClaimScheduling, ARestartAtAnyPointLosesNothing) {
  for (int steps = 0; steps < 60; ++steps) {
    SCOPED_TRACE(steps);
    TestCluster cluster;
    cluster.CreateNode("n1");
    cluster.CreateSlice("n1", 2);
    cluster.CreateClass();
    cluster.CreateClaim("c1");
    cluster.CreateClaim("c2");
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p1", {"c1"});
    cluster.CreatePodWithClaims("p2", {"c2"});
    // Create has already run the loop; start over so that the kill happens in the middle.
    cluster.KillScheduler();
    cluster.CreateClaim("c3", 1);
    Scheduler scheduler(cluster.SchedulerOptions());
    {
      Scheduler doomed(cluster.SchedulerOptions());
      doomed.Start();
      for (int i = 0; i < steps && cluster.loop().RunOne(); ++i) {
      }
    }
    scheduler.Start();
    cluster.Settle();
    EXPECT_EQ(cluster.NodeOf("p1"), "n1");
    EXPECT_EQ(cluster.NodeOf("p2"), "n1");
    EXPECT_NE(cluster.DevicesOf("c1"), cluster.DevicesOf("c2"));
    EXPECT_THAT(cluster.ReservedFor("c1"), ElementsAre("p1"));
    EXPECT_THAT(cluster.ReservedFor("c2"), ElementsAre("p2"));
  }
}

}  // namespace
}  // namespace drakkar::scheduler
