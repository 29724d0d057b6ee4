#include "controllers/taint_eviction/controller.h"

#include "api/json/reader.h"
#include "controllers/taint_eviction/planner.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class TaintEvictionTest : public ControllersFixture {
 protected:
  void SetUp() override {
    Start(WithoutNodeLifecycle());
    Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  }
  void Pod(std::string_view name, std::string_view tolerations = "") {
    Bind(Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                       R"("},"spec":{"tolerations":[)", tolerations,
                       R"(],"containers":[{"name":"c","image":"i"}]}})")),
         "n1");
  }
  void Taint(std::string_view key, std::string_view effect = "NoExecute") {
    Change("Node", "n1", "", [&](api::Draft& node) {
      node["spec"]["taints"] = api::Draft::Array();
      if (!key.empty()) node["spec"]["taints"].Append({{"key", key}, {"effect", effect}});
    });
  }
  // Whether the pod was deleted; a node would now stop it.
  bool IsEvicted(std::string_view name) {
    const api::ObjectPtr pod = server_.Get("Pod", StrCat("default/", name));
    return pod == nullptr || pod->is_being_deleted();
  }
};

TEST_F(TaintEvictionTest, APodThatDoesNotTolerateTheTaintIsEvictedAtOnce) {
  Pod("p");
  Taint("broken", "NoSchedule");
  EXPECT_FALSE(IsEvicted("p"));
  Taint("broken");
  EXPECT_TRUE(IsEvicted("p"));
  const api::ObjectPtr pod = server_.Get("Pod", "default/p");
  ASSERT_NE(pod, nullptr);
  const api::Value condition = (*pod)["status"]["conditions"].at(0);
  EXPECT_EQ(condition["type"].str(), "DisruptionTarget");
  EXPECT_EQ(condition["reason"].str(), "DeletionByTaintManager");
  EXPECT_EQ(Events("TaintManagerEviction"),
            std::vector<std::string>{"Marking for deletion Pod default/p"});
}

TEST(TaintEvictionPlanner, TolerationsMayCompareTheTaint) {
  const auto object = [](std::string_view spec) {
    return api::Object(*api::ParseJson(StrCat(R"({"spec":{)", spec, "}}")));
  };
  const auto tolerance = [&](std::string_view value) {
    return ToleranceOf(object(R"("tolerations":[{"key":"sla","operator":"Lt","value":"5"}])"),
                       object(StrCat(R"("taints":[{"key":"sla","effect":"NoExecute","value":")",
                                     value, R"("}])")));
  };
  EXPECT_EQ(tolerance("4"), std::nullopt) << "for ever";
  EXPECT_EQ(tolerance("5"), Duration::zero());
  EXPECT_EQ(tolerance("04"), Duration::zero());
}

TEST_F(TaintEvictionTest, TolerationSecondsDelayTheEviction) {
  Pod("brief",
      R"({"key":"broken","operator":"Exists","effect":"NoExecute","tolerationSeconds":60})");
  Pod("for-ever", R"({"key":"broken","operator":"Exists","effect":"NoExecute"})");
  Taint("broken");
  Settle(std::chrono::seconds(58));
  EXPECT_FALSE(IsEvicted("brief"));
  Settle(std::chrono::seconds(3));
  EXPECT_TRUE(IsEvicted("brief"));
  Settle(std::chrono::hours(1));
  EXPECT_FALSE(IsEvicted("for-ever"));
}

TEST_F(TaintEvictionTest, ATaintThatIsRemovedInTimeEvictsNobody) {
  Pod("p", R"({"key":"broken","operator":"Exists","effect":"NoExecute","tolerationSeconds":300})");
  Taint("broken");
  Settle(std::chrono::seconds(100));
  Taint("");
  Settle(std::chrono::hours(1));
  EXPECT_FALSE(IsEvicted("p"));
  EXPECT_EQ(Events("TaintManagerEviction"),
            std::vector<std::string>{"Cancelling deletion of Pod default/p"});
}

TEST_F(TaintEvictionTest, APodThatArrivesOnATaintedNodeIsEvictedToo) {
  Taint("broken");
  Pod("p");
  EXPECT_TRUE(IsEvicted("p"));
}

}  // namespace
}  // namespace drakkar::controllers
