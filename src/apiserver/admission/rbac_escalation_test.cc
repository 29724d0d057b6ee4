#include "apiserver/admission/rbac_escalation.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class RbacEscalationTest : public CoreFixture {
 protected:
  RbacEscalationTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<RbacEscalation>(rbac_));
    StartCore(&rbac_, std::move(steps));
    rbac_.Attach(*core_);
    Role(
        "author",
        R"([{"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"],"verbs":["create","update"]},)"
        R"({"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}])");
    Bind("author", "author", AdminUser());
  }
  ~RbacEscalationTest() override { rbac_.Detach(); }

  Response TryRole(std::string_view name, std::string_view rules, UserInfo user) {
    return TryCreate(StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",)",
                            R"("metadata":{"name":")", name, R"("},"rules":)", rules, "}"),
                     std::move(user));
  }
  void Role(std::string_view name, std::string_view rules) {
    EXPECT_FALSE(TryRole(name, rules, AdminUser()).failure);
  }
  Response Bind(std::string_view name, std::string_view role, UserInfo user) {
    return TryCreate(
        StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",)",
               R"("metadata":{"name":")", name, R"("},"roleRef":{"apiGroup":)",
               R"("rbac.authorization.k8s.io","kind":"ClusterRole","name":")", role,
               R"("},"subjects":[{"kind":"User","name":"ann"}]})"),
        std::move(user));
  }

  RbacAuthorizer rbac_;
};

constexpr std::string_view kPods = R"([{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}])";
constexpr std::string_view kSecrets =
    R"([{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}])";

TEST_F(RbacEscalationTest, AnAuthorMayGrantOnlyTheirOwnPermissions) {
  EXPECT_FALSE(TryRole("readers", kPods, PlainUser("ann")).failure);
  const Response refused = TryRole("thieves", kSecrets, PlainUser("ann"));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->message,
            "clusterroles.rbac.authorization.k8s.io \"thieves\" is forbidden: user \"ann\" "
            "(groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not "
            "currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
  EXPECT_TRUE(
      TryRole("all", R"([{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}])", PlainUser("ann"))
          .failure.has_value());
}

TEST_F(RbacEscalationTest, BindingARoleNeedsItsPermissionsOrTheVerbBind) {
  Role("readers", kPods);
  Role("thieves", kSecrets);
  EXPECT_FALSE(Bind("mine", "readers", PlainUser("ann")).failure);
  EXPECT_TRUE(Bind("not-mine", "thieves", PlainUser("ann")).failure.has_value());
  Role(
      "binders",
      R"([{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["bind"],"resourceNames":["thieves"]}])");
  EXPECT_FALSE(Bind("binders", "binders", AdminUser()).failure);
  EXPECT_FALSE(Bind("now-mine", "thieves", PlainUser("ann")).failure);
}

TEST_F(RbacEscalationTest, RulesWithTooManyCombinationsAreRejectedUnchecked) {
  const auto list = [](std::string_view word) {
    std::string text = "[";
    for (int i = 0; i < 1'000; ++i) text += StrCat(i == 0 ? "" : ",", "\"", word, "\"");
    return text + "]";
  };
  // The user holds all of them, but finding that out would take a billion checks.
  const Response refused = TryRole("many",
                                   StrCat(R"([{"apiGroups":)", list(""), R"(,"resources":)",
                                          list("pods"), R"(,"verbs":)", list("get"), "}]"),
                                   PlainUser("ann"));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(
      refused.failure->message,
      "clusterroles.rbac.authorization.k8s.io \"many\" is forbidden: the rules grant more "
      "than 100000 permissions, too many to check against those of user \"ann\"; grant fewer at "
      "once");
}

TEST_F(RbacEscalationTest, ARoleThatDoesNotExistCannotBeBound) {
  const Response refused = Bind("early", "admin-to-be", PlainUser("ann"));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 404);
  EXPECT_EQ(refused.failure->message,
            "clusterroles.rbac.authorization.k8s.io \"admin-to-be\" not found");
  const Response in_namespace = TryCreate(
      R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
          "metadata":{"name":"early"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",
          "kind":"Role","name":"to-be"},"subjects":[{"kind":"User","name":"ann",
          "apiGroup":"rbac.authorization.k8s.io"}]})",
      PlainUser("ann"));
  ASSERT_TRUE(in_namespace.failure.has_value());
  EXPECT_EQ(in_namespace.failure->message, "roles.rbac.authorization.k8s.io \"to-be\" not found");
  // As in Kubernetes, a user who may bind anything may bind a role before it exists.
  EXPECT_FALSE(Bind("early", "admin-to-be", AdminUser()).failure);
}

}  // namespace
}  // namespace drakkar::apiserver
