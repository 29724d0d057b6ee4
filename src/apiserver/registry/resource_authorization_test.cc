#include "apiserver/registry/resource_authorization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/request/node_identity.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::TreePtr Tree(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *std::move(tree);
}

// An allocation for node n1, with an entry of status.devices for each driver.
std::string Status(std::string_view devices, std::string_view node = "n1") {
  return StrCat(R"({"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":)",
                R"("metadata.name","operator":"In","values":[")", node, R"("]}]}]}},"devices":[)",
                devices, "]}");
}
std::string Device(std::string_view driver, std::string_view name = "d",
                   std::string_view more = "") {
  return StrCat(R"({"driver":")", driver, R"(","pool":"p","device":")", name, "\"", more, "}");
}

class ResourceAuthorization : public ::testing::Test {
 protected:
  std::vector<std::string> Texts(const Findings& found) {
    std::vector<std::string> texts;
    for (const Finding& finding : found.list()) texts.push_back(finding.error.ToString());
    return texts;
  }
  StrategyContext Context(Verb verb = Verb::kUpdate) {
    return {.clock = RealClock(),
            .random = RealRandom(),
            .gates = gates_,
            .user = user_,
            .verb = verb,
            .lookup = [this](std::string_view group, std::string_view plural,
                             const std::string& key) -> api::ObjectPtr {
              EXPECT_EQ(group, "");
              EXPECT_EQ(plural, "namespaces");
              return key == "home" ? home_ : nullptr;
            },
            .authorize =
                [this](std::string_view asked, std::string_view group, std::string_view resource,
                       std::string_view subresource, std::string_view namespace_,
                       std::string_view name) {
                  asked_.push_back(
                      StrCat(asked, " ", resource, "/", subresource, " ", namespace_, " ", name));
                  EXPECT_EQ(group, "resource.k8s.io");
                  return asked_.back() == allowed_ ? Decision::Allow() : Decision::Deny(reason_);
                }};
  }
  void Home(std::string_view labels) {
    home_ = std::make_shared<api::Object>(
        Tree(StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"home","labels":)",
                    labels, "}}")));
  }
  std::vector<std::string> Admin(std::string_view requests, std::string_view namespace_ = "home") {
    Findings found;
    const api::TreePtr tree = Tree(requests);
    CheckAdminAccess(found, tree->root(), namespace_, Context());
    return Texts(found);
  }
  std::vector<std::string> AdminStatus(std::string_view now, std::string_view before) {
    Findings found;
    const auto claim = [](std::string_view results) {
      return Tree(StrCat(R"({"metadata":{"namespace":"home"},"status":{"allocation":{"devices":{)",
                         R"("results":)", results, "}}}}"));
    };
    const api::TreePtr a = claim(now), b = claim(before);
    CheckAdminAccessStatus(found, a->root(), b->root(), Context());
    return Texts(found);
  }
  std::vector<std::string> Driver(std::string_view now, std::string_view before) {
    asked_.clear();
    Findings found;
    const api::TreePtr a = Tree(now), b = Tree(before);
    CheckDriverPermission(found, api::FieldPath("status"), a->root(), b->root(), "home", Context());
    return Texts(found);
  }
  std::vector<std::string> Binding(std::string_view now, std::string_view before,
                                   Verb verb = Verb::kUpdate) {
    asked_.clear();
    Findings found;
    const api::TreePtr a = Tree(now), b = Tree(before);
    CheckBindingPermission(found, api::FieldPath("status"), a->root(), b->root(), Context(verb));
    return Texts(found);
  }

  FeatureGates gates_;
  UserInfo user_{.name = "alice"};
  api::ObjectPtr home_;
  std::vector<std::string> asked_;
  std::string allowed_, reason_;
};

constexpr char kGranted[] = R"({"resource.kubernetes.io/admin-access":"true"})";

TEST_F(ResourceAuthorization, AdminAccessNeedsALabelOfTheNamespace) {
  const char* kSecond = R"([{"exactly":{}},{"exactly":{"adminAccess":true}}])";
  Home(kGranted);
  EXPECT_THAT(Admin(kSecond), IsEmpty());
  for (const char* labels : {"{}", R"({"resource.kubernetes.io/admin-access":"false"})"}) {
    Home(labels);
    EXPECT_THAT(Admin(kSecond),
                ElementsAre("spec.devices.requests[1].adminAccess: Forbidden: admin access to "
                            "devices requires the `resource.kubernetes.io/admin-access: true` "
                            "label on the containing namespace"));
  }
  EXPECT_THAT(Admin(kSecond, "gone"),
              ElementsAre(HasSubstr("could not retrieve namespace to verify admin access: "
                                    "namespaces \"gone\" not found")));
  EXPECT_THAT(Admin(R"([{"exactly":{"adminAccess":true}},{"exactly":{"adminAccess":true}}])"),
              ElementsAre(HasSubstr("requests[0]")))
      << "once";
  EXPECT_THAT(Admin(R"([{"exactly":{"adminAccess":false}},{"exactly":{}}])"), IsEmpty());
}

