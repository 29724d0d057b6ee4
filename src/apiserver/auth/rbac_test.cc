#include "apiserver/auth/rbac.h"

#include "api/json/writer.h"
#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/auth/chain.h"
#include "apiserver/request/node_identity.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class RbacTest : public CoreFixture {
 protected:
  RbacTest() {
    StartCore(&rbac_);
    rbac_.Attach(*core_);
  }

  bool May(const UserInfo& user, std::string_view verb, std::string_view group,
           std::string_view resource, std::string_view namespace_ = "",
           std::string_view name = "") {
    const std::size_t slash = resource.find('/');
    const std::string_view sub =
        slash == std::string_view::npos ? std::string_view() : resource.substr(slash + 1);
    return rbac_.Check({user, verb, group, resource.substr(0, slash), sub, namespace_, name, {}})
        .allowed;
  }

  void CreateRole(std::string_view kind, std::string_view name, std::string_view rules) {
    Create(StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":")", kind,
                  R"(","metadata":{"name":")", name, R"("},"rules":)", rules, "}"));
  }

  void Bind(std::string_view kind, std::string_view name, std::string_view role_kind,
            std::string_view role, std::string_view subject) {
    Create(StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":")", kind,
                  R"(","metadata":{"name":")", name, R"("},"roleRef":{"apiGroup":)",
                  R"("rbac.authorization.k8s.io","kind":")", role_kind, R"(","name":")", role,
                  R"("},"subjects":[)", subject, "]}"));
  }

  void EnsurePolicy() {
    std::optional<Result<void>> result;
    EnsureBootstrapPolicy(*core_, [&](Result<void> outcome) { result = std::move(outcome); });
    loop_.RunUntilIdle();
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->ok()) << result->error().message;
  }

  static std::string User(std::string_view name) {
    return StrCat(R"({"kind":"User","name":")", name, R"("})");
  }

  RbacAuthorizer rbac_;
};

TEST_F(RbacTest, OnlyMastersMayDoAnythingWithoutRules) {
  EXPECT_TRUE(May(AdminUser(), "delete", "", "nodes", "", "n"));
  EXPECT_FALSE(May(PlainUser("u"), "get", "", "pods", "default", "p"));
  RbacAuthorizer detached;
  EXPECT_TRUE(detached.Check({AdminUser(), "get", "", "pods", "", "", "", ""}).allowed);
  EXPECT_FALSE(detached.Check({PlainUser("u"), "get", "", "pods", "", "", "", ""}).allowed);
}

TEST_F(RbacTest, PermissionForANameIncludesListAndWatchByThatName) {
  CreateRole("Role", "one", R"([{"verbs":["get","list","watch"],"apiGroups":[""],
    "resources":["configmaps"],"resourceNames":["mine"]}])");
  Bind("RoleBinding", "b", "Role", "one", User("u"));
  const UserInfo user = PlainUser("u");
  const auto may = [&](std::string_view verb, std::string_view selector) {
    return rbac_.Check({user, verb, "", "configmaps", "", "default", "", selector}).allowed;
  };
  EXPECT_TRUE(may("list", "metadata.name=mine"));
  EXPECT_TRUE(may("watch", "metadata.namespace=default, metadata.name==mine"));
  EXPECT_FALSE(may("list", ""));
  EXPECT_FALSE(may("list", "metadata.name=other"));
  EXPECT_FALSE(may("list", "metadata.name!=mine"));
  EXPECT_FALSE(may("deletecollection", "metadata.name=mine"));
}

TEST_F(RbacTest, TheSchedulerMayReadTheAuthenticationConfiguration) {
  EnsurePolicy();
  Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}})");
  for (const api::TreePtr& each : DelegatedAuthentication("the authority", "that of proxies")) {
    Create(api::WriteJson(each->root()));
  }
  const UserInfo user = PlainUser("system:kube-scheduler");
  constexpr std::string_view kMap = "extension-apiserver-authentication";
  EXPECT_TRUE(May(user, "get", "", "configmaps", "kube-system", kMap));
  EXPECT_FALSE(May(user, "get", "", "configmaps", "kube-system", "other"));
  EXPECT_FALSE(May(user, "get", "", "configmaps", "default", kMap));
}

