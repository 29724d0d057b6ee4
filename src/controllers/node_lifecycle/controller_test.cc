#include "controllers/node_lifecycle/controller.h"

#include "controllers/testing/controllers_fixture.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {
namespace {

class NodeLifecycleTest : public ControllersFixture {
 protected:
  void SetUp() override {
    Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-node-lease"}})");
  }
  void Node(std::string_view name, std::string_view ready = "True", std::string_view spec = "{}") {
    Create(StrCat(
        R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name, R"("},"spec":)", spec,
        R"(,"status":{"conditions":[)",
        ready.empty() ? std::string() : StrCat(R"({"type":"Ready","status":")", ready, R"("})"),
        "]}}"));
    Create(StrCat(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")",
                  name, R"(","namespace":"kube-node-lease"},"spec":{"holderIdentity":")", name,
                  R"("}})"));
  }
  void Renew(std::string_view node) {
    Change("Lease", StrCat("kube-node-lease/", node), "",
           [&](api::Draft& lease) { lease["spec"]["leaseTransitions"] = ++renewals_; });
  }
  // Lets time pass while the other nodes send heartbeats.
  void Pass(Duration time, const std::vector<std::string_view>& alive) {
    for (Duration passed{}; passed < time; passed += std::chrono::seconds(10)) {
      for (const std::string_view node : alive) Renew(node);
      Settle(std::chrono::seconds(10));
    }
  }
  std::string Ready(const std::string& node) {
    const api::ObjectPtr object = server_.Get("Node", node);
    return std::string(ReadinessOf(*object));
  }
  // "key:effect key:effect"
  std::string Taints(const std::string& node) {
    const api::ObjectPtr object = server_.Get("Node", node);
    std::string text;
    for (api::Value taint : (*object)["spec"]["taints"].elements()) {
      std::string_view key = taint["key"].str();
      key.remove_prefix(std::min(key.size(), key.find('/') + 1));
      text += StrCat(text.empty() ? "" : " ", key, ":", taint["effect"].str());
    }
    return text;
  }
  void SetReady(const std::string& node, std::string_view status) {
    Change("Node", node, "status", [&](api::Draft& draft) {
      draft["status"]["conditions"] = api::Draft::Array();
      draft["status"]["conditions"].Append(
          {{"type", "Ready"},
           {"status", status},
           {"lastHeartbeatTime", api::FormatTime(loop_.clock().Now())}});
    });
  }

  int renewals_ = 0;
};

TEST_F(NodeLifecycleTest, ANodeThatStopsRenewingItsLeaseBecomesUnknownAndIsTainted) {
  Node("alive");
  Node("dead");
  Pass(std::chrono::seconds(40), {"alive", "dead"});
  EXPECT_EQ(Ready("dead"), "True");
  Pass(std::chrono::seconds(40), {"alive"});
  EXPECT_EQ(Ready("dead"), "True") << "within the grace period";
  Pass(std::chrono::seconds(30), {"alive"});
  EXPECT_EQ(Ready("dead"), "Unknown");
  EXPECT_EQ(Taints("dead"), "unreachable:NoSchedule unreachable:NoExecute");
  EXPECT_EQ(Ready("alive"), "True");
  EXPECT_EQ(Taints("alive"), "");
  const api::ObjectPtr node = server_.Get("Node", "dead");
  EXPECT_EQ((*node)["status"]["conditions"].at(0)["reason"].str(), "NodeStatusUnknown");
  EXPECT_EQ(Events("NodeNotReady").size(), 1u);
}

TEST_F(NodeLifecycleTest, ANodeThatReturnsLosesItsTaints) {
  Node("alive");
  Node("dead");
  Pass(std::chrono::minutes(2), {"alive"});
  ASSERT_EQ(Ready("dead"), "Unknown");
  SetReady("dead", "True");
  Renew("dead");
  EXPECT_EQ(Taints("dead"), "");
}

TEST_F(NodeLifecycleTest, TheNotReadyTaintOfANewNodeIsRemovedOnceItIsReady) {
  Node("n1", "", R"({"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"},
                               {"key":"mine","effect":"NoSchedule"}]})");
  SetReady("n1", "False");
  EXPECT_EQ(Taints("n1"), "mine:NoSchedule not-ready:NoSchedule");
  SetReady("n1", "True");
  EXPECT_EQ(Taints("n1"), "mine:NoSchedule") << "other taints stay";
}

TEST_F(NodeLifecycleTest, ANodeThatIsNotReadyIsTaintedAtOnce) {
  Node("other");
  Node("n1");
  SetReady("n1", "False");
  Pass(std::chrono::seconds(10), {"other", "n1"});
  EXPECT_EQ(Taints("n1"), "not-ready:NoSchedule not-ready:NoExecute");
  EXPECT_EQ(Ready("n1"), "False");
}

TEST_F(NodeLifecycleTest, ConditionsAndCordonsAreTaints) {
  Node("n1");
  Change("Node", "n1", "", [](api::Draft& node) { node["spec"]["unschedulable"] = true; });
  Change("Node", "n1", "status", [](api::Draft& node) {
    node["status"]["conditions"].Append({{"type", "MemoryPressure"}, {"status", "True"}});
    node["status"]["conditions"].Append({{"type", "DiskPressure"}, {"status", "False"}});
  });
  EXPECT_EQ(Taints("n1"), "unschedulable:NoSchedule memory-pressure:NoSchedule");
  Change("Node", "n1", "", [](api::Draft& node) { node["spec"].Remove("unschedulable"); });
  EXPECT_EQ(Taints("n1"), "memory-pressure:NoSchedule");
}

TEST_F(NodeLifecycleTest, NothingIsEvictedWhileNoNodeIsReady) {
  Node("n1");
  Node("n2");
  Settle(std::chrono::minutes(3));
  EXPECT_EQ(Taints("n1"), "unreachable:NoSchedule");
  EXPECT_EQ(Taints("n2"), "unreachable:NoSchedule");
  SetReady("n1", "True");
  Pass(std::chrono::seconds(70), {"n1"});
  EXPECT_EQ(Taints("n1"), "");
  EXPECT_EQ(Taints("n2"), "unreachable:NoSchedule unreachable:NoExecute");
}

TEST_F(NodeLifecycleTest, ANodeThatNeverReportedBecomesUnknown) {
  Node("other");
  Node("n1", "");
  Pass(std::chrono::seconds(50), {"other"});
  EXPECT_EQ(Ready("n1"), "");
  Pass(std::chrono::seconds(30), {"other"});
  EXPECT_EQ(Ready("n1"), "Unknown");
}

TEST_F(NodeLifecycleTest, ACopyOfTheLeasesThatIsBehindLosesNoNode) {
  Node("n1");
  Node("n2");
  faulty_.hides = [](const client::WatchEvent& event) { return event.object->kind() == "Lease"; };
  Start();
  Pass(std::chrono::minutes(3), {"n1", "n2"});
  EXPECT_EQ(Ready("n1"), "True");
  EXPECT_EQ(Ready("n2"), "True");
}

TEST_F(NodeLifecycleTest, PodsOfALostNodeAreNotReady) {
  Node("alive");
  Node("dead");
  const api::ObjectPtr pod = Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
      "spec":{"containers":[{"name":"c","image":"i"}]}})");
  Bind(pod, "dead");
  SetPod(pod, "Running", true);
  Pass(std::chrono::minutes(2), {"alive"});
  const api::ObjectPtr now = server_.Get("Pod", "default/p");
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(FindCondition((*now)["status"], "Ready")["status"].str(), "False");
}

}  // namespace
}  // namespace drakkar::controllers
