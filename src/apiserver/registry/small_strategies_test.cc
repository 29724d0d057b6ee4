// Kinds that have only one or two rules.
#include "apiserver/registry/small_strategies.h"

#include "apiserver/registry/cluster_strategies.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class SmallStrategiesTest : public CoreFixture {
 protected:
  SmallStrategiesTest() { StartCore(nullptr); }

  static std::string Refusal(const Response& response) {
    return response.failure ? StrCat(response.failure->code, " ", response.failure->message)
                            : "none";
  }
  std::string Made(std::string_view api_version, std::string_view kind, std::string_view rest,
                   std::string_view name = "x") {
    return Refusal(TryCreate(Body(api_version, kind, rest, name)));
  }
  std::string Updated(std::string_view api_version, std::string_view kind, std::string_view rest) {
    return Refusal(
        Handle(RequestFor(Verb::kUpdate, Body(api_version, kind, rest, "x"), AdminUser())));
  }
  static std::string Body(std::string_view api_version, std::string_view kind,
                          std::string_view rest, std::string_view name) {
    return StrCat(R"({"apiVersion":")", api_version, R"(","kind":")", kind,
                  R"(","metadata":{"name":")", name, R"("},)", rest, "}");
  }
  static constexpr std::string_view kRbac = "rbac.authorization.k8s.io/v1";
  int count_ = 0;
};

TEST_F(SmallStrategiesTest, VolumesOfACsiDriverArePersistentUnlessItSaysOtherwise) {
  const auto modes = [this](const std::string& name, std::string_view spec) {
    EXPECT_EQ(Made("storage.k8s.io/v1", "CSIDriver", StrCat(R"("spec":)", spec), name), "none");
    const api::ObjectPtr made = core_->Find("storage.k8s.io", "csidrivers", name);
    std::string text;
    for (const api::Value mode : (*made)["spec"]["volumeLifecycleModes"].elements()) {
      text += StrCat(mode.str(), ";");
    }
    return text;
  };
  EXPECT_EQ(modes("a", R"({"attachRequired":false})"), "Persistent;");
  EXPECT_EQ(modes("b", R"({"volumeLifecycleModes":["Ephemeral"]})"), "Ephemeral;");
}

TEST_F(SmallStrategiesTest, PodCidrIsTheFirstOfPodCidrs) {
  const auto made = [this](std::string_view name, std::string_view spec) {
    EXPECT_EQ(Made("v1", "Node", StrCat(R"("spec":)", spec), name), "none");
    const api::Value stored = (*core_->Find("", "nodes", std::string(name)))["spec"];
    return StrCat(stored["podCIDR"].str(), " ", stored["podCIDRs"].at(0).str(), " ",
                  stored["podCIDRs"].size());
  };
  EXPECT_EQ(made("a", R"({"podCIDR":"10.9.0.0/24"})"), "10.9.0.0/24 10.9.0.0/24 1");
  EXPECT_EQ(made("b", R"({"podCIDRs":["10.9.0.0/24","fd00::/64"]})"), "10.9.0.0/24 10.9.0.0/24 2");
  EXPECT_EQ(made("c", R"({"podCIDR":"10.8.0.0/24","podCIDRs":["10.9.0.0/24"]})"),
            "10.8.0.0/24 10.8.0.0/24 1");
}