TEST_F(RbacTest, TheAuthenticationConfigurationNamesTheProxiesBeforeUs) {
  constexpr std::string_view kOurs = "-----BEGIN\nours\n-----END CERTIFICATE-----\n";
  constexpr std::string_view kTheirs = "-----BEGIN\ntheirs\n-----END CERTIFICATE-----\n";
  const FrontProxies proxies = {.ca_pem = std::string(kTheirs),
                                .allowed_names = {"gate"},
                                .headers = {.user = {"X-User", "X-Remote-User"}}};
  const api::TreePtr plain = DelegatedAuthentication("c", kOurs)[0];
  const api::TreePtr wanted = DelegatedAuthentication("c", kOurs, proxies)[0];
  const auto entry = [](const api::TreePtr& map, std::string_view name) {
    return std::string(map->root()["data"].Entry(name).str());
  };
  EXPECT_EQ(entry(plain, "requestheader-allowed-names"), R"(["front-proxy-client"])");
  EXPECT_EQ(entry(wanted, "requestheader-client-ca-file"), StrCat(kOurs, kTheirs));
  EXPECT_EQ(entry(wanted, "requestheader-allowed-names"), R"(["front-proxy-client","gate"])");
  EXPECT_EQ(entry(wanted, "requestheader-username-headers"), R"(["X-Remote-User","X-User"])");
  // An earlier start, or another server, has written the map.
  const api::TreePtr merged = MergeAuthentication(plain, wanted->root());
  ASSERT_NE(merged, nullptr);
  EXPECT_TRUE(api::Equal(merged->root(), wanted->root()));
  EXPECT_EQ(MergeAuthentication(merged, wanted->root()), nullptr);
  EXPECT_EQ(MergeAuthentication(wanted, plain->root()), nullptr) << "what others wrote stays";
}

TEST_F(RbacTest, TheTrackingOfLegacyTokensBeginsWithADate) {
  const api::TreePtr map =
      LegacyTokenTracking(WallTime() + std::chrono::hours(24 * 365) + std::chrono::hours(23));
  EXPECT_EQ(map->root()["metadata"]["namespace"].str(), "kube-system");
  EXPECT_EQ(map->root()["data"].Entry("since").str(), "1971-01-01");
}

TEST_F(RbacTest, RolesApplyInTheirNamespaceOnly) {
  CreateRole("Role", "reader",
             R"([{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}])");
  Bind("RoleBinding", "b", "Role", "reader", User("u"));
  const UserInfo user = PlainUser("u");
  EXPECT_TRUE(May(user, "get", "", "pods", "default", "p"));
  EXPECT_TRUE(May(user, "list", "", "pods", "default"));
  EXPECT_FALSE(May(user, "list", "", "pods")) << "all namespaces";
  EXPECT_FALSE(May(user, "get", "", "pods", "other", "p"));
  EXPECT_FALSE(May(user, "delete", "", "pods", "default", "p"));
  EXPECT_FALSE(May(user, "get", "", "pods/log", "default", "p"));
  EXPECT_FALSE(May(user, "get", "apps", "pods", "default", "p"));
  EXPECT_FALSE(May(PlainUser("v"), "get", "", "pods", "default", "p"));
}

