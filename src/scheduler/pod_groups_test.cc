// Claims that the pods of a PodGroup share (gate DRAWorkloadResourceClaims).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FeatureGates Gates() {
  return TestCluster::ServerGates()
      .With(Gate::kGenericWorkload, true)
      .With(Gate::kDRAWorkloadResourceClaims, true);
}

class PodGroupsTest : public ::testing::Test {
 protected:
  PodGroupsTest() {
    cluster_.RestartServer(Gates());
    cluster_.CreateClass();
    cluster_.CreateNode("n1");
    cluster_.CreateSlice("n1", 2);
  }
  ~PodGroupsTest() override { cluster_.KillScheduler(); }

  // A group that shares the claim "shared".
  void CreateGroup(std::string policy = R"("basic":{})", std::string more = "") {
    cluster_.Create("PodGroup", StrCat(R"({"metadata":{"name":"g"},"spec":{"schedulingPolicy":{)",
                                       policy, R"(},"resourceClaims":[{"name":"use-shared",)",
                                       R"("resourceClaimName":"shared"}])", more, "}}"));
    cluster_.Settle();
  }
  void CreateMember(std::string name, std::vector<std::string> claims = {"shared"}) {
    cluster_.CreatePodWithClaims(std::move(name), std::move(claims),
                                 R"(,"schedulingGroup":{"podGroupName":"g"})");
    cluster_.Settle();
  }

  TestCluster cluster_{Gates()};
};

TEST_F(PodGroupsTest, TheSharedClaimIsReservedForTheGroupAndOthersForThePods) {
  cluster_.CreateClaim("shared");
  cluster_.CreateClaim("own");
  cluster_.StartScheduler();
  CreateGroup();
  CreateMember("a", {"shared", "own"});
  CreateMember("b", {"shared", "own"});
  EXPECT_EQ(cluster_.NodeOf("a"), "n1");
  EXPECT_EQ(cluster_.NodeOf("b"), "n1");
  EXPECT_THAT(cluster_.ReservedFor("shared"), ElementsAre("g"));
  EXPECT_THAT(cluster_.ReservedFor("own"), ElementsAre("a", "b"));
  const api::ObjectPtr claim = cluster_.Find("ResourceClaim", "shared");
  EXPECT_TRUE(claims::IsReservedForGroup(claim->root(), "g"));
  EXPECT_TRUE(claims::IsReservedFor(claim->root(), cluster_.Find("PodGroup", "g")->uid()));
}

TEST_F(PodGroupsTest, WithoutTheGateOfTheirClaimsPodsReserveThemForThemselves) {
  cluster_.SetGates(TestCluster::ServerGates().With(Gate::kGenericWorkload, true));
  cluster_.CreateClaim("shared");
  cluster_.StartScheduler();
  CreateGroup();
  CreateMember("a");
  EXPECT_EQ(cluster_.NodeOf("a"), "n1");
  EXPECT_THAT(cluster_.ReservedFor("shared"), ElementsAre("a"));
}

TEST_F(PodGroupsTest, APodWaitsForItsGroup) {
  cluster_.CreateClaim("shared");
  cluster_.StartScheduler();
  CreateMember("a");
  EXPECT_THAT(cluster_.ConditionMessage("a"),
              HasSubstr("waiting for PodGroup default/g to be created"));
  CreateGroup();
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("a"), "n1");
}

TEST_F(PodGroupsTest, GangsAndTopologiesAreNotSupported) {
  cluster_.CreateClaim("shared");
  cluster_.StartScheduler();
  CreateGroup(R"("gang":{"minCount":2})");
  CreateMember("a");
  EXPECT_THAT(cluster_.ConditionMessage("a"),
              HasSubstr("spec.schedulingPolicy.gang of PodGroup default/g is not supported"));
  cluster_.KillScheduler();
  cluster_.SetGates(TestCluster::ServerGates());
  cluster_.StartScheduler();
  cluster_.LetPauseEnd();
  EXPECT_THAT(cluster_.ConditionMessage("a"), HasSubstr("spec.schedulingGroup is not supported"));
}

TEST_F(PodGroupsTest, AClaimMadeForTheGroupIsAccepted) {
  cluster_.StartScheduler();
  cluster_.Create("PodGroup", R"({"metadata":{"name":"g"},"spec":{"schedulingPolicy":{"basic":{}},
      "resourceClaims":[{"name":"r","resourceClaimTemplateName":"t"}]}})");
  const std::string uid(cluster_.Find("PodGroup", "g")->uid());
  const auto create = [&](std::string_view name, std::string_view owner) {
    cluster_.Create(
        "ResourceClaim",
        StrCat(R"({"metadata":{"name":")", name, R"(","ownerReferences":[{)",
               R"("apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup","controller":true,)",
               R"("name":")", owner, R"(","uid":")", uid, R"("}]},"spec":{"devices":{"requests":[)",
               R"({"name":"r","exactly":{"deviceClassName":"gpu"}}]}}})"));
  };
  create("made", "g");
  create("foreign", "h");
  for (const auto& [pod, claim] : {std::pair("a", "made"), std::pair("b", "foreign")}) {
    cluster_.CreatePod(pod, R"(,"schedulingGroup":{"podGroupName":"g"},"resourceClaims":[
        {"name":"r","resourceClaimTemplateName":"t"}])");
    cluster_.Update("Pod", pod, "status", [&](api::Draft& draft) {
      draft["status"]["resourceClaimStatuses"].Append(
          {{"name", "r"}, {"resourceClaimName", std::string(claim)}});
    });
  }
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("a"), "n1");
  EXPECT_THAT(cluster_.ReservedFor("made"), ElementsAre("g"));
  EXPECT_EQ(cluster_.NodeOf("b"), "");
}

TEST_F(PodGroupsTest, DevicesThatFailToAttachAreReplacedAsLongAsNoPodOfTheGroupRuns) {
  cluster_.CreateNode("n2");
  cluster_.CreateSlice("n2", 2, kConditions);
  cluster_.CreateClaim("shared", 2);
  cluster_.Delete("ResourceSlice", "slice-n1");
  cluster_.StartScheduler();
  CreateGroup();
  CreateMember("a");
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  cluster_.SetDeviceCondition("shared", kFailed, "True");
  cluster_.loop().Advance(seconds(15));
  EXPECT_THAT(cluster_.Events("a", "FailedScheduling"), ::testing::Not(::testing::IsEmpty()));
  EXPECT_FALSE(cluster_.Find("ResourceClaim", "shared")->root()["status"]["devices"].has_value())
      << "it was released and allocated again";
  cluster_.SetDeviceCondition("shared", kAttached, "True");
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("a"), "n2");
  EXPECT_THAT(cluster_.ReservedFor("shared"), ElementsAre("g"));
}

}  // namespace
}  // namespace drakkar::scheduler
