#include "controllers/deployment/controller.h"

#include <algorithm>

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class DeploymentTest : public ControllersFixture {
 protected:
  static std::string Deployment(int replicas, std::string_view image = "i:1",
                                std::string_view more = "") {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},)",
                  R"("spec":{"replicas":)", replicas, more,
                  R"(,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":)",
                  R"({"app":"web"}},"spec":{"containers":[{"name":"c","image":")", image,
                  R"("}]}}}})");
  }
  void SetImage(std::string_view image) {
    ChangeDeployment([&](api::Draft& object) {
      object["spec"]["template"]["spec"]["containers"].at(0)["image"] = image;
    });
  }
  void Scale(int replicas) {
    ChangeDeployment([&](api::Draft& object) { object["spec"]["replicas"] = replicas; });
  }
  void ChangeDeployment(const std::function<void(api::Draft&)>& change) {
    Change("Deployment", "default/web", "", change);
  }
  api::Value Status() {
    kept_ = server_.Get("Deployment", "default/web");
    return (*kept_)["status"];
  }
  std::string Condition(std::string_view type) {
    for (api::Value each : Status()["conditions"].elements()) {
      if (each["type"].str() == type) {
        return StrCat(each["status"].str(), " ", each["reason"].str());
      }
    }
    return "";
  }
  std::vector<api::ObjectPtr> Sets() { return All("apps", "replicasets"); }
  // The ReplicaSet that runs an image.
  api::ObjectPtr SetOf(std::string_view image) {
    for (const api::ObjectPtr& set : Sets()) {
      if ((*set)["spec"]["template"]["spec"]["containers"].at(0)["image"].str() == image)
        return set;
    }
    return nullptr;
  }
  std::int64_t SizeOf(std::string_view image) {
    const api::ObjectPtr set = SetOf(image);
    return set == nullptr ? -1 : (*set)["spec"]["replicas"].integer();
  }
  std::vector<api::ObjectPtr> PodsOfImage(std::string_view image) {
    std::vector<api::ObjectPtr> list;
    for (const api::ObjectPtr& pod : Pods()) {
      if ((*pod)["spec"]["containers"].at(0)["image"].str() == image) list.push_back(pod);
    }
    return list;
  }
  std::size_t ReadyPods() {
    const std::vector<api::ObjectPtr> pods = Pods();
    return static_cast<std::size_t>(std::ranges::count_if(pods, [](const api::ObjectPtr& pod) {
      return (*pod)["status"]["conditions"].at(0)["status"].str() == "True";
    }));
  }

  api::ObjectPtr kept_;
};

TEST_F(DeploymentTest, ItsPodsAreMadeThroughAReplicaSet) {
  Create(Deployment(3));
  ASSERT_EQ(Sets().size(), 1u);
  const api::Object& set = *Sets()[0];
  const std::string hash(set["metadata"]["labels"].Entry("pod-template-hash").str());
  EXPECT_EQ(set.name(), StrCat("web-", hash));
  EXPECT_EQ(set["spec"]["selector"]["matchLabels"].Entry("pod-template-hash").str(), hash);
  EXPECT_EQ(set["metadata"]["annotations"].Entry("deployment.kubernetes.io/revision").str(), "1");
  EXPECT_EQ(set["metadata"]["annotations"].Entry("deployment.kubernetes.io/desired-replicas").str(),
            "3");
  EXPECT_EQ(set["metadata"]["annotations"].Entry("deployment.kubernetes.io/max-replicas").str(),
            "4");
  ASSERT_EQ(Pods().size(), 3u);
  EXPECT_EQ((*Pods()[0])["metadata"]["labels"].Entry("pod-template-hash").str(), hash);
  EXPECT_EQ(Condition("Progressing"), "True ReplicaSetUpdated");
  EXPECT_EQ(Condition("Available"), "False MinimumReplicasUnavailable");
  EXPECT_EQ(Status()["unavailableReplicas"].integer(), 3);
  MakeAllReady();
  EXPECT_EQ(Status()["replicas"].integer(), 3);
  EXPECT_EQ(Status()["updatedReplicas"].integer(), 3);
  EXPECT_EQ(Status()["availableReplicas"].integer(), 3);
  EXPECT_EQ(Status()["observedGeneration"].integer(), 1);
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
  EXPECT_EQ(Condition("Available"), "True MinimumReplicasAvailable");
  EXPECT_EQ((*kept_)["metadata"]["annotations"].Entry("deployment.kubernetes.io/revision").str(),
            "1");
  EXPECT_EQ(Events("ScalingReplicaSet"),
            std::vector<std::string>{StrCat("Scaled up replica set web-", hash, " from 0 to 3")});
}