TEST_F(RbacTest, SubresourcesAndNamesAreMatched) {
  CreateRole("ClusterRole", "c",
             R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods/log","*/status"]},
                 {"verbs":["*"],"apiGroups":["*"],"resources":["leases"],"resourceNames":["mine"]},
                 {"verbs":["associated-node:update"],"apiGroups":["resource.k8s.io"],
                  "resources":["resourceclaims/driver"],"resourceNames":["gpu.example.com"]}])");
  Bind("ClusterRoleBinding", "b", "ClusterRole", "c", User("u"));
  const UserInfo user = PlainUser("u");
  EXPECT_TRUE(May(user, "get", "", "pods/log", "default", "p"));
  EXPECT_TRUE(May(user, "get", "", "nodes/status", "", "n"));
  EXPECT_FALSE(May(user, "get", "", "nodes", "", "n"));
  EXPECT_TRUE(May(user, "update", "coordination.k8s.io", "leases", "default", "mine"));
  EXPECT_FALSE(May(user, "update", "coordination.k8s.io", "leases", "default", "yours"));
  EXPECT_FALSE(May(user, "list", "coordination.k8s.io", "leases", "default")) << "no name";
  EXPECT_TRUE(May(user, "associated-node:update", "resource.k8s.io", "resourceclaims/driver",
                  "default", "gpu.example.com"));
  EXPECT_FALSE(May(user, "arbitrary-node:update", "resource.k8s.io", "resourceclaims/driver",
                   "default", "gpu.example.com"));
}

TEST_F(RbacTest, GroupsAndServiceAccountsAreSubjects) {
  CreateRole("ClusterRole", "c", R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])");
  Bind("RoleBinding", "b", "ClusterRole", "c",
       R"({"kind":"Group","name":"team"},{"kind":"ServiceAccount","name":"sa"})");
  EXPECT_TRUE(May(PlainUser("x", {"team"}), "delete", "", "secrets", "default", "s"));
  EXPECT_TRUE(
      May(PlainUser("system:serviceaccount:default:sa"), "get", "", "pods/log", "default", "p"));
  EXPECT_FALSE(May(PlainUser("system:serviceaccount:other:sa"), "get", "", "pods", "default", "p"));
  EXPECT_FALSE(May(PlainUser("x", {"team"}), "get", "", "nodes", "", "n")) << "cluster scope";
  EXPECT_TRUE(May(PlainUser("x", {"team"}), "get", "", "namespaces", "", "default"))
      << "the namespace itself";
  EXPECT_FALSE(May(PlainUser("x", {"team"}), "get", "", "namespaces", "", "other"));
}

TEST_F(RbacTest, ChangesTakeEffectAtOnce) {
  const UserInfo user = PlainUser("u");
  Bind("ClusterRoleBinding", "b", "ClusterRole", "later", User("u"));
  const Decision decision = rbac_.Check({user, "get", "", "pods", "", "default", "p", ""});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"later\" not found");
  CreateRole("ClusterRole", "later",
             R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])");
  EXPECT_TRUE(May(user, "get", "", "pods", "default", "p"));
  Delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "b");
  EXPECT_FALSE(May(user, "get", "", "pods", "default", "p"));
}

TEST_F(RbacTest, AggregatedRolesCollectRulesByLabel) {
  EnsurePolicy();
  Bind("RoleBinding", "v", "ClusterRole", "view", User("viewer"));
  Bind("RoleBinding", "e", "ClusterRole", "edit", User("editor"));
  Bind("RoleBinding", "a", "ClusterRole", "admin", User("owner"));
  const std::string_view dra = "resource.k8s.io";
  for (const char* name : {"viewer", "editor", "owner"}) {
    EXPECT_TRUE(May(PlainUser(name), "list", dra, "resourceclaims", "default")) << name;
  }
  EXPECT_FALSE(May(PlainUser("viewer"), "create", dra, "resourceclaims", "default"));
  EXPECT_FALSE(May(PlainUser("viewer"), "get", "", "secrets", "default", "s"));
  EXPECT_TRUE(May(PlainUser("editor"), "create", dra, "resourceclaims", "default"));
  EXPECT_TRUE(May(PlainUser("editor"), "get", "", "secrets", "default", "s"));
  EXPECT_FALSE(May(PlainUser("editor"), "create", "rbac.authorization.k8s.io", "roles", "default"));
  EXPECT_TRUE(May(PlainUser("owner"), "create", "rbac.authorization.k8s.io", "roles", "default"));
  EXPECT_TRUE(May(PlainUser("owner"), "delete", "", "pods", "default", "p")) << "through edit";
  // A role that is added later is aggregated as well.
  EXPECT_FALSE(May(PlainUser("viewer"), "get", "x.example.com", "things", "default"));
  Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{
      "name":"more","labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},
      "rules":[{"verbs":["get"],"apiGroups":["x.example.com"],"resources":["things"]}]})");
  EXPECT_TRUE(May(PlainUser("viewer"), "get", "x.example.com", "things", "default"));
  EXPECT_TRUE(May(PlainUser("owner"), "get", "x.example.com", "things", "default"));
}

