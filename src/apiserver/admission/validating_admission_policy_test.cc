#include "apiserver/admission/validating_admission_policy.h"

#include "apiserver/auth/rbac.h"
#include "apiserver/testing/core_fixture.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class ValidatingAdmissionPolicyTest : public CoreFixture {
 protected:
  ValidatingAdmissionPolicyTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<ValidatingAdmissionPolicyStep>(policies_, &rbac_));
    StartCore(&rbac_, std::move(steps));
    rbac_.Attach(*core_);
    policies_.Attach(*core_);
  }
  ~ValidatingAdmissionPolicyTest() override {
    policies_.Detach();
    rbac_.Detach();
  }

  static std::string PolicyJson(std::string_view spec, std::string_view resource = "configmaps",
                                std::string_view name = "p") {
    return StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                  R"("kind":"ValidatingAdmissionPolicy","metadata":{"name":")", name,
                  R"("},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],)",
                  R"("apiVersions":["*"],"operations":["*"],"resources":[")", resource, R"("]}]},)",
                  spec, "}}");
  }
  Response TryPolicy(std::string_view spec, std::string_view resource = "configmaps") {
    return TryCreate(PolicyJson(spec, resource));
  }
  void Policy(std::string_view spec, std::string_view resource = "configmaps",
              std::string_view name = "p") {
    Create(PolicyJson(spec, resource, name));
  }
  void Bind(std::string_view more = R"("validationActions":["Deny"])", std::string_view name = "b",
            std::string_view policy = "p") {
    Create(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                  R"("kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":")", name,
                  R"("},"spec":{"policyName":")", policy, R"(",)", more, "}}"));
  }
  Response TryConfigMap(std::string_view name, std::string_view data = R"({"k":"v"})",
                        UserInfo user = AdminUser(), std::string_view namespace_ = "default") {
    return TryCreate(StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                            R"(","namespace":")", namespace_, R"("},"data":)", data, "}"),
                     std::move(user));
  }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "accepted";
  }

  RbacAuthorizer rbac_;
  PolicySet policies_;
};

TEST_F(ValidatingAdmissionPolicyTest, ABoundPolicyRejectsWhatViolatesIt) {
  Policy(R"("validations":[{"expression":"object.data.size() < 2"}])");
  EXPECT_FALSE(TryConfigMap("unbound", R"({"a":"","b":""})").failure) << "no binding, no effect";
  Bind();
  EXPECT_FALSE(TryConfigMap("one").failure);
  const Response refused = TryConfigMap("two", R"({"a":"","b":""})");
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 422);
  EXPECT_EQ(refused.failure->reason, "Invalid");
  EXPECT_EQ(
      refused.failure->message,
      "configmaps \"two\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
      "request: failed expression: object.data.size() < 2");
  ASSERT_EQ(refused.failure->causes.size(), 1u);
  EXPECT_EQ(Delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "b")
                .failure.has_value(),
            false);
  EXPECT_FALSE(TryConfigMap("two", R"({"a":"","b":""})").failure) << "the binding is gone";
}

TEST_F(ValidatingAdmissionPolicyTest, OtherResourcesAreNotConcerned) {
  Policy(R"("validations":[{"expression":"false"}])");
  Bind();
  EXPECT_TRUE(policies_.For(*api::FindKind("", "v1", "Secret")).empty());
  EXPECT_EQ(policies_.For(*api::FindKind("", "v1", "ConfigMap")).size(), 1u);
  EXPECT_FALSE(TryCreate(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})").failure);
}

