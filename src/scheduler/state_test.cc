// What the scheduler says about its own state: decisions that are not written yet, and where a pod
// is.
#include "scheduler/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "scheduler/testing/test_context.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using Place = PodState::Place;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool IsClaimWrite(std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
  return verb == "update" && ref.kind->kind == "ResourceClaim";
}

api::ObjectPtr Named(const std::vector<api::ObjectPtr>& objects, std::string_view name) {
  for (const api::ObjectPtr& object : objects) {
    if (object->name() == name) return object;
  }
  ADD_FAILURE() << "no object " << name;
  return std::make_shared<const api::Object>(*api::ParseJson("{}"));
}

class StateTest : public ::testing::Test {
 protected:
  StateTest() {
    cluster_.scheduler_client = &client_;
    cluster_.CreateNode("n1");
    cluster_.CreateClass();
  }
  ~StateTest() override { cluster_.KillScheduler(); }

  Simulation Cluster(std::string pod = "") {
    return cluster_.scheduler().State(pod.empty() ? "" : "default/" + pod).cluster;
  }
  PodState Pod(std::string name) { return cluster_.scheduler().State("default/" + name).pod; }
  void StartWaiting(int devices, std::vector<std::string> claims = {"c"}) {
    cluster_.CreateSlice("n1", devices, kConditions);
    for (const std::string& claim : claims) cluster_.CreateClaim(claim);
    cluster_.StartScheduler();
    cluster_.CreatePodWithClaims("p", claims);
    cluster_.Settle();
    ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  }

  TestCluster cluster_{FeatureGates().With(Gate::kDRADeviceTaintRules, true)};
  testing::FaultyClient client_{cluster_.loop(), cluster_.client()};
};

TEST_F(StateTest, HasEveryObjectInItsOwnList) {
  cluster_.CreateNode("n2");
  cluster_.CreateSlice("n1", 1);
  cluster_.CreateClaim("claim");
  cluster_.Create("DeviceTaintRule", R"({"metadata":{"name":"rule"},"spec":{"deviceSelector":{
      "driver":"d.example.com"},"taint":{"key":"k","effect":"NoSchedule"}}})");
  cluster_.StartScheduler();
  cluster_.CreatePod("p");
  cluster_.CreatePod("q");
  cluster_.Settle();
  const auto names = [](const std::vector<api::ObjectPtr>& objects) {
    std::vector<std::string> found;
    for (const api::ObjectPtr& object : objects) found.emplace_back(object->name());
    std::sort(found.begin(), found.end());
    return found;
  };
  for (const char* asked : {"", "p", "unknown"}) {
    const Simulation cluster = Cluster(asked);
    EXPECT_THAT(names(cluster.nodes), ElementsAre("n1", "n2"));
    EXPECT_THAT(names(cluster.slices), ElementsAre("slice-n1"));
    EXPECT_THAT(names(cluster.classes), ElementsAre("gpu"));
    EXPECT_THAT(names(cluster.claims), ElementsAre("claim"));
    EXPECT_THAT(names(cluster.taint_rules), ElementsAre("rule"));
    EXPECT_THAT(names(cluster.pods), ElementsAre("p", "q"));
  }
}

TEST_F(StateTest, ShowsDecisionsThatAreNotWrittenYet) {
  cluster_.CreateSlice("n1", 2);
  cluster_.CreateClaim("c");
  cluster_.CreateClaim("unused");
  cluster_.StartScheduler();
  client_.holds = IsClaimWrite;
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  const Simulation cluster = Cluster();
  const api::Value status = Named(cluster.claims, "c")->root()["status"];
  EXPECT_EQ(status["allocation"]["devices"]["results"].at(0)["device"].str(), "dev-0");
  ASSERT_EQ(status["reservedFor"].size(), 1u);
  EXPECT_EQ(status["reservedFor"].at(0)["resource"].str(), "pods");
  EXPECT_EQ(status["reservedFor"].at(0)["name"].str(), "p");
  EXPECT_EQ(status["reservedFor"].at(0)["uid"].str(), cluster_.Find("Pod", "p")->uid());
  EXPECT_FALSE(Named(cluster.claims, "unused")->root()["status"]["allocation"].has_value());
  EXPECT_EQ(Named(cluster.pods, "p")->root()["spec"]["nodeName"].str(), "n1");
  EXPECT_EQ(Named(Cluster("p").pods, "p")->root()["spec"]["nodeName"].str(), "")
      << "the pod that is asked about is explained as if it had no node";
  EXPECT_EQ(Pod("p").place, Place::kBinding);
  EXPECT_EQ(Pod("p").node, "n1");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  const Simulation written = Cluster();
  EXPECT_EQ(Named(written.claims, "c")->root()["status"]["reservedFor"].size(), 1u);
  EXPECT_EQ(Pod("p").place, Place::kUnknown) << "it has a node";
}

