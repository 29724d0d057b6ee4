#include "controllers/daemon_set/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class DaemonSetTest : public ControllersFixture {
 protected:
  // These nodes send no heartbeats.
  DaemonSetTest() { Start(WithoutNodeLifecycle()); }
  void Node(std::string_view name, std::string_view labels = "", std::string_view taints = "") {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name,
                  R"(","labels":{)", labels, R"(}},"spec":{"taints":[)", taints, "]}}"));
  }
  static std::string Set(std::string_view name, std::string_view pod_spec = "",
                         std::string_view spec = "") {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":")", name,
                  R"("},"spec":{)", spec, R"("selector":{"matchLabels":{"app":")", name,
                  R"("}},"template":{"metadata":{"labels":{"app":")", name, R"("}},"spec":{)",
                  pod_spec, R"("containers":[{"name":"c","image":"i:1"}]}}}})");
  }
  api::Value Status(std::string_view name) {
    kept_ = server_.Get("DaemonSet", StrCat("default/", name));
    return (*kept_)["status"];
  }
  void SetImage(std::string_view name, std::string_view image) {
    Change("DaemonSet", StrCat("default/", name), "", [&](api::Draft& set) {
      set["spec"]["template"]["spec"]["containers"].at(0)["image"] = image;
    });
  }
  static std::string_view ImageOf(const api::Object& pod) {
    return pod["spec"]["containers"].at(0)["image"].str();
  }
  // Does what the scheduler does: binds every pod to the node that it is for.
  void BindAll() {
    for (const api::ObjectPtr& pod : Pods()) {
      if (!pod->is_being_deleted() && (*pod)["spec"]["nodeName"].str().empty()) {
        Bind(pod, TargetNode(*pod));
      }
    }
  }
  // A pod that a node runs is deleted in two steps; this is the second.
  void FinishDeletions() {
    for (const api::ObjectPtr& pod : Pods()) {
      if (!pod->is_being_deleted()) continue;
      server_.Delete("Pod", pod->qualified_name(), {.grace_period_seconds = 0});
    }
    Settle();
  }
  std::vector<std::string> Images() {
    std::vector<std::string> images;
    for (const api::ObjectPtr& pod : Pods()) {
      if (!pod->is_being_deleted()) images.emplace_back(ImageOf(*pod));
    }
    std::ranges::sort(images);
    return images;
  }

  api::ObjectPtr kept_;
};

TEST_F(DaemonSetTest, EveryNodeGetsOnePodThatIsAimedAtIt) {
  Node("n1");
  Node("n2");
  Create(Set("agent"));
  std::set<std::string> targets;
  for (const api::ObjectPtr& pod : Pods()) {
    targets.emplace(TargetNode(*pod));
    EXPECT_TRUE((*pod)["spec"]["nodeName"].str().empty()) << "the scheduler binds it";
    const api::Value owner = (*pod)["metadata"]["ownerReferences"].at(0);
    EXPECT_EQ(owner["kind"].str(), "DaemonSet");
    EXPECT_TRUE(owner["controller"].boolean());
    EXPECT_FALSE((*pod)["metadata"]["labels"].Entry("controller-revision-hash").str().empty());
    EXPECT_EQ((*pod)["metadata"]["labels"].Entry("pod-template-generation").str(), "1");
  }
  EXPECT_EQ(targets, (std::set<std::string>{"n1", "n2"}));
  EXPECT_EQ(Pods().size(), 2u);
  EXPECT_EQ(Events("SuccessfulCreate").size(), 2u);
}

TEST_F(DaemonSetTest, StatusFollowsThePods) {
  Node("n1");
  Node("n2");
  Create(Set("agent"));
  EXPECT_EQ(Status("agent")["desiredNumberScheduled"].integer(), 2);
  EXPECT_EQ(Status("agent")["currentNumberScheduled"].integer(), 2);
  EXPECT_EQ(Status("agent")["updatedNumberScheduled"].integer(), 2);
  EXPECT_EQ(Status("agent")["numberUnavailable"].integer(), 2);
  EXPECT_EQ(Status("agent")["observedGeneration"].integer(), 1);
  MakeReady({Pods()[0]});
  EXPECT_EQ(Status("agent")["numberReady"].integer(), 1);
  EXPECT_EQ(Status("agent")["numberAvailable"].integer(), 1);
  EXPECT_EQ(Status("agent")["numberUnavailable"].integer(), 1);
}