TEST_F(ValidatingAdmissionPolicyTest, BindingsAndEvictionsAreSeenAsTheirOwnBodies) {
  Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})");
  for (const std::string_view name : {"bound", "free", "evicted"}) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"("},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
  }
  const auto act = [&](std::string name, std::string subresource, std::string_view text) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kCreate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = std::move(name);
    request.subresource = std::move(subresource);
    request.object = *api::ParseJson(text);
    return Handle(std::move(request));
  };
  constexpr std::string_view kBinding =
      R"({"apiVersion":"v1","kind":"Binding","target":{"kind":"Node","name":"n"}})";
  Policy(
      R"~("validations":[{"expression":"object.kind != 'Binding' || request.name != 'bound' || )~"
      R"~(request.subResource != 'binding' || object.target.name != 'n' || oldObject != null"}])~",
      "pods/*");
  Policy(R"("validations":[{"expression":"object.kind != 'Eviction'","message":"stays"}])", "*/*",
         "q");
  Policy(R"("validations":[{"expression":"false"}],"failurePolicy":"Fail")", "pods", "r");
  Bind();
  Bind(R"("validationActions":["Deny"])", "c", "q");
  const Response refused = act("bound", "binding", kBinding);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->message.find(
                "pods \"bound\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b'"),
            0u)
      << Message(refused);
  EXPECT_EQ(Message(act("free", "binding", kBinding)), "accepted");
  constexpr std::string_view kEviction = R"({"apiVersion":"policy/v1","kind":"Eviction"})";
  EXPECT_TRUE(Message(act("evicted", "eviction", kEviction)).ends_with("denied request: stays"));
  EXPECT_NE(core_->Find("", "pods", "default/evicted"), nullptr);
  // The deletion that an admitted eviction leads to is not reviewed again.
  EXPECT_FALSE(
      Delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "c")
          .failure);
  Bind(R"("validationActions":["Deny"])", "d", "r");
  EXPECT_EQ(Message(act("evicted", "eviction", kEviction)), "accepted");
  EXPECT_EQ(core_->Find("", "pods", "default/evicted"), nullptr);
  EXPECT_TRUE(Delete("v1", "Pod", "default", "free").failure.has_value()) << "this one is";
}

TEST_F(ValidatingAdmissionPolicyTest, ConnectionsAreSeen) {
  Policy(R"~("validations":[{"expression":"!('sh' in object.command)","message":"no shells"}])~",
         "pods/exec");
  Bind(R"("validationActions":["Deny"])");
  const auto exec = [&](std::string_view command, std::string subresource = "exec") {
    Request request;
    request.user = AdminUser();
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = "p";
    request.subresource = std::move(subresource);
    std::string answer = "none";
    core_->AdmitConnection(request, *api::FindKind("", "v1", "PodExecOptions"),
                           *api::ParseJson(StrCat(R"({"kind":"PodExecOptions","apiVersion":"v1",)",
                                                  R"("command":[")", command, R"("]})")),
                           [&](const std::optional<Failure>& failure) {
                             answer = failure ? failure->message : "accepted";
                           });
    loop_.RunUntilIdle();
    return answer;
  };
  EXPECT_TRUE(exec("sh").ends_with("denied request: no shells")) << exec("sh");
  EXPECT_EQ(exec("ls"), "accepted");
  EXPECT_EQ(exec("sh", "attach"), "accepted") << "another subresource";
}

TEST_F(ValidatingAdmissionPolicyTest, PoliciesCannotLockOutTheirAdministrator) {
  Policy(R"("validations":[{"expression":"false"}])", "*");
  Bind();
  EXPECT_TRUE(TryConfigMap("c").failure.has_value());
  EXPECT_FALSE(Delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "p")
                   .failure.has_value());
  EXPECT_FALSE(TryConfigMap("c").failure);
}

TEST_F(ValidatingAdmissionPolicyTest, MessagesAndReasonsAreThePolicys) {
  Policy(R"("validations":[{"expression":"object.metadata.name != 'a'","message":" no a ",)"
         R"("reason":"Forbidden"},{"expression":"object.metadata.name != 'b'",)"
         R"("message":"never shown","messageExpression":"'not ' + object.metadata.name"},)"
         R"({"expression":"object.metadata.name != 'c'","message":"plain",)"
         R"~("messageExpression":"string(object.missing)"}])~");
  Bind();
  const Response a = TryConfigMap("a");
  ASSERT_TRUE(a.failure.has_value());
  EXPECT_EQ(a.failure->code, 403);
  EXPECT_EQ(a.failure->reason, "Forbidden");
  EXPECT_TRUE(Message(a).ends_with("denied request: no a")) << Message(a);
  EXPECT_TRUE(Message(TryConfigMap("b")).ends_with("denied request: not b"));
  EXPECT_TRUE(Message(TryConfigMap("c")).ends_with("denied request: plain"))
      << "an error in messageExpression falls back to message";
}