TEST_F(StateTest, ShowsANominationThatIsNotWrittenYet) {
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "Pod" && ref.subresource == "status";
  };
  StartWaiting(2);
  EXPECT_EQ(Pod("p").place, Place::kBinding);
  cluster_.SetDeviceCondition("c", kFailed, "True");
  const api::ObjectPtr pod = Named(Cluster().pods, "p");
  EXPECT_EQ(pod->root()["status"]["nominatedNodeName"].str(), "n1");
  EXPECT_EQ(pod->root()["spec"]["nodeName"].str(), "");
  const PodState state = Pod("p");
  EXPECT_EQ(state.place, Place::kBackoff);
  EXPECT_EQ(state.node, "");
  EXPECT_EQ(state.nominated_node, "n1");
  EXPECT_EQ(state.failed_devices, 1u);
  EXPECT_EQ(state.attempts, 1);
}

TEST_F(StateTest, APodThatWaitsForDevicesHasADeadlinePerClaim) {
  StartWaiting(2, {"a", "b"});
  cluster_.loop().Advance(minutes(1));
  const PodState state = Pod("p");
  EXPECT_EQ(state.place, Place::kBinding);
  EXPECT_EQ(state.failed_devices, 0u);
  ASSERT_EQ(state.deadlines.size(), 2u);
  for (const char* claim : {"default/a", "default/b"}) {
    EXPECT_LE(state.deadlines.at(claim), minutes(9)) << claim;
    EXPECT_GT(state.deadlines.at(claim), minutes(9) - seconds(1)) << claim;
  }
  cluster_.CreatePod("q");
  EXPECT_THAT(Pod("q").deadlines, IsEmpty());
}

TEST_F(StateTest, ARejectedPodNamesThePluginsThatRejectedIt) {
  cluster_.CreateNode("n2", R"({"disk":"tape"})", R"({"unschedulable":true})");
  cluster_.StartScheduler();
  cluster_.CreatePod("homeless", R"(,"nodeSelector":{"disk":"tape"})");
  cluster_.Settle();
  cluster_.loop().Advance(seconds(5));
  PodState state = Pod("homeless");
  EXPECT_EQ(state.place, Place::kUnschedulable);
  EXPECT_THAT(state.rejected_by, ElementsAre("NodeUnschedulable", "NodeAffinity"));
  EXPECT_EQ(state.attempts, 1);
  EXPECT_GE(state.queued_for, seconds(5));
  EXPECT_LT(state.queued_for, seconds(6));
  EXPECT_EQ(state.retry_in, Duration::zero());
  cluster_.CreatePod("gated", R"(,"schedulingGates":[{"name":"x/y"}])");
  cluster_.Settle();
  state = Pod("gated");
  EXPECT_EQ(state.place, Place::kGated);
  EXPECT_THAT(state.rejected_by, ElementsAre("SchedulingGates"));
  EXPECT_EQ(state.attempts, 0);
}

TEST_F(StateTest, APodInBackoffSaysWhenItIsTriedAgain) {
  client_.loses = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.subresource == "binding";
  };
  cluster_.StartScheduler();
  cluster_.CreatePod("p");
  cluster_.Settle();
  const PodState first = Pod("p");
  EXPECT_EQ(first.place, Place::kBackoff);
  EXPECT_GT(first.retry_in, milliseconds(900));
  EXPECT_LE(first.retry_in, seconds(1));
  EXPECT_THAT(first.rejected_by, IsEmpty());
  cluster_.loop().Advance(milliseconds(300));
  EXPECT_EQ(Pod("p").retry_in, first.retry_in - milliseconds(300));
  EXPECT_EQ(Pod("p").attempts, 1);
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(Pod("p").attempts, 2);
}

