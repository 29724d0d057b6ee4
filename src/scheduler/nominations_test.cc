// Resources kept for nominated pods, pods that compete for them, and resources that bound pods
// release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// A node has 4 cpu, so it fits only one such pod.
std::string Big(std::string more = "") {
  return StrCat(R"({"name":"c","image":"i","resources":{"requests":{"cpu":"3"}})", more, "}");
}

class Nominations : public ::testing::Test {
 protected:
  Nominations() {
    cluster_.CreateNode("n1");
    cluster_.StartScheduler();
  }

  void Create(std::string name, std::string spec = "", std::string container = Big()) {
    cluster_.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"containers":[)",
                                  container, "]", spec, "}}"));
    cluster_.Settle();
  }
  // Creates a nominated pod that stays out of the queue until Open.
  void CreateNominated(std::string name, std::string spec = "", std::string container = Big()) {
    Create(name, StrCat(R"(,"schedulingGates":[{"name":"x/y"}])", spec), container);
    SetNominated(name, "n1");
  }
  void SetNominated(std::string name, const char* node) {
    cluster_.Update("Pod", name, "status", [&](api::Draft& pod) {
      if (node == nullptr) {
        pod["status"].Remove("nominatedNodeName");
      } else {
        pod["status"]["nominatedNodeName"] = node;
      }
    });
  }
  void Open(std::string name) {
    cluster_.Update("Pod", name, "",
                    [](api::Draft& pod) { pod["spec"].Remove("schedulingGates"); });
  }

  TestCluster cluster_;
};

TEST_F(Nominations, TwoEqualPodsDoNotBlockEachOther) {
  CreateNominated("older");
  cluster_.loop().Advance(seconds(2));
  CreateNominated("younger");
  Open("younger");
  Open("older");
  cluster_.loop().Advance(seconds(5));
  EXPECT_EQ(cluster_.NodeOf("older"), "n1");
  EXPECT_EQ(cluster_.NodeOf("younger"), "");
}

TEST_F(Nominations, TwoEqualPodsDoNotBlockEachOthersHostPort) {
  const std::string port =
      R"({"name":"c","image":"i","ports":[{"containerPort":80,"hostPort":8080}]})";
  CreateNominated("older", "", port);
  cluster_.loop().Advance(seconds(2));
  CreateNominated("younger", "", port);
  Open("younger");
  Open("older");
  cluster_.loop().Advance(seconds(5));
  EXPECT_EQ(cluster_.NodeOf("older"), "n1");
  EXPECT_EQ(cluster_.NodeOf("younger"), "");
}

TEST_F(Nominations, TheEndOfANominatedPodWakesPodsThatNeedItsRoom) {
  CreateNominated("a");
  Create("b");
  EXPECT_THAT(cluster_.ConditionMessage("b"), HasSubstr("Insufficient cpu"));
  cluster_.Delete("Pod", "a");
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(cluster_.NodeOf("b"), "n1");
}

TEST_F(Nominations, ANominatedPodThatGoesElsewhereWakesPodsThatNeedItsRoom) {
  cluster_.CreateNode("n2", R"({"disk":"ssd"})");
  cluster_.Settle();
  CreateNominated("a", R"(,"nodeSelector":{"disk":"ssd"})");
  Create("hog", R"(,"nodeName":"n2")", R"({"name":"c","image":"i"})");
  Create("b", R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
      "nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}})");
  ASSERT_EQ(cluster_.NodeOf("b"), "");
  Open("a");
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(cluster_.NodeOf("a"), "n2");
  EXPECT_EQ(cluster_.NodeOf("b"), "n1");
}

TEST_F(Nominations, ARemovedNominationKeepsNoRoom) {
  CreateNominated("a");
  Create("b");
  ASSERT_EQ(cluster_.NodeOf("b"), "");
  SetNominated("a", nullptr);
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(cluster_.NodeOf("b"), "n1");
}

TEST_F(Nominations, AMovedNominationWakesPodsThatNeedTheFreedRoom) {
  CreateNominated("a");
  Create("b");
  ASSERT_EQ(cluster_.NodeOf("b"), "");
  SetNominated("a", "another");
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(cluster_.NodeOf("b"), "n1");
}

class Resizes : public Nominations {
 protected:
  // Reports the container's resources as the kubelet does.
  void Report(const char* cpu) {
    cluster_.Update("Pod", "f", "status", [&](api::Draft& pod) {
      api::Draft container{
          {"name", "c"}, {"image", "i"}, {"imageID", ""}, {"ready", true}, {"restartCount", 0}};
      container["allocatedResources"].Entry("cpu") = cpu;
      container["resources"]["requests"].Entry("cpu") = cpu;
      pod["status"]["containerStatuses"] = api::Draft::Array({std::move(container)});
    });
  }
  void Shrink() {
    cluster_.Update("Pod", "f", "resize", [](api::Draft& pod) {
      pod["spec"]["containers"].at(0)["resources"]["requests"].Entry("cpu") = "1";
    });
    cluster_.loop().Advance(seconds(2));
  }
};

TEST_F(Resizes, ABoundPodThatRequestsLessWakesPodsThatNeedItsRoom) {
  Create("f");
  Create("g");
  ASSERT_EQ(cluster_.NodeOf("f"), "n1");
  ASSERT_EQ(cluster_.NodeOf("g"), "");
  Shrink();
  EXPECT_EQ(cluster_.NodeOf("g"), "n1");
}

TEST_F(Resizes, TheRoomIsFreeOnlyAfterTheNodeHasAppliedTheResize) {
  Create("f");
  Report("3");
  Create("g");
  Shrink();
  EXPECT_EQ(cluster_.NodeOf("g"), "") << "the container still has what it had";
  Report("1");
  cluster_.loop().Advance(seconds(2));
  EXPECT_EQ(cluster_.NodeOf("g"), "n1");
}

}  // namespace
}  // namespace drakkar::scheduler