TEST_F(ValidatingAdmissionPolicyTest, ErrorsFollowTheFailurePolicy) {
  Policy(R"("validations":[{"expression":"object.data.missing == 'x'"}])");
  Bind();
  EXPECT_TRUE(
      Message(TryConfigMap("c"))
          .ends_with(
              "expression 'object.data.missing == 'x'' resulted in error: no such key: missing"))
      << Message(TryConfigMap("c"));
  Policy(R"("failurePolicy":"Ignore","validations":[{"expression":"object.data.x == 'x'"}])",
         "secrets", "ignoring");
  Bind(R"("validationActions":["Deny"])", "b2", "ignoring");
  EXPECT_FALSE(TryCreate(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})").failure);
}

TEST_F(ValidatingAdmissionPolicyTest, WarnLetsTheRequestPass) {
  Policy(R"("validations":[{"expression":"false","message":"look out"}])");
  Bind(R"("validationActions":["Warn","Audit"])");
  const Response response = TryConfigMap("c");
  EXPECT_FALSE(response.failure.has_value());
  ASSERT_EQ(response.warnings.size(), 1u);
  EXPECT_EQ(response.warnings[0],
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': look out");
}

TEST_F(ValidatingAdmissionPolicyTest, MatchConditionsAndSelectorsNarrowThePolicy) {
  Policy(R"("matchConditions":[{"name":"not-admins","expression":)"
         R"~("!('system:masters' in request.userInfo.groups)"}],)~"
         R"("validations":[{"expression":"false"}])",
         "namespaces");
  Bind();
  const auto create = [&](std::string_view name) {
    return TryCreate(
        StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name, R"("}})"));
  };
  EXPECT_FALSE(create("by-admin").failure);
  Policy(R"("validations":[{"expression":"false"}])", "configmaps", "selective");
  Bind(R"("validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":)"
       R"({"kubernetes.io/metadata.name":"other"}},"objectSelector":{"matchExpressions":[)"
       R"({"key":"free","operator":"DoesNotExist"}]}})",
       "b2", "selective");
  EXPECT_FALSE(TryConfigMap("c").failure) << "another namespace";
  EXPECT_TRUE(TryConfigMap("c", "{}", AdminUser(), "other").failure.has_value());
  EXPECT_FALSE(TryCreate(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c",
      "namespace":"other","labels":{"free":"yes"}}})")
                   .failure);
}

TEST_F(ValidatingAdmissionPolicyTest, UpdatesAndDeletionsSeeTheOldObject) {
  Policy(R"("validations":[{"expression":"request.operation != 'UPDATE' || )"
         R"(object.data.k == oldObject.data.k","message":"k is immutable"},)"
         R"({"expression":"request.operation != 'DELETE' || (object == null && )"
         R"~(oldObject.data.k != 'kept')","message":"it is kept"}])~");
  Bind();
  ASSERT_FALSE(TryConfigMap("c", R"({"k":"kept"})").failure);
  const auto update = [&](std::string_view data) {
    return Handle(RequestFor(
        Verb::kUpdate,
        StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":)", data,
               "}"),
        AdminUser()));
  };
  EXPECT_FALSE(update(R"({"k":"kept","more":"x"})").failure);
  EXPECT_TRUE(Message(update(R"({"k":"other"})")).ends_with("k is immutable"));
  EXPECT_TRUE(Message(Delete("v1", "ConfigMap", "default", "c")).ends_with("it is kept"));
}

