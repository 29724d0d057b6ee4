#include "controllers/stateful_set/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class StatefulSetTest : public ControllersFixture {
 protected:
  static std::string Set(std::string_view name, int replicas, std::string_view spec = "") {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":")", name,
                  R"("},"spec":{"replicas":)", replicas, R"(,"serviceName":"peers",)", spec,
                  R"("selector":{"matchLabels":{"app":")", name,
                  R"("}},"template":{"metadata":{"labels":{"app":")", name,
                  R"("}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}})");
  }
  static constexpr std::string_view kParallel = R"("podManagementPolicy":"Parallel",)";
  static constexpr std::string_view kVolume =
      R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{
          "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}],)";

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const api::ObjectPtr& pod : Pods()) names.emplace_back(pod->name());
    return names;
  }
  // "web-0=i:1 web-1=i:2"
  std::string Images() {
    std::string text;
    for (const api::ObjectPtr& pod : Pods()) {
      text += StrCat(text.empty() ? "" : " ", pod->name(), "=",
                     (*pod)["spec"]["containers"].at(0)["image"].str());
    }
    return text;
  }
  void Scale(std::string_view name, int replicas) {
    Change("StatefulSet", StrCat("default/", name), "",
           [&](api::Draft& set) { set["spec"]["replicas"] = replicas; });
  }
  void SetImage(std::string_view name, std::string_view image) {
    Change("StatefulSet", StrCat("default/", name), "", [&](api::Draft& set) {
      set["spec"]["template"]["spec"]["containers"].at(0)["image"] = image;
    });
  }
  api::Value Status(std::string_view name) {
    kept_ = server_.Get("StatefulSet", StrCat("default/", name));
    return (*kept_)["status"];
  }
  std::vector<std::string> Claims() {
    std::vector<std::string> names;
    for (const api::ObjectPtr& claim : All("", "persistentvolumeclaims")) {
      names.emplace_back(claim->name());
    }
    return names;
  }
  using Strings = std::vector<std::string>;

  api::ObjectPtr kept_;
};

TEST_F(StatefulSetTest, PodsAreMadeInOrderEachOnceItsPredecessorIsReady) {
  Create(Set("web", 3));
  EXPECT_EQ(Names(), (Strings{"web-0"}));
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Names(), (Strings{"web-0"}));
  MakeAllReady();
  EXPECT_EQ(Names(), (Strings{"web-0", "web-1"}));
  MakeAllReady();
  MakeAllReady();
  EXPECT_EQ(Names(), (Strings{"web-0", "web-1", "web-2"}));
  EXPECT_EQ(Status("web")["replicas"].integer(), 3);
  EXPECT_EQ(Status("web")["readyReplicas"].integer(), 3);
  EXPECT_EQ(Status("web")["availableReplicas"].integer(), 3);
  EXPECT_EQ(Status("web")["observedGeneration"].integer(), 1);
  EXPECT_EQ(Status("web")["currentRevision"].str(), Status("web")["updateRevision"].str());
  EXPECT_EQ(Events("SuccessfulCreate").size(), 3u);
}

TEST_F(StatefulSetTest, APodHasAStableIdentity) {
  Create(Set("web", 1, kVolume));
  const api::ObjectPtr pod = Pods().at(0);
  EXPECT_EQ((*pod)["spec"]["hostname"].str(), "web-0");
  EXPECT_EQ((*pod)["spec"]["subdomain"].str(), "peers");
  const api::Value labels = (*pod)["metadata"]["labels"];
  EXPECT_EQ(labels.Entry("statefulset.kubernetes.io/pod-name").str(), "web-0");
  EXPECT_EQ(labels.Entry("apps.kubernetes.io/pod-index").str(), "0");
  EXPECT_EQ(labels.Entry("controller-revision-hash").str(),
            All("apps", "controllerrevisions").at(0)->name());
  const api::Value volume = (*pod)["spec"]["volumes"].at(0);
  EXPECT_EQ(volume["name"].str(), "data");
  EXPECT_EQ(volume["persistentVolumeClaim"]["claimName"].str(), "data-web-0");
  EXPECT_EQ(Claims(), (Strings{"data-web-0"}));
}

TEST_F(StatefulSetTest, ParallelMakesAllPodsAtOnce) {
  Create(Set("web", 3, kParallel));
  EXPECT_EQ(Names(), (Strings{"web-0", "web-1", "web-2"}));
  Scale("web", 1);
  EXPECT_EQ(Names(), (Strings{"web-0"}));
}

TEST_F(StatefulSetTest, OrdinalsMayStartElsewhere) {
  Create(Set("web", 2, R"("podManagementPolicy":"Parallel","ordinals":{"start":5},)"));
  EXPECT_EQ(Names(), (Strings{"web-5", "web-6"}));
}