TEST_F(StateTest, APodThatIsNextIsReady) {
  cluster_.StartScheduler();
  cluster_.scheduler().Stop();
  cluster_.CreatePod("next");
  cluster_.Settle();
  const PodState state = Pod("next");
  EXPECT_EQ(state.place, Place::kReady);
  EXPECT_EQ(state.attempts, 0);
}

TEST_F(StateTest, APodWhoseClaimIsBeingReleasedIsBeingTried) {
  StartWaiting(1);
  cluster_.KillScheduler();
  cluster_.loop().Advance(minutes(11));
  std::vector<Place> seen;
  client_.holds = [&](std::string_view verb, const client::ResourceRef& ref,
                      const api::TreePtr& body) {
    if (IsClaimWrite(verb, ref, body) && seen.empty()) seen = {Pod("p").place};
    return false;
  };
  cluster_.StartScheduler();
  EXPECT_THAT(seen, ElementsAre(Place::kReady));
}

TEST_F(StateTest, PodsThatAreNotQueuedAreUnknown) {
  cluster_.StartScheduler();
  cluster_.CreatePod("bound");
  cluster_.CreatePod("foreign", R"(,"schedulerName":"another")");
  cluster_.Settle();
  for (const char* name : {"bound", "foreign", "never-seen"}) {
    const PodState state = Pod(name);
    EXPECT_EQ(state.place, Place::kUnknown) << name;
    EXPECT_EQ(state.attempts, 0) << name;
  }
}

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

TEST(WithPending, AddsTheAllocationAndThePodIfItIsKnown) {
  TestContext world;
  const api::ObjectPtr object = Parse(R"({"metadata":{"namespace":"d","name":"c","uid":"c",
      "resourceVersion":"1"},"spec":{"devices":{"requests":[{"name":"r","exactly":{
      "deviceClassName":"x","allocationMode":"ExactCount","count":1}}]}}})");
  world.claims.Observe(object);
  EXPECT_EQ(WithPending(*world.claims.Find("d/c"), "p"), object) << "nothing is pending";
  auto allocation = std::make_shared<device::AllocationResult>();
  allocation->results.emplace_back().id = {"d.example.com", "pool", "dev"};
  ASSERT_TRUE(world.claims.SetPending("d/c", allocation, "pod-uid"));
  const api::Value known = WithPending(*world.claims.Find("d/c"), "p")->root()["status"];
  EXPECT_EQ(known["allocation"]["devices"]["results"].at(0)["device"].str(), "dev");
  EXPECT_EQ(known["reservedFor"].at(0)["uid"].str(), "pod-uid");
  EXPECT_FALSE(
      WithPending(*world.claims.Find("d/c"), "")->root()["status"]["reservedFor"].exists());
}

TEST(WithPlacement, ChangesOnlyPodsWhosePlaceIsNotWritten) {
  TestContext world;
  const auto pod = [](std::string node, std::string nominated) {
    return Parse(
        StrCat(R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{"nodeName":")", node,
               R"("},"status":{"nominatedNodeName":")", nominated, "\"}}"));
  };
  const auto shown = [&](const api::ObjectPtr& object) {
    const api::ObjectPtr with = WithPlacement(object, world.placements);
    return StrCat(with == object ? "same " : "changed ", with->root()["spec"]["nodeName"].str(),
                  "|", with->root()["status"]["nominatedNodeName"].str());
  };
  const api::ObjectPtr free = pod("", "");
  EXPECT_EQ(shown(free), "same |");
  EXPECT_EQ(shown(pod("", "n")), "changed |") << "a nomination that was taken back";
  world.placements.Nominate(MakePodInfo(free), "n");
  EXPECT_EQ(shown(free), "changed |n");
  EXPECT_EQ(shown(pod("", "n")), "same |n");
  world.placements.Assume(MakePodInfo(free), "m");
  EXPECT_EQ(shown(free), "changed m|n");
  EXPECT_EQ(shown(pod("", "n")), "changed m|n");
  EXPECT_EQ(shown(pod("bound", "x")), "same bound|x") << "what is written counts";
}

}  // namespace
}  // namespace drakkar::scheduler