// The policy that public DRA drivers bring: a driver changes only the slices of its own node.
TEST_F(ValidatingAdmissionPolicyTest, ADriverIsConfinedToItsNode) {
  Policy(
      R"("matchConditions":[{"name":"isRestrictedUser","expression":)"
      R"("request.userInfo.username == \"system:serviceaccount:gpu:driver\""}],)"
      R"("variables":[{"name":"userNodeName","expression":)"
      R"~("request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"},)~"
      R"({"name":"objectNodeName","expression":)"
      R"~("(request.operation == \"DELETE\" ? oldObject : object).spec.?nodeName.orValue(\"\")"}],)~"
      R"("validations":[{"expression":"variables.userNodeName != \"\"","message":"no node"},)"
      R"({"expression":"variables.userNodeName == variables.objectNodeName","messageExpression":)"
      R"("\"this user running on node '\"+variables.userNodeName+\"' may not modify \" + )"
      R"((variables.objectNodeName == \"\" ? \"cluster resourceslices\" : )"
      R"~(\"resourceslices on node '\"+variables.objectNodeName+\"'\")"}])~",
      "resourceslices");
  Bind();
  Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
    "metadata":{"name":"slices"},"rules":[{"apiGroups":["resource.k8s.io"],
    "resources":["resourceslices"],"verbs":["*"]}]})");
  Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",
    "metadata":{"name":"slices"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",
    "kind":"ClusterRole","name":"slices"},"subjects":[{"kind":"Group","name":
    "system:authenticated","apiGroup":"rbac.authorization.k8s.io"}]})");
  const auto slice = [&](std::string_view name, std::string_view node, UserInfo user) {
    return TryCreate(
        StrCat(R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceSlice",)",
               R"("metadata":{"name":")", name, R"("},"spec":{"driver":"gpu.example.com",)",
               R"("pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":1},)",
               R"("nodeName":")", node, R"("}})"),
        std::move(user));
  };
  UserInfo driver = PlainUser("system:serviceaccount:gpu:driver");
  driver.extra["authentication.kubernetes.io/node-name"] = {"node-1"};
  EXPECT_EQ(Message(slice("a", "node-1", driver)), "accepted");
  EXPECT_TRUE(Message(slice("b", "node-2", driver))
                  .ends_with("this user running on node 'node-1' may not modify resourceslices on "
                             "node 'node-2'"))
      << Message(slice("b", "node-2", driver));
  EXPECT_EQ(Message(slice("c", "node-3", AdminUser())), "accepted");
  EXPECT_TRUE(Message(Delete("resource.k8s.io/v1", "ResourceSlice", "", "c", driver))
                  .ends_with("on node 'node-3'"));
}

TEST_F(ValidatingAdmissionPolicyTest, ParametersComeFromTheBinding) {
  Policy(R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)"
         R"~("validations":[{"expression":"object.spec.replicas <= int(params.data.max)",)~"
         R"("messageExpression":"'at most ' + params.data.max"}])",
         "deployments");
  Bind(R"("validationActions":["Deny"],"paramRef":{"name":"limits",)"
       R"("parameterNotFoundAction":"Deny"})");
  const auto deployment = [&](int replicas) {
    return TryCreate(StrCat(
        R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d)", replicas,
        R"("},"spec":{"replicas":)", replicas,
        R"(,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)",
        R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})"));
  };
  EXPECT_TRUE(
      Message(deployment(1))
          .ends_with("failed to configure binding: no params found for policy binding with `Deny` "
                     "parameterNotFoundAction"))
      << Message(deployment(1));
  ASSERT_FALSE(TryConfigMap("limits", R"({"max":"3"})").failure);
  EXPECT_EQ(Message(deployment(3)), "accepted");
  EXPECT_TRUE(Message(deployment(4)).ends_with("at most 3")) << Message(deployment(4));
}

TEST_F(ValidatingAdmissionPolicyTest, ExpressionsMayAskForPermissions) {
  Policy(
      R"("validations":[{"expression":)"
      R"~("authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",)~"
      R"("message":"may not read secrets"},{"expression":)"
      R"~("authorizer.requestResource.check('create').allowed()","message":"impossible"},)~"
      R"~({"expression":"!authorizer.serviceAccount('default','nobody').path('/metrics'))~"
      R"~(.check('get').allowed()","message":"impossible"}])~");
  Bind();
  Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
    "metadata":{"name":"maps"},"rules":[{"apiGroups":[""],"resources":["configmaps"],
    "verbs":["create"]}]})");
  Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",
    "metadata":{"name":"maps"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",
    "kind":"ClusterRole","name":"maps"},"subjects":[{"kind":"User","name":"ann",
    "apiGroup":"rbac.authorization.k8s.io"}]})");
  EXPECT_EQ(Message(TryConfigMap("by-admin")), "accepted");
  EXPECT_TRUE(
      Message(TryConfigMap("by-ann", "{}", PlainUser("ann"))).ends_with("may not read secrets"));
}