TEST_F(RbacTest, TheDefaultPolicyIsEnoughForTheComponents) {
  EnsurePolicy();
  EnsurePolicy();  // again: everything already exists
  const UserInfo scheduler = PlainUser("system:kube-scheduler");
  const std::string_view dra = "resource.k8s.io";
  EXPECT_TRUE(May(scheduler, "watch", dra, "resourceslices"));
  EXPECT_TRUE(May(scheduler, "update", dra, "resourceclaims/status", "default", "c"));
  EXPECT_TRUE(May(scheduler, "update", dra, "resourceclaims/binding"));
  EXPECT_TRUE(May(scheduler, "create", "", "pods/binding", "default", "p"));
  EXPECT_FALSE(May(scheduler, "create", dra, "resourceslices"));
  EXPECT_FALSE(May(scheduler, "get", "", "secrets", "default", "s"));
  const UserInfo controllers = PlainUser("system:kube-controller-manager");
  EXPECT_TRUE(May(controllers, "create", dra, "resourceclaims", "default"));
  EXPECT_TRUE(May(controllers, "update", "", "namespaces/finalize", "", "default"));
  const UserInfo account = PlainUser("system:serviceaccount:kube-system:resource-claim-controller");
  EXPECT_TRUE(May(account, "update", dra, "resourceclaims/binding"));
  EXPECT_FALSE(May(account, "delete", "", "namespaces", "", "default"));
  const UserInfo driver = PlainUser("d", {std::string(kNodeDriversGroup)});
  EXPECT_TRUE(May(driver, "create", dra, "resourceslices"));
  EXPECT_TRUE(May(driver, "associated-node:update", dra, "resourceclaims/driver", "default", "d"));
  EXPECT_FALSE(May(driver, "arbitrary-node:update", dra, "resourceclaims/driver", "default", "d"));
}

TEST_F(RbacTest, WhoMayUseThePortsOfNodes) {
  EnsurePolicy();
  const UserInfo monitoring = PlainUser("m", {"system:monitoring"});
  EXPECT_TRUE(May(monitoring, "get", "", "nodes/metrics", "", "n1"));
  EXPECT_FALSE(May(monitoring, "get", "", "nodes/proxy", "", "n1"));
  EXPECT_FALSE(May(monitoring, "get", "", "nodes/pods", "", "n1"));
  const UserInfo server = PlainUser(std::string(kNodeClientUser));
  EXPECT_TRUE(May(server, "get", "", "nodes/proxy", "", "n1"));
  EXPECT_TRUE(May(server, "create", "", "nodes/proxy", "", "n1"));
  EXPECT_TRUE(May(server, "get", "", "nodes/metrics", "", "n1"));
  EXPECT_FALSE(May(server, "get", "", "nodes", "", "n1"));
  EXPECT_FALSE(May(server, "get", "", "secrets", "default", "s"));
  EXPECT_FALSE(May(server, "create", "", "pods/exec", "default", "p"));
  const UserInfo node = NodeUser("n2");
  EXPECT_FALSE(May(node, "get", "", "nodes/proxy", "", "n1"));
}