TEST_F(SmallStrategiesTest, TheRoleOfABindingIsRequiredAndImmutable) {
  EXPECT_EQ(
      Made(kRbac, "ClusterRoleBinding", R"("subjects":[])"),
      "422 ClusterRoleBinding.rbac.authorization.k8s.io \"x\" is invalid: [roleRef.apiGroup: "
      "Unsupported value: \"\": supported values: \"rbac.authorization.k8s.io\", roleRef.kind: "
      "Unsupported value: \"\": supported values: \"ClusterRole\", roleRef.name: Required value]");
  EXPECT_EQ(Made(kRbac, "RoleBinding",
                 R"("roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},)"
                 R"({"kind":"ServiceAccount","name":"s","namespace":"default"}])"),
            "none");
  const api::ObjectPtr made = core_->Find("rbac.authorization.k8s.io", "rolebindings", "default/x");
  EXPECT_EQ((*made)["roleRef"]["apiGroup"].str(), "rbac.authorization.k8s.io") << "filled in";
  EXPECT_EQ((*made)["subjects"].at(0)["apiGroup"].str(), "rbac.authorization.k8s.io");
  EXPECT_FALSE((*made)["subjects"].at(1)["apiGroup"].exists());
  EXPECT_EQ(
      Updated(kRbac, "RoleBinding", R"("roleRef":{"kind":"ClusterRole","name":"admin"})"),
      "422 RoleBinding.rbac.authorization.k8s.io \"x\" is invalid: roleRef: Invalid value: "
      "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"admin\"}: "
      "cannot change roleRef");
  EXPECT_EQ(
      Updated(kRbac, "RoleBinding",
              R"("roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"Group","name":"g"}])"),
      "none")
      << "whom it binds may change";
  EXPECT_EQ(
      Updated(kRbac, "RoleBinding",
              R"("roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"Robot","name":"g"}])"),
      "422 RoleBinding.rbac.authorization.k8s.io \"x\" is invalid: subjects[0].kind: Unsupported "
      "value: \"Robot\": supported values: \"Group\", \"ServiceAccount\", \"User\"");
}

TEST_F(SmallStrategiesTest, RoleNamesMustNotHaveControlCharacters) {
  EXPECT_EQ(Made(kRbac, "ClusterRole", R"("rules":[])", "system:a b"), "none");
  for (const char* name : {R"(a\nb)", R"(a\u001b[31m)", R"(a\u007f)"}) {
    EXPECT_NE(Made(kRbac, "ClusterRole", R"("rules":[])", name).find("control characters"),
              std::string::npos)
        << name;
  }
}

TEST_F(SmallStrategiesTest, ARuleNeedsResourcesOrPaths) {
  EXPECT_EQ(
      Made(kRbac, "Role", R"("rules":[{"verbs":["get"]}])"),
      "422 Role.rbac.authorization.k8s.io \"x\" is invalid: [rules[0].apiGroups: Required value: "
      "resource rules must supply at least one api group, rules[0].resources: Required value: "
      "resource rules must supply at least one resource]");
  EXPECT_EQ(
      Made(kRbac, "Role", R"("rules":[{"verbs":["get"],"nonResourceURLs":["/metrics"]}])"),
      "422 Role.rbac.authorization.k8s.io \"x\" is invalid: rules[0].nonResourceURLs: Invalid "
      "value: [\"/metrics\"]: namespaced rules cannot apply to non-resource URLs");
  EXPECT_EQ(
      Made(kRbac, "ClusterRole", R"("rules":[{"verbs":["get"],"nonResourceURLs":["/metrics"]}])"),
      "none");
}

TEST_F(SmallStrategiesTest, PrioritiesAboveOneBillionAreReservedForTheSystem) {
  constexpr std::string_view kVersion = "scheduling.k8s.io/v1";
  EXPECT_EQ(
      Made(kVersion, "PriorityClass", R"("value":1000000001)"),
      "422 PriorityClass.scheduling.k8s.io \"x\" is invalid: value: Forbidden: maximum allowed "
      "value of a user defined priority is 1000000000");
  EXPECT_EQ(Made(kVersion, "PriorityClass", R"("value":1000000000)"), "none");
  EXPECT_EQ(
      Updated(kVersion, "PriorityClass", R"("value":7)"),
      "422 PriorityClass.scheduling.k8s.io \"x\" is invalid: value: Forbidden: may not be changed "
      "in an update.");
  EXPECT_EQ(
      Made(kVersion, "PriorityClass", R"("value":5)", "system-mine"),
      "422 PriorityClass.scheduling.k8s.io \"system-mine\" is invalid: metadata.name: Forbidden: "
      "priority class names with 'system-' prefix are reserved for system use only. error: "
      "system-mine is not a known system priority class");
  EXPECT_EQ(Made(kVersion, "PriorityClass", R"("value":2000001000)", "system-node-critical"),
            "none");
  EXPECT_EQ(
      Refusal(Delete(kVersion, "PriorityClass", "", "system-node-critical")),
      "403 priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a "
      "system priority class and cannot be deleted");
  EXPECT_EQ(Refusal(Delete(kVersion, "PriorityClass", "", "x")), "none");
}