TEST_F(DaemonSetTest, APodIsAvailableAfterMinReadySecondsWithoutAnotherEvent) {
  Node("n1");
  Create(Set("agent", "", R"("minReadySeconds":30,)"));
  MakeAllReady();
  EXPECT_EQ(Status("agent")["numberAvailable"].integer(), 0);
  Settle(std::chrono::seconds(32));
  EXPECT_EQ(Status("agent")["numberAvailable"].integer(), 1);
}

TEST_F(DaemonSetTest, ANodeThatJoinsGetsAPodAndOneThatLeavesLosesItsPendingPod) {
  Create(Set("agent"));
  EXPECT_TRUE(Pods().empty());
  Node("n1");
  EXPECT_EQ(Pods().size(), 1u);
  server_.Delete("Node", "n1");
  Settle();
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Status("agent")["desiredNumberScheduled"].integer(), 0);
}

TEST_F(DaemonSetTest, NodeSelectorAndAffinityChooseTheNodes) {
  Node("plain");
  Node("gpu", R"("gpu":"yes","zone":"a")");
  Node("far", R"("gpu":"yes","zone":"b")");
  Create(Set("agent", R"("nodeSelector":{"gpu":"yes"},"affinity":{"nodeAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[
      {"key":"zone","operator":"In","values":["a"]}]}]}}},)"));
  ASSERT_EQ(Pods().size(), 1u);
  EXPECT_EQ(TargetNode(*Pods()[0]), "gpu");
  Change("Node", "plain", "", [](api::Draft& node) {
    node["metadata"]["labels"].Entry("gpu") = "yes";
    node["metadata"]["labels"].Entry("zone") = "a";
  });
  EXPECT_EQ(Pods().size(), 2u);
  Change("Node", "gpu", "",
         [](api::Draft& node) { node["metadata"]["labels"].Entry("gpu") = "no"; });
  ASSERT_EQ(Pods().size(), 1u);
  EXPECT_EQ(TargetNode(*Pods()[0]), "plain");
}

TEST_F(DaemonSetTest, TaintsKeepItsPodsAwayUnlessTheyTolerateThem) {
  Node("cordoned", "", R"({"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"})");
  Node("unreachable", "", R"({"key":"node.kubernetes.io/unreachable","effect":"NoExecute"})");
  Node("reserved", "", R"({"key":"team","value":"a","effect":"NoSchedule"})");
  Create(Set("agent"));
  Create(Set("team", R"("tolerations":[{"key":"team","operator":"Equal","value":"a"}],)"));
  std::set<std::string> agents, team;
  for (const api::ObjectPtr& pod : PodsOf("agent")) agents.emplace(TargetNode(*pod));
  for (const api::ObjectPtr& pod : PodsOf("team")) team.emplace(TargetNode(*pod));
  EXPECT_EQ(agents, (std::set<std::string>{"cordoned", "unreachable"}));
  EXPECT_EQ(team, (std::set<std::string>{"cordoned", "unreachable", "reserved"}));
}

TEST_F(DaemonSetTest, ANewNoScheduleTaintLetsThePodStayAndANoExecuteTaintRemovesIt) {
  Node("n1");
  Create(Set("agent"));
  const auto taint = [&](std::string_view effect) {
    Change("Node", "n1", "", [&](api::Draft& node) {
      node["spec"]["taints"] = api::Draft::Array();
      node["spec"]["taints"].Append({{"key", "team"}, {"effect", effect}});
    });
  };
  taint("NoSchedule");
  EXPECT_EQ(Pods().size(), 1u);
  EXPECT_EQ(Status("agent")["numberMisscheduled"].integer(), 1);
  taint("NoExecute");
  EXPECT_TRUE(Pods().empty());
}

TEST_F(DaemonSetTest, AnUpdateReplacesOnePodAfterTheOther) {
  for (const auto name : {"n1", "n2", "n3"}) Node(name);
  Create(Set("agent"));
  BindAll();
  MakeAllReady();
  SetImage("agent", "i:2");
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:1"})) << "maxUnavailable is 1";
  FinishDeletions();
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:1", "i:2"}));
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Images().size(), 3u) << "the new pod is not ready yet";
  for (int i = 0; i < 3; ++i) {
    BindAll();
    MakeAllReady();
    FinishDeletions();
  }
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:2", "i:2", "i:2"}));
  EXPECT_EQ(Status("agent")["updatedNumberScheduled"].integer(), 3);
}