TEST_F(ResourceAuthorization, AStatusMayGrantAdminAccessOnlyWithTheLabelToo) {
  Home("{}");
  EXPECT_THAT(
      AdminStatus(R"([{},{"adminAccess":true}])", "[]"),
      ElementsAre(HasSubstr("status.allocation.devices.results[1].adminAccess: Forbidden")));
  EXPECT_THAT(AdminStatus(R"([{"adminAccess":true}])", R"([{"adminAccess":true}])"), IsEmpty())
      << "what was granted stays granted";
  EXPECT_THAT(AdminStatus(R"([{},{"adminAccess":false}])", "[]"), IsEmpty());
  Home(kGranted);
  EXPECT_THAT(AdminStatus(R"([{"adminAccess":true}])", "[]"), IsEmpty());
}

TEST_F(ResourceAuthorization, AllocatingAndReservingNeedTheBindingPermission) {
  const std::string plain = R"({"allocation":{"devices":{}}})";
  EXPECT_THAT(Binding(plain, plain), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty()) << "nothing changes";
  EXPECT_THAT(Binding(R"({"reservedFor":[]})", "{}"), IsEmpty()) << "no list is an empty list";
  EXPECT_THAT(Binding(R"({"devices":[{"driver":"d"}]})", "{}"), IsEmpty()) << "not its business";

  reason_ = "no rule";
  EXPECT_THAT(Binding(plain, "{}"),
              ElementsAre("status: Forbidden: changing status.allocation or status.reservedFor "
                          "requires resource=\"resourceclaims/binding\", verb=\"update\" "
                          "permission: resourceclaims.resource.k8s.io is forbidden: User \"alice\" "
                          "cannot update resource \"resourceclaims/binding\" in API group "
                          "\"resource.k8s.io\" at the cluster scope: no rule"));
  EXPECT_THAT(asked_, ElementsAre("update resourceclaims/binding  "));
  EXPECT_EQ(Binding("{}", plain).size(), 1u) << "deallocating, too";
  EXPECT_EQ(Binding(R"({"reservedFor":[{"resource":"pods","name":"a","uid":"u"}]})", "{}").size(),
            1u);
  EXPECT_THAT(Binding(plain, "{}", Verb::kPatch), ElementsAre(HasSubstr("verb=\"patch\"")));
  reason_ = "";
  EXPECT_THAT(Binding(plain, "{}"), ElementsAre(::testing::EndsWith("at the cluster scope")));
  allowed_ = "update resourceclaims/binding  ";
  EXPECT_THAT(Binding(plain, "{}"), IsEmpty());
}