TEST_F(SmallStrategiesTest, TheDurationOfALeaseMustBePositive) {
  constexpr std::string_view kVersion = "coordination.k8s.io/v1";
  EXPECT_EQ(
      Made(kVersion, "Lease", R"("spec":{"leaseDurationSeconds":0,"leaseTransitions":-1})"),
      "422 Lease.coordination.k8s.io \"x\" is invalid: [spec.leaseDurationSeconds: Invalid value: "
      "0: "
      "must be greater than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or "
      "equal to 0]");
  EXPECT_EQ(Made(kVersion, "Lease", R"("spec":{"leaseDurationSeconds":1})"), "none");
  EXPECT_EQ(
      Updated(kVersion, "Lease", R"("spec":{"leaseDurationSeconds":-5})"),
      "422 Lease.coordination.k8s.io \"x\" is invalid: spec.leaseDurationSeconds: Invalid value: "
      "-5: must be greater than 0");
}

TEST_F(SmallStrategiesTest, ABudgetHasEitherAMinimumOrAMaximum) {
  constexpr std::string_view kVersion = "policy/v1";
  EXPECT_EQ(
      Made(kVersion, "PodDisruptionBudget", R"("spec":{"minAvailable":1,"maxUnavailable":1})"),
      "422 PodDisruptionBudget.policy \"x\" is invalid: spec: Invalid value: "
      "{\"minAvailable\":1,\"maxUnavailable\":1}: minAvailable and maxUnavailable cannot be both "
      "set");
  EXPECT_EQ(
      Made(kVersion, "PodDisruptionBudget", R"("spec":{"minAvailable":-1})"),
      "422 PodDisruptionBudget.policy \"x\" is invalid: spec.minAvailable: Invalid value: -1: must "
      "be greater than or equal to 0");
  EXPECT_EQ(Made(kVersion, "PodDisruptionBudget", R"("spec":{"maxUnavailable":"101%"})"),
            "422 PodDisruptionBudget.policy \"x\" is invalid: spec.maxUnavailable: Invalid value: "
            "\"101%\": must not be greater than 100%");
  EXPECT_EQ(Made(kVersion, "PodDisruptionBudget", R"("spec":{"minAvailable":"50%"})"), "none");
}

TEST_F(SmallStrategiesTest, ANodeOffersAllItHasUnlessItSaysOtherwise) {
  const auto allocatable = [&](std::string_view name, std::string_view status) {
    const Response made = TryCreate(Body("v1", "Node", StrCat(R"("status":)", status), name));
    EXPECT_FALSE(made.failure);
    return std::string((*made.object)["status"]["allocatable"].Entry("cpu").str());
  };
  EXPECT_EQ(allocatable("a", R"({"capacity":{"cpu":"4"}})"), "4");
  EXPECT_EQ(allocatable("b", R"({"capacity":{"cpu":"4"},"allocatable":{"cpu":"3"}})"), "3");
  EXPECT_EQ(allocatable("c", "{}"), "");
}