TEST_F(DaemonSetTest, APodThatIsNotAvailableIsReplacedAtOnce) {
  for (const auto name : {"n1", "n2", "n3"}) Node(name);
  Create(Set("agent"));
  SetImage("agent", "i:2");
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:2", "i:2", "i:2"})) << "none was available";
}

TEST_F(DaemonSetTest, WithSurgeTheNewPodComesFirst) {
  Node("n1");
  Node("n2");
  Create(Set("agent", "", R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":
      {"maxSurge":1,"maxUnavailable":0}},)"));
  BindAll();
  MakeAllReady();
  SetImage("agent", "i:2");
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:1", "i:2"}));
  BindAll();
  MakeAllReady();
  FinishDeletions();
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:2", "i:2"}));
  BindAll();
  MakeAllReady();
  FinishDeletions();
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:2", "i:2"}));
}

TEST_F(DaemonSetTest, OnDeleteReplacesOnlyWhatSomebodyDeletes) {
  Node("n1");
  Node("n2");
  Create(Set("agent", "", R"("updateStrategy":{"type":"OnDelete"},)"));
  SetImage("agent", "i:2");
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:1"}));
  server_.Delete("Pod", Pods()[0]->qualified_name());
  Settle();
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1", "i:2"}));
}

TEST_F(DaemonSetTest, TemplatesAreRecordedAndARollbackReusesItsRevision) {
  Node("n1");
  Create(Set("agent", "", R"("revisionHistoryLimit":1,)"));
  const auto revisions = [&] { return All("apps", "controllerrevisions"); };
  ASSERT_EQ(revisions().size(), 1u);
  const std::string first(revisions()[0]->name());
  EXPECT_EQ((*revisions()[0])["revision"].integer(), 1);
  SetImage("agent", "i:2");
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(revisions().size(), 2u);
  SetImage("agent", "i:1");
  Settle(std::chrono::seconds(2));
  ASSERT_EQ(revisions().size(), 2u);
  for (const api::ObjectPtr& revision : revisions()) {
    EXPECT_EQ((*revision)["revision"].integer(), revision->name() == first ? 3 : 2);
  }
  EXPECT_EQ(Images(), (std::vector<std::string>{"i:1"}));
  for (int i = 3; i < 7; ++i) {
    SetImage("agent", StrCat("i:", i));
    Settle(std::chrono::seconds(2));
  }
  EXPECT_EQ(revisions().size(), 2u) << "the current one and one old one";
}

TEST_F(DaemonSetTest, AFailedPodIsReplacedWithBackoff) {
  Node("n1");
  Create(Set("agent"));
  int replaced = 0;
  for (int i = 0; i < 60; ++i) {
    const std::vector<api::ObjectPtr> pods = Pods();
    if (pods.size() == 1 && (*pods[0])["status"]["phase"].str() == "Pending") {
      SetPod(pods[0], "Failed", false);
      ++replaced;
    }
    Settle(std::chrono::seconds(1));
  }
  EXPECT_GE(replaced, 4);
  EXPECT_LE(replaced, 8) << "1, 2, 4, 8, 16, ... seconds apart";
  EXPECT_FALSE(Events("FailedDaemonPod").empty());
}

TEST_F(DaemonSetTest, ACopyThatIsBehindMakesNothingTwice) {
  faulty_.hides = [](const client::WatchEvent& event) { return event.object->kind() == "Pod"; };
  Start(WithoutNodeLifecycle());
  Node("n1");
  Create(Set("agent"));
  Node("n2");
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Pods().size(), 1u);
  faulty_.hides = nullptr;
  for (int i = 0; i < 3; ++i) Start(WithoutNodeLifecycle());
  EXPECT_EQ(Pods().size(), 2u);
}

TEST_F(DaemonSetTest, DeletingTheSetDeletesPodsAndRevisions) {
  Node("n1");
  Create(Set("agent"));
  server_.Delete("DaemonSet", "default/agent");
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(All("apps", "controllerrevisions").empty());
}

}  // namespace
}  // namespace drakkar::controllers
