#include "controllers/replica_set/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class ReplicaSetTest : public ControllersFixture {
 protected:
  static std::string Set(std::string_view name, int replicas, std::string_view more = "") {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":")", name,
                  R"("},"spec":{"replicas":)", replicas, more,
                  R"(,"selector":{"matchLabels":{"app":")", name,
                  R"("}},"template":{"metadata":{"labels":{"app":")", name,
                  R"("}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}})");
  }
  static std::string Pod(std::string_view name, std::string_view app) {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"(","labels":{"app":")", app,
                  R"("}},"spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  }
  void Scale(std::string_view name, int replicas) {
    Change("ReplicaSet", StrCat("default/", name), "",
           [&](api::Draft& set) { set["spec"]["replicas"] = replicas; });
  }
  api::Value Status(std::string_view name) {
    kept_ = server_.Get("ReplicaSet", StrCat("default/", name));
    return (*kept_)["status"];
  }

  api::ObjectPtr kept_;
};

TEST_F(ReplicaSetTest, AsManyPodsAreMadeAsItAsksFor) {
  Create(Set("web", 3));
  const std::vector<api::ObjectPtr> pods = Pods();
  ASSERT_EQ(pods.size(), 3u);
  for (const api::ObjectPtr& pod : pods) {
    EXPECT_TRUE(pod->name().starts_with("web-")) << pod->name();
    EXPECT_EQ((*pod)["metadata"]["labels"].Entry("app").str(), "web");
    const api::Value owner = (*pod)["metadata"]["ownerReferences"].at(0);
    EXPECT_EQ(owner["kind"].str(), "ReplicaSet");
    EXPECT_EQ(owner["apiVersion"].str(), "apps/v1");
    EXPECT_TRUE(owner["controller"].boolean());
    EXPECT_TRUE(owner["blockOwnerDeletion"].boolean());
  }
  EXPECT_EQ(Status("web")["replicas"].integer(), 3);
  EXPECT_EQ(Status("web")["fullyLabeledReplicas"].integer(), 3);
  EXPECT_EQ(Status("web")["observedGeneration"].integer(), 1);
  EXPECT_EQ(Status("web")["readyReplicas"].integer(), 0);
  EXPECT_EQ(Events("SuccessfulCreate").size(), 3u);
}

TEST_F(ReplicaSetTest, APodThatGoesIsReplaced) {
  Create(Set("web", 2));
  const api::ObjectPtr gone = Pods()[0];
  server_.Delete("Pod", gone->qualified_name());
  Settle();
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(server_.Get("Pod", gone->qualified_name()), nullptr);
  SetPod(Pods()[0], "Failed", false);
  std::size_t active = 0;
  for (const api::ObjectPtr& pod : Pods()) active += (*pod)["status"]["phase"].str() != "Failed";
  EXPECT_EQ(active, 2u) << "one that failed does not count";
  EXPECT_EQ(Status("web")["replicas"].integer(), 2);
}

TEST_F(ReplicaSetTest, ReadyAndAvailableAreCounted) {
  Create(Set("web", 2, R"(,"minReadySeconds":30)"));
  MakeAllReady();
  EXPECT_EQ(Status("web")["readyReplicas"].integer(), 2);
  EXPECT_EQ(Status("web")["availableReplicas"].integer(), 0);
  Settle(std::chrono::seconds(32));
  EXPECT_EQ(Status("web")["availableReplicas"].integer(), 2) << "by a timer, without an event";
}

TEST_F(ReplicaSetTest, ScalingDownTakesWhatIsNotReadyFirst) {
  Create(Set("web", 4));
  const std::vector<api::ObjectPtr> pods = Pods();
  MakeReady({pods[1], pods[3]});
  Scale("web", 2);
  ASSERT_EQ(Pods().size(), 2u);
  EXPECT_EQ(Pods()[0]->name(), pods[1]->name());
  EXPECT_EQ(Pods()[1]->name(), pods[3]->name());
  EXPECT_EQ(Events("SuccessfulDelete").size(), 2u);
  Scale("web", 0);
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Status("web")["replicas"].integer(), 0);
}