TEST_F(SmallStrategiesTest, TaintsHaveKeysAndEffects) {
  EXPECT_EQ(
      Made("v1", "Node",
           R"("spec":{"taints":[{"key":"a","effect":"Sometimes"},{"key":"b"},)"
           R"({"key":"c","effect":"NoExecute"},{"key":"c","effect":"NoExecute"}]})"),
      "422 Node \"x\" is invalid: [metadata.taints[0].effect: Unsupported value: \"Sometimes\": "
      "supported "
      "values: \"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\", metadata.taints[1].effect: "
      "Required "
      "value, metadata.taints[3]: Duplicate value: {\"key\":\"c\",\"effect\":\"NoExecute\"}: "
      "taints must "
      "be unique by key and effect pair]");
  EXPECT_NE(Made("v1", "Node", R"("spec":{"taints":[{"key":"no good","effect":"NoSchedule"}]})")
                .find("metadata.taints[0].key: Invalid value: \"no good\""),
            std::string::npos);
  EXPECT_EQ(
      Made(
          "v1", "Node",
          R"("spec":{"taints":[{"key":"c","effect":"NoExecute"},{"key":"c","effect":"NoSchedule"}]})"),
      "none");
}

TEST_F(SmallStrategiesTest, EventsOfEventsK8sIoNameTheReporterAndTheAction) {
  EXPECT_EQ(
      Made(
          "events.k8s.io/v1", "Event",
          R"("eventTime":"2026-01-01T00:00:00.000000Z","reason":"r","action":"a","type":"Normal",)"
          R"("regarding":{"kind":"Pod","namespace":"default","name":"p"},"reportingInstance":"i")"),
      "422 Event \"x\" is invalid: reportingController: Required value");
  EXPECT_EQ(
      Made(
          "events.k8s.io/v1", "Event",
          R"("reason":"r","action":"a","type":"Normal","reportingController":"c.example.com/c",)"
          R"("regarding":{"kind":"Pod","namespace":"default","name":"p"},"reportingInstance":"i")"),
      "422 Event \"x\" is invalid: eventTime: Required value");
  EXPECT_EQ(Made("v1", "Event",
                 R"("reason":"r","involvedObject":{"kind":"Pod","namespace":"other","name":"p"})"),
            "422 Event \"x\" is invalid: involvedObject.namespace: Invalid value: \"other\": does "
            "not match "
            "event.namespace");
  EXPECT_EQ(Made("v1", "Event", R"("reason":"r","involvedObject":{"kind":"Node","name":"n"})"),
            "none");
}

TEST_F(SmallStrategiesTest, TheRoleOfABindingIsAPathSegment) {
  EXPECT_EQ(Made(kRbac, "ClusterRoleBinding",
                 R"("roleRef":{"kind":"ClusterRole","name":"a/b"},"subjects":[])"),
            "422 ClusterRoleBinding.rbac.authorization.k8s.io \"x\" is invalid: roleRef.name: "
            "Invalid value: \"a/b\": may not contain '/'");
}