TEST_F(ResourceAuthorization, ADriversEntriesNeedThePermissionForThatDriver) {
  const std::string none = Status("");
  EXPECT_THAT(Driver(none, none), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(
      Driver(Status(Device("a.example.com")), none),
      ElementsAre("status: Forbidden: changing status.devices requires "
                  "resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:update]\" "
                  "permission: resourceclaims.resource.k8s.io \"a.example.com\" is forbidden: User "
                  "\"alice\" cannot arbitrary-node:update resource \"resourceclaims/driver\" in "
                  "API group \"resource.k8s.io\" in the namespace \"home\""));
  EXPECT_THAT(asked_,
              ElementsAre("arbitrary-node:update resourceclaims/driver home a.example.com"));
  allowed_ = "arbitrary-node:update resourceclaims/driver home a.example.com";
  EXPECT_THAT(Driver(Status(Device("a.example.com")), none), IsEmpty());
  EXPECT_THAT(Driver(Status(StrCat(Device("a.example.com"), ",", Device("b.example.com"))), none),
              ElementsAre(HasSubstr("\"b.example.com\" is forbidden")));
}

TEST_F(ResourceAuthorization, ADriverOnTheNodeOfTheAllocationMayHaveALesserPermission) {
  const std::string now = Status(Device("a.example.com"));
  allowed_ = "associated-node:update resourceclaims/driver home a.example.com";
  const auto asks_both = [&] {
    const bool allowed = Driver(now, "{}").empty();
    return allowed && asked_.size() == 1 && asked_[0] == allowed_;
  };
  EXPECT_FALSE(asks_both()) << "alice is on no node";
  user_ = {.name = "system:serviceaccount:drivers:a",
           .extra = {{std::string(kNodeNameExtra), {"n1"}}}};
  EXPECT_TRUE(asks_both());
  user_.extra[std::string(kNodeNameExtra)] = {"n2"};
  EXPECT_FALSE(asks_both()) << "on another node";
  user_ = {.name = "drakkar:node-driver:n1", .groups = {std::string(kNodeDriversGroup)}};
  EXPECT_TRUE(asks_both());
  user_.name = "drakkar:node-driver:n2";
  EXPECT_FALSE(asks_both());
  user_ = {.name = "drakkar:node-driver:n1"};
  EXPECT_FALSE(asks_both()) << "anybody may have this name";
  EXPECT_EQ(asked_.size(), 1u);
  user_.groups = {std::string(kNodeDriversGroup)};
  allowed_ = "arbitrary-node:update resourceclaims/driver home a.example.com";
  EXPECT_THAT(Driver(now, "{}"), IsEmpty());
  EXPECT_EQ(asked_.size(), 2u) << "the lesser one first";
  allowed_ = "";
  reason_ = "no rule";
  EXPECT_THAT(Driver(now, "{}"),
              ElementsAre(HasSubstr("verb=\"[associated-node:update arbitrary-node:update]\" "
                                    "permission: resourceclaims.resource.k8s.io \"a.example.com\" "
                                    "is forbidden: User \"drakkar:node-driver:n1\" cannot "
                                    "associated-node:update")));
}

TEST(ModifiedDrivers, AreThoseWithAnEntryThatIsNewGoneOrDifferent) {
  const auto drivers = [](std::string_view now, std::string_view before) {
    const api::TreePtr a = Tree(StrCat(R"({"devices":[)", now, "]}"));
    const api::TreePtr b = Tree(StrCat(R"({"devices":[)", before, "]}"));
    return ModifiedDrivers(a->root(), b->root());
  };
  const std::string a = Device("a"), b = Device("b"), both = StrCat(a, ",", b);
  EXPECT_THAT(drivers(both, both), IsEmpty());
  EXPECT_THAT(drivers(StrCat(b, ",", a), both), IsEmpty()) << "the order does not matter";
  EXPECT_THAT(drivers(both, b), ElementsAre("a"));
  EXPECT_THAT(drivers(a, both), ElementsAre("b"));
  EXPECT_THAT(drivers(StrCat(a, ",", Device("b", "d", R"(,"data":{"x":1})")), both),
              ElementsAre("b"));
  EXPECT_THAT(drivers(Device("a", "other"), a), ElementsAre("a"));
  EXPECT_THAT(drivers("", both), ElementsAre("a", "b"));
}

TEST(NodeOfAllocation, IsKnownIfTheSelectorNamesExactlyOneNode) {
  const auto node = [](std::string_view terms) {
    const api::TreePtr tree = Tree(StrCat(R"({"nodeSelector":{"nodeSelectorTerms":)", terms, "}}"));
    return std::string(NodeOfAllocation(tree->root()));
  };
  const std::string field = R"({"key":"metadata.name","operator":"In","values":["n1"]})";
  const auto term = [](std::string_view fields) {
    return StrCat(R"({"matchFields":[)", fields, "]}");
  };
  EXPECT_EQ(node(StrCat("[", term(field), "]")), "n1");
  EXPECT_EQ(node("[]"), "");
  EXPECT_EQ(node(StrCat("[", term(field), ",", term(field), "]")), "") << "two terms";
  EXPECT_EQ(node(StrCat("[", term(StrCat(field, ",", field)), "]")), "") << "two fields";
  EXPECT_EQ(node(StrCat(R"([{"matchExpressions":[{"key":"a"}],"matchFields":[)", field, "]}]")),
            "");
  EXPECT_EQ(
      node(StrCat("[", term(R"({"key":"metadata.uid","operator":"In","values":["n1"]})"), "]")),
      "");
  EXPECT_EQ(
      node(StrCat("[", term(R"({"key":"metadata.name","operator":"NotIn","values":["n1"]})"), "]")),
      "");
  EXPECT_EQ(node(StrCat(
                "[", term(R"({"key":"metadata.name","operator":"In","values":["n1","n2"]})"), "]")),
            "");
}

TEST(ServiceAccountOnNode, IsOneWithATokenBoundToTheNode) {
  const auto is_there = [](std::string name, std::vector<std::string> nodes, std::string node) {
    return IsServiceAccountOnNode(
        {.name = std::move(name), .extra = {{std::string(kNodeNameExtra), std::move(nodes)}}},
        node);
  };
  const std::string account = "system:serviceaccount:drivers:a";
  EXPECT_TRUE(is_there(account, {"n1"}, "n1"));
  EXPECT_FALSE(is_there(account, {"n1"}, "n2"));
  EXPECT_FALSE(is_there(account, {"n1"}, ""));
  EXPECT_FALSE(is_there(account, {""}, ""));
  EXPECT_FALSE(is_there(account, {}, "n1"));
  EXPECT_FALSE(is_there(account, {"n1", "n1"}, "n1"));
  EXPECT_FALSE(is_there(account, {"N_1"}, "N_1")) << "no name of a node";
  EXPECT_FALSE(is_there("alice", {"n1"}, "n1"));
  EXPECT_FALSE(is_there("system:serviceaccount:drivers", {"n1"}, "n1"));
  EXPECT_FALSE(is_there("system:serviceaccount:drivers:a:b", {"n1"}, "n1"));
  EXPECT_FALSE(is_there("system:serviceaccount:Drivers:a", {"n1"}, "n1"));
  EXPECT_FALSE(is_there("system:serviceaccount:drivers:A", {"n1"}, "n1"));
}

}  // namespace
}  // namespace drakkar::apiserver
