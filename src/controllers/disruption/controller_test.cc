#include "controllers/disruption/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class DisruptionTest : public ControllersFixture {
 protected:
  void Set(int replicas) {
    Create(StrCat(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web"},
        "spec":{"replicas":)",
                  replicas, R"(,"selector":{"matchLabels":{"app":"web"}},"template":{
        "metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  }
  void Budget(std::string_view spec) {
    Create(StrCat(R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":
        {"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},)",
                  spec, "}}"));
  }
  api::Value Status() {
    kept_ = server_.Get("PodDisruptionBudget", "default/web");
    return (*kept_)["status"];
  }
  // "allowed=1 healthy=3/2 expected=3 SufficientPods"
  std::string Text() {
    const api::Value status = Status();
    return StrCat("allowed=", status["disruptionsAllowed"].integer(-1),
                  " healthy=", status["currentHealthy"].integer(-1), "/",
                  status["desiredHealthy"].integer(-1),
                  " expected=", status["expectedPods"].integer(-1), " ",
                  status["conditions"].at(0)["reason"].str());
  }

  api::ObjectPtr kept_;
};

TEST_F(DisruptionTest, TheStatusSaysHowManyPodsMayBeDisrupted) {
  Budget(R"("minAvailable":2)");
  EXPECT_EQ(Text(), "allowed=0 healthy=0/2 expected=0 InsufficientPods");
  Set(3);
  EXPECT_EQ(Text(), "allowed=0 healthy=0/2 expected=3 InsufficientPods");
  MakeAllReady();
  EXPECT_EQ(Text(), "allowed=1 healthy=3/2 expected=3 SufficientPods");
  EXPECT_EQ(Status()["observedGeneration"].integer(), 1);
  server_.Delete("Pod", Pods()[0]->qualified_name());
  Settle();
  EXPECT_EQ(Text(), "allowed=0 healthy=2/2 expected=3 InsufficientPods") << "its successor waits";
}

TEST_F(DisruptionTest, PercentagesAreOfWhatTheOwnersWant) {
  Set(4);
  Budget(R"("maxUnavailable":"30%")");
  MakeReady({Pods()[0], Pods()[1], Pods()[2]});
  EXPECT_EQ(Text(), "allowed=1 healthy=3/2 expected=4 SufficientPods");
  Change("ReplicaSet", "default/web", "", [](api::Draft& set) { set["spec"]["replicas"] = 10; });
  EXPECT_EQ(Text(), "allowed=0 healthy=3/7 expected=10 InsufficientPods");
}

TEST_F(DisruptionTest, PodsOfAnUnknownOwnerMayNotBeDisrupted) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"web"},
      "ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing","name":"t","uid":"u",
      "controller":true}]},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  Budget(R"("maxUnavailable":1)");
  EXPECT_EQ(Status()["disruptionsAllowed"].integer(-1), 0);
  EXPECT_EQ(Status()["conditions"].at(0)["reason"].str(), "SyncFailed");
}

}  // namespace
}  // namespace drakkar::controllers