TEST_F(ReplicaSetTest, ACopyThatIsBehindMakesNothingTwice) {
  faulty_.hides = [](const client::WatchEvent& event) { return event.object->kind() == "Pod"; };
  Start();
  Create(Set("web", 5));
  EXPECT_EQ(Pods().size(), 5u);
  // Another change makes the controller process the set again.
  Scale("web", 6);
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Pods().size(), 5u) << "the first five are not in its copy yet";
  faulty_.hides = nullptr;
  Start();
  EXPECT_EQ(Pods().size(), 6u);
}

TEST_F(ReplicaSetTest, ARestartedControllerMakesNothingTwice) {
  Create(Set("web", 3));
  for (int i = 0; i < 3; ++i) Start();
  EXPECT_EQ(Pods().size(), 3u);
}

TEST_F(ReplicaSetTest, ManyPodsAreMade) {
  Create(Set("web", 700));
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Pods().size(), 700u) << "more than one burst";
}

TEST_F(ReplicaSetTest, APodThatNobodyControlsIsAdoptedAndOneThatIsNoLongerSelectedReleased) {
  server_.Create(Pod("bare", "web"));
  server_.Create(Pod("other", "else"));
  Create(Set("web", 2));
  const auto owner_of = [&](const std::string& pod) {
    return std::string(
        (*server_.Get("Pod", pod))["metadata"]["ownerReferences"].at(0)["name"].str());
  };
  EXPECT_EQ(owner_of("default/bare"), "web");
  EXPECT_EQ(owner_of("default/other"), "");
  EXPECT_EQ(PodsOf("web").size(), 2u) << "the adopted one counts";
  Change("Pod", "default/bare", "",
         [](api::Draft& pod) { pod["metadata"]["labels"].Entry("app") = "debugging"; });
  EXPECT_EQ(owner_of("default/bare"), "");
  EXPECT_EQ(PodsOf("web").size(), 2u) << "and is replaced";
}

TEST_F(ReplicaSetTest, RefusedPodsShowInTheStatusAndAreTriedAgain) {
  int refused = 0;
  bool refuse = true;
  faulty_.loses = [&](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    const bool pod = verb == "create" && ref.kind->kind == "Pod";
    refused += pod && refuse;
    return pod && refuse;
  };
  Create(Set("web", 8));
  EXPECT_TRUE(Pods().empty());
  EXPECT_LT(refused, 20) << "one at a time while they are refused";
  const api::Value condition = Status("web")["conditions"].at(0);
  EXPECT_EQ(condition["type"].str(), "ReplicaFailure");
  EXPECT_EQ(condition["status"].str(), "True");
  EXPECT_EQ(condition["reason"].str(), "FailedCreate");
  refuse = false;
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Pods().size(), 8u);
  EXPECT_TRUE(Status("web")["conditions"].empty());
  EXPECT_FALSE(Events("FailedCreate").empty());
}

TEST_F(ReplicaSetTest, ASetThatIsBeingDeletedMakesNothing) {
  std::string set = Set("web", 3);
  set.replace(set.find(R"("name":"web")"), 12, R"("name":"web","finalizers":["x/y"])");
  Create(set);
  server_.Delete("ReplicaSet", "default/web", {.propagation_policy = "Orphan"});
  Settle();
  server_.Delete("Pod", Pods()[0]->qualified_name());
  Settle();
  EXPECT_EQ(Pods().size(), 2u);
}

TEST_F(ReplicaSetTest, DeletingTheSetDeletesItsPods) {
  Create(Set("web", 3));
  server_.Delete("ReplicaSet", "default/web");
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(Pods().empty());
}

}  // namespace
}  // namespace drakkar::controllers