TEST_F(StatefulSetTest, ScalingDownDeletesTheHighestFirstAndWaitsForPodsThatAreNotReady) {
  Create(Set("web", 3, kParallel));
  MakeAllReady();
  Change("StatefulSet", "default/web", "", [](api::Draft&) {});
  server_.Delete("StatefulSet", "default/web", {.propagation_policy = "Orphan"});
  Settle(std::chrono::seconds(2));
  Create(Set("web", 3));
  EXPECT_EQ(Names().size(), 3u) << "adopted";
  SetPod(server_.Get("Pod", "default/web-0"), "Running", false);
  Scale("web", 1);
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Names().size(), 3u) << "web-0 is not ready";
  SetPod(server_.Get("Pod", "default/web-0"), "Running", true);
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Names(), (Strings{"web-0"}));
}

TEST_F(StatefulSetTest, AFailedPodIsReplacedUnderTheSameName) {
  Create(Set("web", 1));
  const std::string uid(Pods()[0]->uid());
  SetPod(Pods()[0], "Failed", false);
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Names(), (Strings{"web-0"}));
  EXPECT_NE(Pods()[0]->uid(), uid);
}

TEST_F(StatefulSetTest, AnUpdateReplacesPodsFromTheEnd) {
  Create(Set("web", 3, kParallel));
  MakeAllReady();
  const std::string before(Status("web")["currentRevision"].str());
  // Change the policy by recreating the set: it is immutable.
  server_.Delete("StatefulSet", "default/web", {.propagation_policy = "Orphan"});
  Settle(std::chrono::seconds(2));
  Create(Set("web", 3));
  SetImage("web", "i:2");
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1 web-2=i:2");
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1 web-2=i:2") << "web-2 is not ready";
  EXPECT_NE(Status("web")["currentRevision"].str(), Status("web")["updateRevision"].str());
  EXPECT_EQ(Status("web")["currentReplicas"].integer(), 2);
  EXPECT_EQ(Status("web")["updatedReplicas"].integer(), 1);
  MakeAllReady();
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:2 web-2=i:2");
  MakeAllReady();
  MakeAllReady();
  EXPECT_EQ(Images(), "web-0=i:2 web-1=i:2 web-2=i:2");
  EXPECT_EQ(Status("web")["currentRevision"].str(), Status("web")["updateRevision"].str());
  EXPECT_NE(Status("web")["currentRevision"].str(), before);
}

TEST_F(StatefulSetTest, PodsBelowThePartitionKeepTheOldTemplate) {
  Create(Set("web", 3, R"("podManagementPolicy":"Parallel","updateStrategy":{
      "type":"RollingUpdate","rollingUpdate":{"partition":2}},)"));
  MakeAllReady();
  SetImage("web", "i:2");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1 web-2=i:2");
  MakeAllReady();
  server_.Delete("Pod", "default/web-0");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1 web-2=i:2") << "replaced with its old template";
}

TEST_F(StatefulSetTest, MaxUnavailableReplacesSeveralAtATime) {
  Create(Set("web", 4, R"("podManagementPolicy":"Parallel","updateStrategy":{
      "type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}},)"));
  MakeAllReady();
  SetImage("web", "i:2");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1 web-2=i:2 web-3=i:2");
}

TEST_F(StatefulSetTest, OnDeleteReplacesOnlyWhatSomebodyDeletes) {
  Create(
      Set("web", 2, R"("podManagementPolicy":"Parallel","updateStrategy":{"type":"OnDelete"},)"));
  MakeAllReady();
  SetImage("web", "i:2");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Images(), "web-0=i:1 web-1=i:1");
  server_.Delete("Pod", "default/web-0");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Images(), "web-0=i:2 web-1=i:1");
}

TEST_F(StatefulSetTest, ClaimsOutliveTheirPods) {
  Create(Set("web", 2, StrCat(kParallel, kVolume)));
  EXPECT_EQ(Claims(), (Strings{"data-web-0", "data-web-1"}));
  Scale("web", 1);
  server_.Delete("StatefulSet", "default/web");
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(Claims(), (Strings{"data-web-0", "data-web-1"}));
}

TEST_F(StatefulSetTest, TheRetentionPolicyDeletesClaims) {
  Create(Set("web", 2, StrCat(kParallel, kVolume, R"("persistentVolumeClaimRetentionPolicy":{
      "whenScaled":"Delete","whenDeleted":"Delete"},)")));
  MakeAllReady();
  const api::ObjectPtr claim = server_.Get("PersistentVolumeClaim", "default/data-web-0");
  EXPECT_EQ((*claim)["metadata"]["ownerReferences"].at(0)["kind"].str(), "StatefulSet");
  Scale("web", 1);
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Claims(), (Strings{"data-web-0"}));
  server_.Delete("StatefulSet", "default/web");
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(Claims().empty());
}

TEST_F(StatefulSetTest, AHugeSetIsMadeInBursts) {
  Create(Set("web", 2'000'000'000));
  EXPECT_EQ(Names(), (Strings{"web-0"}));
}

TEST_F(StatefulSetTest, ARestartedControllerMakesNothingTwice) {
  Create(Set("web", 3, kParallel));
  for (int i = 0; i < 3; ++i) Start();
  EXPECT_EQ(Pods().size(), 3u);
  EXPECT_EQ(All("apps", "controllerrevisions").size(), 1u);
}

}  // namespace
}  // namespace drakkar::controllers