TEST_F(DeploymentTest, ARollingUpdateStaysWithinItsBounds) {
  Create(
      Deployment(4, "i:1", R"(,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}})"));
  MakeAllReady();
  SetImage("i:2");
  EXPECT_EQ(SizeOf("i:2"), 2) << "one beyond the number, and one that was taken away";
  EXPECT_EQ(SizeOf("i:1"), 3);
  for (int step = 0; step < 20 && SizeOf("i:1") > 0; ++step) {
    EXPECT_GE(ReadyPods(), 3u);
    EXPECT_LE(Pods().size(), 5u);
    for (const api::ObjectPtr& pod : PodsOfImage("i:2")) {
      if ((*pod)["status"]["phase"].str() != "Running") {
        SetPod(pod, "Running", true);
        break;
      }
    }
  }
  MakeReady(PodsOfImage("i:2"));
  EXPECT_EQ(SizeOf("i:1"), 0);
  EXPECT_EQ(SizeOf("i:2"), 4);
  EXPECT_EQ(PodsOfImage("i:2").size(), 4u);
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
  EXPECT_EQ((*kept_)["metadata"]["annotations"].Entry("deployment.kubernetes.io/revision").str(),
            "2");
}

TEST_F(DeploymentTest, RollingBackUsesTheSetThatIsThere) {
  Create(Deployment(1));
  MakeAllReady();
  SetImage("i:2");
  MakeAllReady();
  MakeAllReady();
  SetImage("i:1");
  MakeAllReady();
  MakeAllReady();
  ASSERT_EQ(Sets().size(), 2u);
  const api::ObjectPtr first = SetOf("i:1");
  EXPECT_EQ(SizeOf("i:1"), 1);
  EXPECT_EQ(SizeOf("i:2"), 0);
  const api::Value notes = (*first)["metadata"]["annotations"];
  EXPECT_EQ(notes.Entry("deployment.kubernetes.io/revision").str(), "3");
  EXPECT_EQ(notes.Entry("deployment.kubernetes.io/revision-history").str(), "1");
}

TEST_F(DeploymentTest, RecreateStopsEverythingFirst) {
  Create(Deployment(2, "i:1", R"(,"strategy":{"type":"Recreate"})"));
  MakeAllReady();
  for (const api::ObjectPtr& pod : Pods()) {
    Change("Pod", pod->qualified_name(), "",
           [](api::Draft& draft) { draft["metadata"]["finalizers"].Append("x/y"); });
  }
  SetImage("i:2");
  EXPECT_EQ(SizeOf("i:1"), 0);
  EXPECT_EQ(SizeOf("i:2"), -1) << "while old pods are there no new set is made";
  for (const api::ObjectPtr& pod : Pods()) {
    Change("Pod", pod->qualified_name(), "",
           [](api::Draft& draft) { draft["metadata"].Remove("finalizers"); });
  }
  EXPECT_EQ(SizeOf("i:2"), 2);
  EXPECT_EQ(PodsOfImage("i:2").size(), 2u);
  EXPECT_EQ(PodsOfImage("i:1").size(), 0u);
}

TEST_F(DeploymentTest, ScalingDuringARolloutIsSharedByBothSets) {
  Create(
      Deployment(10, "i:1", R"(,"strategy":{"rollingUpdate":{"maxSurge":5,"maxUnavailable":0}})"));
  MakeAllReady();
  SetImage("i:2");
  EXPECT_EQ(SizeOf("i:1"), 10);
  EXPECT_EQ(SizeOf("i:2"), 5);
  Scale(20);
  EXPECT_EQ(SizeOf("i:1") + SizeOf("i:2"), 25);
  EXPECT_EQ(SizeOf("i:1"), 17) << "two thirds of twenty-five, rounded";
  EXPECT_EQ(SizeOf("i:2"), 8);
}