TEST_F(SmallStrategiesTest, SubjectsHaveNamesAndAccountsANamespace) {
  const auto made = [this](std::string_view kind, std::string_view subject) {
    const std::string refusal =
        Made(kRbac, kind,
             StrCat(R"("roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[)", subject, "]"));
    const std::size_t at = refusal.find("is invalid: ");
    return at == refusal.npos ? refusal : refusal.substr(at + 12);
  };
  EXPECT_EQ(made("ClusterRoleBinding", R"({"kind":"User"})"), "subjects[0].name: Required value");
  EXPECT_EQ(made("ClusterRoleBinding", R"({"kind":"ServiceAccount","name":"s"})"),
            "subjects[0].namespace: Required value");
  EXPECT_EQ(made("ClusterRoleBinding", R"({"kind":"ServiceAccount","namespace":"n"})"),
            "subjects[0].name: Required value");
  EXPECT_NE(made("RoleBinding", R"({"kind":"ServiceAccount","name":"Not"})")
                .find("subjects[0].name: Invalid value: \"Not\""),
            std::string::npos);
  EXPECT_EQ(made("RoleBinding", R"({"kind":"ServiceAccount","name":"s","apiGroup":"a"})"),
            "subjects[0].apiGroup: Unsupported value: \"a\": supported values: \"\"");
  EXPECT_EQ(made("RoleBinding", R"({"kind":"Group","name":"g","apiGroup":"a"})"),
            "subjects[0].apiGroup: Unsupported value: \"a\": supported values: "
            "\"rbac.authorization.k8s.io\"");
  EXPECT_EQ(made("RoleBinding", R"({"kind":"ServiceAccount","name":"s"})"), "none")
      << "of the binding's namespace";
}

TEST_F(SmallStrategiesTest, ARuleIsAboutResourcesOrPathsButNotBoth) {
  for (const char* part :
       {R"("apiGroups":[""])", R"("resources":["pods"])", R"("resourceNames":["a"])"}) {
    EXPECT_NE(
        Made(kRbac, "ClusterRole",
             StrCat(R"("rules":[{"verbs":["get"],"nonResourceURLs":["/metrics"],)", part, "}]"))
            .find("rules cannot apply to both regular resources and non-resource URLs"),
        std::string::npos)
        << part;
  }
  EXPECT_NE(Made(kRbac, "ClusterRole", R"("rules":[{"apiGroups":[""],"resources":["pods"]}])")
                .find("rules[0].verbs: Required value: verbs must contain at least one value"),
            std::string::npos);
}

TEST_F(SmallStrategiesTest, AnIngressHasABackendOrRules) {
  constexpr std::string_view kVersion = "networking.k8s.io/v1";
  EXPECT_NE(Made(kVersion, "Ingress", R"("spec":{})")
                .find("either `defaultBackend` or `rules` must be specified"),
            std::string::npos);
  EXPECT_EQ(Made(kVersion, "Ingress",
                 R"("spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}})"),
            "none");
  EXPECT_EQ(Made(kVersion, "Ingress", R"("spec":{"rules":[{"host":"a.example.com"}]})", "y"),
            "none");
  EXPECT_NE(Updated(kVersion, "Ingress", R"("spec":{})").find("must be specified"),
            std::string::npos);
}

TEST_F(SmallStrategiesTest, APolicyIsAboutIngressUnlessItSaysMore) {
  const auto types = [this](const std::string& name, std::string_view more) {
    EXPECT_EQ(Made("networking.k8s.io/v1", "NetworkPolicy",
                   StrCat(R"("spec":{"podSelector":{})", more, "}"), name),
              "none");
    std::string text;
    const api::ObjectPtr made =
        core_->Find("networking.k8s.io", "networkpolicies", StrCat("default/", name));
    for (const api::Value type : (*made)["spec"]["policyTypes"].elements()) {
      text += StrCat(type.str(), ";");
    }
    return text;
  };
  EXPECT_EQ(types("a", ""), "Ingress;");
  EXPECT_EQ(types("b", R"(,"egress":[{}])"), "Ingress;Egress;");
  EXPECT_EQ(types("c", R"(,"egress":[{}],"policyTypes":["Egress"])"), "Egress;");
}