TEST_F(RbacTest, RolesOfAnOlderReleaseAreCompletedUnlessAutoupdateIsOff) {
  const auto tree = [](std::string_view json) { return *api::ParseJson(json); };
  const api::TreePtr wanted = tree(
      R"({"metadata":{"labels":{"l":"new"}},"rules":[{"verbs":["get"]},{"verbs":["list"]}],
          "subjects":[{"name":"a"}]})");
  const api::TreePtr old = tree(
      R"({"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"}},
          "rules":[{"verbs":["list"]},{"verbs":["own"]}]})");
  const api::TreePtr now = ReconcilePolicy(old->root(), wanted->root());
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(now->root()["rules"].size(), 3u) << "what was added by hand stays";
  EXPECT_EQ(now->root()["rules"].at(2)["verbs"].at(0).str(), "get");
  EXPECT_EQ(now->root()["subjects"].size(), 1u);
  EXPECT_EQ(now->root()["metadata"]["labels"].Entry("l").str(), "new");
  EXPECT_EQ(ReconcilePolicy(now->root(), wanted->root()), nullptr) << "nothing is missing";
  const api::TreePtr fixed = tree(
      R"({"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},
          "rules":[]})");
  EXPECT_EQ(ReconcilePolicy(fixed->root(), wanted->root()), nullptr);
  const api::TreePtr aggregating =
      tree(R"({"aggregationRule":{"clusterRoleSelectors":[{}]},"rules":[{"verbs":["get"]}]})");
  EXPECT_EQ(ReconcilePolicy(old->root(), aggregating->root()), nullptr);
}

TEST_F(RbacTest, NonResourcePathsHaveRules) {
  EnsurePolicy();
  const UserInfo nobody{.name = "system:anonymous", .groups = {"system:unauthenticated"}};
  EXPECT_TRUE(rbac_.CheckPath(nobody, "get", "/healthz").allowed);
  EXPECT_FALSE(rbac_.CheckPath(nobody, "get", "/apis").allowed);
  EXPECT_TRUE(rbac_.CheckPath(PlainUser("u"), "get", "/apis/apps/v1").allowed);
  EXPECT_FALSE(rbac_.CheckPath(PlainUser("u"), "post", "/apis").allowed);
  EXPECT_FALSE(rbac_.CheckPath(PlainUser("u"), "get", "/metrics").allowed);
  EXPECT_TRUE(rbac_.CheckPath(AdminUser(), "get", "/metrics").allowed);
}

TEST_F(RbacTest, DeniedRequestsNameUserVerbAndResource) {
  Response refused = TryCreate(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}})",
                               PlainUser("u"));
  EXPECT_EQ(refused.http_status, 403);
  EXPECT_EQ(refused.failure->message,
            "configmaps is forbidden: User \"u\" cannot create resource \"configmaps\" in API "
            "group \"\" in the namespace \"default\"");
}

TEST(AuthorizerChainTest, TheFirstThatAllowsDecides) {
  struct Fixed final : Authorizer {
    explicit Fixed(Decision given) : answer(std::move(given)) {}
    Decision Check(const Attributes&) override { return answer; }
    Decision answer;
  };
  Fixed no(Decision::Deny("first")), silent(Decision::Deny()), also_no(Decision::Deny("second")),
      yes(Decision::Allow());
  const UserInfo user = PlainUser("u");
  const Authorizer::Attributes attributes{user, "get", "", "pods", "", "", "", ""};
  EXPECT_EQ(AuthorizerChain({&no, &silent, &also_no}).Check(attributes),
            Decision::Deny("first\nsecond"));
  EXPECT_EQ(AuthorizerChain({&no, &yes}).Check(attributes), Decision::Allow());
}

}  // namespace
}  // namespace drakkar::apiserver