TEST_F(DeploymentTest, APausedDeploymentRollsNothingOutButScales) {
  Create(Deployment(2));
  MakeAllReady();
  ChangeDeployment([](api::Draft& object) { object["spec"]["paused"] = true; });
  EXPECT_EQ(Condition("Progressing"), "Unknown DeploymentPaused");
  SetImage("i:2");
  EXPECT_EQ(SizeOf("i:2"), -1);
  Scale(5);
  EXPECT_EQ(SizeOf("i:1"), 5);
  ChangeDeployment([](api::Draft& object) { object["spec"].Remove("paused"); });
  EXPECT_GT(SizeOf("i:2"), 0);
}

TEST_F(DeploymentTest, ARolloutThatDoesNotGetOnTimesOut) {
  Create(Deployment(1, "i:1", R"(,"progressDeadlineSeconds":60)"));
  Settle(std::chrono::seconds(50));
  EXPECT_EQ(Condition("Progressing"), "True ReplicaSetUpdated");
  Settle(std::chrono::seconds(15));
  EXPECT_EQ(Condition("Progressing"), "False ProgressDeadlineExceeded");
  MakeAllReady();
  EXPECT_EQ(Condition("Progressing"), "True NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, HistoryKeepsAsManySetsAsItIsTold) {
  Create(Deployment(1, "i:1", R"(,"revisionHistoryLimit":2)"));
  MakeAllReady();
  for (int version = 2; version <= 6; ++version) {
    SetImage(StrCat("i:", version));
    MakeAllReady();
    MakeAllReady();
  }
  EXPECT_EQ(Sets().size(), 3u) << "the new one and two old ones";
  EXPECT_EQ(SetOf("i:3"), nullptr);
  EXPECT_NE(SetOf("i:4"), nullptr);
}

TEST_F(DeploymentTest, ATakenNameRaisesTheCollisionCount) {
  Create(Deployment(1));
  const std::string name(Sets()[0]->name());
  server_.Delete("Deployment", "default/web");
  Settle(std::chrono::seconds(2));
  ASSERT_TRUE(Sets().empty());
  // Another ReplicaSet that happens to have the same name.
  Create(StrCat(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":")", name,
                R"("},"spec":{"replicas":0,"selector":{"matchLabels":{"x":"y"}},"template":)"
                R"({"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":)"
                R"("other"}]}}}})"));
  Create(Deployment(1));
  EXPECT_EQ(Status()["collisionCount"].integer(), 1);
  ASSERT_NE(SetOf("i:1"), nullptr);
  EXPECT_NE(SetOf("i:1")->name(), name);
  EXPECT_EQ(PodsOfImage("i:1").size(), 1u);
}

TEST_F(DeploymentTest, AnnotationsAreCopiedToTheNewSet) {
  Create(Deployment(1));
  ChangeDeployment([](api::Draft& object) {
    object["metadata"]["annotations"].Entry("kubernetes.io/why") = "because";
  });
  EXPECT_EQ((*Sets()[0])["metadata"]["annotations"].Entry("kubernetes.io/why").str(), "because");
  EXPECT_EQ(Status()["observedGeneration"].integer(), 2);
}

TEST_F(DeploymentTest, DeletingItDeletesSetsAndPods) {
  Create(Deployment(3));
  server_.Delete("Deployment", "default/web");
  Settle(std::chrono::seconds(3));
  EXPECT_TRUE(Sets().empty());
  EXPECT_TRUE(Pods().empty());
}

TEST_F(DeploymentTest, ForegroundDeletionWaitsForThem) {
  Create(Deployment(2));
  server_.Delete("Deployment", "default/web", {.propagation_policy = "Foreground"});
  Settle(std::chrono::seconds(5));
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(Sets().empty());
  EXPECT_EQ(server_.Get("Deployment", "default/web"), nullptr);
}

TEST_F(DeploymentTest, WithoutItsControllerNothingHappens) {
  Start(*Selection::Parse(std::vector<std::string>{"*", "-deployment-controller"}));
  Create(Deployment(1));
  EXPECT_TRUE(Sets().empty());
  Start();
  EXPECT_EQ(Pods().size(), 1u);
}

}  // namespace
}  // namespace drakkar::controllers
