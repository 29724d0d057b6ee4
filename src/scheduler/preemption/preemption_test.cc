// Preemption from the refused pod to its binding, over an API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kHigh = 1000;

class PreemptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.CreateNode("n1");  // 4 CPUs
    cluster_.StartScheduler();
  }
  void CreatePod(std::string name, int cpu, int priority = 0, std::string_view policy = "") {
    cluster_.Create(
        "Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"priority":)", priority,
                      policy.empty() ? "" : StrCat(R"(,"preemptionPolicy":")", policy, "\""),
                      R"(,"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":")",
                      cpu, R"("}}}]}})"));
    cluster_.Settle();
  }
  bool IsBeingDeleted(std::string pod) {
    const api::ObjectPtr found = cluster_.Find("Pod", std::move(pod));
    return found != nullptr && found->is_being_deleted();
  }

  TestCluster cluster_;
};

TEST_F(PreemptionTest, APodOfLowerPriorityMakesRoom) {
  CreatePod("low", 4);
  EXPECT_EQ(cluster_.NodeOf("low"), "n1");
  CreatePod("wanted", 4, kHigh);
  ASSERT_TRUE(IsBeingDeleted("low"));
  const api::ObjectPtr victim = cluster_.Find("Pod", "low");
  bool told = false;
  for (const api::Value condition : (*victim)["status"]["conditions"].elements()) {
    if (condition["type"].str() != "DisruptionTarget") continue;
    told = true;
    EXPECT_EQ(condition["status"].str(), "True");
    EXPECT_EQ(condition["reason"].str(), "PreemptionByScheduler");
    EXPECT_EQ(condition["message"].str(),
              "default-scheduler: preempting to accommodate a higher priority pod");
  }
  EXPECT_TRUE(told);
  EXPECT_THAT(cluster_.Events("low", "Preempted"), ElementsAre(HasSubstr("Preempted by pod ")));
  EXPECT_EQ((*cluster_.Find("Pod", "wanted"))["status"]["nominatedNodeName"].str(), "n1");
  EXPECT_THAT(cluster_.Events("wanted", "FailedScheduling"),
              Contains(HasSubstr("preemption: evicting 1 pod of lower priority from node n1")));
  EXPECT_EQ(cluster_.NodeOf("wanted"), "") << "the victim still runs";
  cluster_.Delete("Pod", "low");  // as the node does once the containers have ended
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("wanted"), "n1");
}

TEST_F(PreemptionTest, NobodyElseTakesTheRoomThatWasMade) {
  CreatePod("low", 4);
  CreatePod("wanted", 4, kHigh);
  CreatePod("thief", 4);
  cluster_.Delete("Pod", "low");
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("wanted"), "n1");
  EXPECT_EQ(cluster_.NodeOf("thief"), "");
}

TEST_F(PreemptionTest, NoFurtherVictimsWhileTheFirstOnesEnd) {
  CreatePod("a", 2);
  CreatePod("b", 2);
  CreatePod("wanted", 2, kHigh);
  const bool a = IsBeingDeleted("a");
  EXPECT_NE(a, IsBeingDeleted("b"));
  cluster_.CreateNode("n2", "{}", R"({"unschedulable":true})");  // a reason to try again
  cluster_.LetPauseEnd();
  EXPECT_NE(IsBeingDeleted("a"), IsBeingDeleted("b"));
}

TEST_F(PreemptionTest, APolitePodAndOneOfTheSamePriorityWait) {
  CreatePod("low", 4);
  CreatePod("polite", 4, kHigh, "Never");
  CreatePod("same", 4);
  EXPECT_FALSE(IsBeingDeleted("low"));
  EXPECT_THAT(cluster_.Events("low", "Preempted"), IsEmpty());
}

TEST_F(PreemptionTest, NobodyIsEvictedWhereThatWouldNotHelp) {
  CreatePod("low", 1);
  CreatePod("wanted", 5, kHigh);
  EXPECT_FALSE(IsBeingDeleted("low"));
}

TEST_F(PreemptionTest, AProtectedPodIsSparedIfAnotherOneWillDo) {
  cluster_.Create("PodDisruptionBudget", R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,
      "selector":{"matchLabels":{"app":"web"}}}})");
  cluster_.CreateNode("n2");
  cluster_.Create("Pod", R"({"metadata":{"name":"guarded","labels":{"app":"web"}},"spec":{
      "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"4"}}}]}})");
  cluster_.Settle();
  CreatePod("other", 4);
  CreatePod("wanted", 4, kHigh);
  EXPECT_FALSE(IsBeingDeleted("guarded"));
  EXPECT_TRUE(IsBeingDeleted("other"));
}

}  // namespace
}  // namespace drakkar::scheduler