TEST_F(ValidatingAdmissionPolicyTest, ExpressionsHaveACostLimit) {
  Policy(R"("validations":[{"expression":"object.data.all(a, object.data.all(b, )"
         R"~(object.data.all(c, a + b + c != 'x')))"}])~");
  Bind();
  std::string data = "{";
  for (int i = 0; i < 100; ++i) data += StrCat(i == 0 ? "" : ",", "\"k", i, "\":\"\"");
  const Response refused = TryConfigMap("many", data + "}");
  EXPECT_TRUE(Message(refused).ends_with("operation cancelled: actual cost limit exceeded"))
      << Message(refused);
}

TEST_F(ValidatingAdmissionPolicyTest, PoliciesThatDoNotCompileAreRejected) {
  const Response unknown = TryPolicy(R"("validations":[{"expression":"objekt.x == 1"}])");
  ASSERT_TRUE(unknown.failure.has_value());
  ASSERT_EQ(unknown.failure->causes.size(), 1u);
  EXPECT_EQ(unknown.failure->causes[0].field, "spec.validations[0].expression");
  EXPECT_NE(unknown.failure->message.find(
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt'"),
            std::string::npos)
      << unknown.failure->message;
  EXPECT_NE(Message(TryPolicy(R"("validations":[{"expression":"object.x"}])"))
                .find("must evaluate to bool but got dyn"),
            std::string::npos);
  EXPECT_NE(Message(TryPolicy(R"("validations":[{"expression":"params.x == 1"}])"))
                .find("undeclared reference to 'params'"),
            std::string::npos)
      << "there is no paramKind";
  EXPECT_NE(Message(TryPolicy(R"("variables":[{"name":"a","expression":"variables.b"},)"
                              R"({"name":"b","expression":"1"}],)"
                              R"("validations":[{"expression":"variables.a == 1"}])"))
                .find("undefined field 'b'"),
            std::string::npos)
      << "variables see only earlier ones";
  EXPECT_NE(Message(TryPolicy(R"("failurePolicy":"Fail")"))
                .find("validations or auditAnnotations must contain at least one item"),
            std::string::npos);
}

TEST_F(ValidatingAdmissionPolicyTest, BindingsAreValidated) {
  const auto bind = [&](std::string_view spec) {
    return Message(TryCreate(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                                    R"("kind":"ValidatingAdmissionPolicyBinding",)",
                                    R"("metadata":{"name":"x"},"spec":)", spec, "}")));
  };
  EXPECT_NE(bind(R"({"policyName":"p"})").find("at least one validation action is required"),
            std::string::npos);
  EXPECT_NE(bind(R"({"policyName":"p","validationActions":["Deny","Warn"]})")
                .find("must not contain both Deny and Warn"),
            std::string::npos);
  EXPECT_NE(bind(R"({"policyName":"p","validationActions":["Deny"],"paramRef":{}})")
                .find("one of name or selector must be specified"),
            std::string::npos);
}

TEST_F(ValidatingAdmissionPolicyTest, APolicyIsCompiledAgainOnlyIfItChanged) {
  Policy(R"("validations":[{"expression":"true"}])");
  Bind();
  EXPECT_FALSE(TryConfigMap("a").failure);
  const api::KindSchema& kind = *api::FindKind("", "v1", "ConfigMap");
  const auto compiled = policies_.For(kind)[0]->policy;
  ASSERT_NE(compiled, nullptr);
  Policy(R"("validations":[{"expression":"true"}])", "configmaps", "other");
  Bind(R"("validationActions":["Deny"])", "b2", "other");
  EXPECT_EQ(policies_.For(kind).size(), 2u);
  EXPECT_EQ(policies_.For(kind)[1]->policy, compiled) << "by name: other, p";
}

}  // namespace
}  // namespace drakkar::apiserver