TEST_F(SmallStrategiesTest, AnAutoscalerGetsItsRules) {
  const auto made = [this](const std::string& name, std::string_view more) {
    return Made("autoscaling/v2", "HorizontalPodAutoscaler",
                StrCat(R"("spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",)",
                       R"("name":"d"},)", more, "}"),
                name);
  };
  const auto behavior = [this](const std::string& name) {
    return (*core_->Find("autoscaling", "horizontalpodautoscalers",
                         StrCat("default/", name)))["spec"]["behavior"];
  };
  EXPECT_EQ(made("plain", R"("maxReplicas":3)"), "none");
  EXPECT_FALSE(behavior("plain").exists());
  EXPECT_EQ(made("up", R"("maxReplicas":3,"behavior":{"scaleUp":{}})"), "none");
  const api::Value up = behavior("up")["scaleUp"];
  EXPECT_EQ(up["stabilizationWindowSeconds"].optional_integer(), 0);
  EXPECT_EQ(up["selectPolicy"].str(), "Max");
  ASSERT_EQ(up["policies"].size(), 2u);
  EXPECT_EQ(up["policies"].at(0)["type"].str(), "Pods");
  EXPECT_EQ(up["policies"].at(0)["value"].integer(), 4);
  EXPECT_EQ(up["policies"].at(1)["type"].str(), "Percent");
  EXPECT_EQ(up["policies"].at(1)["periodSeconds"].integer(), 15);
  const api::Value down = behavior("up")["scaleDown"];
  EXPECT_FALSE(down["stabilizationWindowSeconds"].has_value());
  ASSERT_EQ(down["policies"].size(), 1u);
  EXPECT_EQ(down["policies"].at(0)["type"].str(), "Percent");
  EXPECT_EQ(
      made("given", R"("maxReplicas":3,"behavior":{"scaleUp":{"stabilizationWindowSeconds":5,)"
                    R"("selectPolicy":"Min","policies":[{"type":"Pods","value":1,)"
                    R"("periodSeconds":9}]}})"),
      "none");
  const api::Value given = behavior("given")["scaleUp"];
  EXPECT_EQ(given["stabilizationWindowSeconds"].integer(), 5);
  EXPECT_EQ(given["selectPolicy"].str(), "Min");
  EXPECT_EQ(given["policies"].size(), 1u);
  EXPECT_EQ(made("equal", R"("minReplicas":3,"maxReplicas":3)"), "none");
  EXPECT_NE(made("less", R"("minReplicas":4,"maxReplicas":3)")
                .find("must be greater than or equal to `minReplicas`"),
            std::string::npos);
}

TEST_F(SmallStrategiesTest, DeclaredFeaturesAreSortedNames) {
  const auto declared = [](std::string_view list) {
    std::string text;
    const auto tree = api::ParseJson(list);
    for (const api::FieldError& error : ValidateDeclaredFeatures((*tree)->root())) {
      text += StrCat(error.field, ";");
    }
    return text;
  };
  EXPECT_EQ(declared(R"(["A","B","Ba","Bb/sub9"])"), "");
  EXPECT_EQ(declared(R"(["Z","zz"])"), "status.declaredFeatures[1];") << "starts with a capital";
  EXPECT_EQ(declared(R"(["A/Sub","A/sub"])"), "");
  for (const char* bad : {"", "a", "9", "A-b", "A/", "/A", "A/9", "A//b", "A.b", "A[", "A{", "[A",
                          "@A", "A@", "A`"}) {
    EXPECT_EQ(declared(StrCat(R"([")", bad, R"("])")), "status.declaredFeatures[0];") << bad;
  }
  EXPECT_EQ(declared(R"(["A","A"])"), "status.declaredFeatures[1];");
  EXPECT_EQ(declared(R"(["B","A","C"])"), "status.declaredFeatures[1];");
  EXPECT_EQ(declared(StrCat(R"([")", std::string(253, 'A'), R"("])")), "");
  EXPECT_EQ(declared(StrCat(R"([")", std::string(254, 'A'), R"("])")),
            "status.declaredFeatures[0];");
}

TEST_F(SmallStrategiesTest, ImagesWithATagThatMovesArePulledAgain) {
  const auto policy = [this](std::string_view image) {
    const std::string name = StrCat("p", count_++);
    EXPECT_EQ(
        Made("v1", "Pod",
             StrCat(R"("spec":{"containers":[{"name":"c","image":")", image, R"("}]})"), name),
        "none");
    return std::string((*core_->Find("", "pods", StrCat("default/", name)))["spec"]["containers"]
                           .at(0)["imagePullPolicy"]
                           .str());
  };
  EXPECT_EQ(policy("i"), "Always");
  EXPECT_EQ(policy("i:latest"), "Always");
  EXPECT_EQ(policy("host:5000/i"), "Always");
  EXPECT_EQ(policy("host:5000/i:latest"), "Always");
  EXPECT_EQ(policy("host:5000/i:1"), "IfNotPresent");
  EXPECT_EQ(policy("i:1"), "IfNotPresent");
  EXPECT_EQ(policy("i:latest@sha256:00"), "IfNotPresent");
}

}  // namespace
}  // namespace drakkar::apiserver
