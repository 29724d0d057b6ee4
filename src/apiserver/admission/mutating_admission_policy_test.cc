#include "apiserver/admission/mutating_admission_policy.h"

#include <gmock/gmock.h>

#include "api/json/writer.h"
#include "apiserver/admission/admission.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;

class MutatingAdmissionPolicyTest : public CoreFixture {
 protected:
  MutatingAdmissionPolicyTest() {
    StartCore(nullptr, MakeAdmissionChain({.mutating_policies = &policies_}));
    policies_.Attach(*core_);
  }
  ~MutatingAdmissionPolicyTest() override { policies_.Detach(); }

  static std::string Expression(std::string_view source) {
    return api::WriteJson(api::Draft(source).Freeze()->root(), {.escape_html = false});
  }
  static std::string Apply(std::string_view source) {
    return StrCat(R"({"patchType":"ApplyConfiguration","applyConfiguration":{"expression":)",
                  Expression(source), "}}");
  }
  static std::string JsonPatch(std::string_view source) {
    return StrCat(R"({"patchType":"JSONPatch","jsonPatch":{"expression":)", Expression(source),
                  "}}");
  }
  Response TryPolicy(std::string_view name, std::string_view mutations, std::string_view more = "",
                     std::string_view resource = "configmaps",
                     std::string_view reinvocation = "Never") {
    return TryCreate(
        StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
               R"("kind":"MutatingAdmissionPolicy","metadata":{"name":")", name,
               R"("},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],)",
               R"("apiVersions":["*"],"operations":["CREATE","UPDATE"],)", R"("resources":[")",
               resource, R"("]}]},"reinvocationPolicy":")", reinvocation, R"(","mutations":[)",
               mutations, "]", more, "}}"));
  }
  void Policy(std::string_view name, std::string_view mutations, std::string_view more = "",
              std::string_view resource = "configmaps", std::string_view reinvocation = "Never") {
    const Response made = TryPolicy(name, mutations, more, resource, reinvocation);
    ASSERT_FALSE(made.failure) << made.failure->message;
    EXPECT_TRUE(made.warnings.empty());
    Bind(name);
  }
  void Bind(std::string_view name, std::string_view more = "") {
    Create(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                  R"("kind":"MutatingAdmissionPolicyBinding","metadata":{"name":")", name,
                  R"("},"spec":{"policyName":")", name, "\"", more, "}}"));
  }
  Response TryConfigMap(std::string_view name, std::string_view data = R"({"k":"v"})") {
    return TryCreate(StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                            R"(","labels":{"a":"b"}},"data":)", data, "}"));
  }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "accepted";
  }
  static std::string Labels(const Response& response) {
    if (response.failure) return response.failure->message;
    return api::WriteJson(response.object->root()["metadata"]["labels"]);
  }

  MutatingPolicySet policies_;
};

TEST_F(MutatingAdmissionPolicyTest, AnApplyConfigurationIsMerged) {
  Policy("p", Apply(R"(Object{metadata: Object.metadata{labels: {"from": object.data.k}}})"));
  EXPECT_EQ(Labels(TryConfigMap("a")), R"({"a":"b","from":"v"})");
}

TEST_F(MutatingAdmissionPolicyTest, AJsonPatchIsApplied) {
  Policy("p", JsonPatch(R"([JSONPatch{op: "add", path: "/metadata/labels/" + )"
                        R"(jsonpatch.escapeKey("example.com/x"), value: "y"},)"
                        R"(JSONPatch{op: "replace", path: "/data", value: {"n": "m"}}])"));
  const Response made = TryConfigMap("a");
  EXPECT_EQ(Labels(made), R"({"a":"b","example.com/x":"y"})");
  EXPECT_EQ(api::WriteJson(made.object->root()["data"]), R"({"n":"m"})");
}

TEST_F(MutatingAdmissionPolicyTest, APatchWhoseTestFailsChangesNothing) {
  Policy("p", JsonPatch(R"([JSONPatch{op: "test", path: "/data/k", value: "other"},)"
                        R"(JSONPatch{op: "remove", path: "/data"}])"));
  EXPECT_EQ(api::WriteJson(TryConfigMap("a").object->root()["data"]), R"({"k":"v"})");
}

TEST_F(MutatingAdmissionPolicyTest, ListsWithKeysAreMergedAndDefaulted) {
  Policy("p",
         Apply(R"(Object{spec: Object.spec{initContainers: [)"
               R"(Object.spec.initContainers{name: "mesh", image: "proxy:1",)"
               R"( restartPolicy: "Always"}]}})"),
         "", "pods");
  Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  const Response made = TryCreate(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
                                  R"("spec":{"containers":[{"name":"x","image":"y"}]}})");
  ASSERT_FALSE(made.failure) << made.failure->message;
  const api::Value side = made.object->root()["spec"]["initContainers"].at(0);
  EXPECT_EQ(side["name"].str(), "mesh");
  EXPECT_EQ(side["imagePullPolicy"].str(), "IfNotPresent");
  EXPECT_GT(side["volumeMounts"].size(), 0u) << "the other steps ran again";
}

TEST_F(MutatingAdmissionPolicyTest, AtomicListsCannotBeApplied) {
  Policy("p",
         Apply(R"(Object{spec: Object.spec{containers: [)"
               R"(Object.spec.containers{name: "x", args: ["a"]}]}})"),
         "", "pods");
  Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  EXPECT_EQ(Message(TryCreate(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
                              R"("spec":{"containers":[{"name":"x","image":"y"}]}})")),
            "policy 'p' with binding 'p' denied request: error applying patch: invalid "
            "ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".spec.containers[0].args");
}

TEST_F(MutatingAdmissionPolicyTest, NamesOfTypesMustMatchTheirFields) {
  Policy("p", Apply("Object{metadata: Object.spec{}}"));
  EXPECT_THAT(Message(TryConfigMap("a")),
              HasSubstr("type mismatch: unexpected type name \"Object.spec\", expected "
                        "\"Object.metadata\""));
}

TEST_F(MutatingAdmissionPolicyTest, ErrorsFollowTheFailurePolicy) {
  Policy("p", Apply(R"(Object{data: {"x": object.data.none}})"));
  const Response refused = TryConfigMap("a");
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->reason, "Invalid");
  EXPECT_THAT(refused.failure->message, HasSubstr("resulted in error: no such key: none"));
  Delete("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "", "p");
  Policy("q", Apply(R"(Object{data: {"x": object.data.none}})"), R"(,"failurePolicy":"Ignore")");
  EXPECT_EQ(Message(TryConfigMap("a")), "accepted");
}

TEST_F(MutatingAdmissionPolicyTest, ConditionsVariablesAndParametersAreUsed) {
  Create(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"other"},)"
      R"("data":{"team":"red"}})");
  ASSERT_FALSE(
      TryPolicy("p", Apply("Object{metadata: Object.metadata{labels: {'team': variables.team}}}"),
                R"(,"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)"
                R"("variables":[{"name":"team","expression":"params.data.team"}],)"
                R"("matchConditions":[{"name":"c","expression":)"
                R"("object.metadata.name != 'skipped'"}])")
          .failure);
  Bind("p",
       R"(,"paramRef":{"name":"settings","namespace":"other","parameterNotFoundAction":"Deny"})");
  EXPECT_EQ(Labels(TryConfigMap("a")), R"({"a":"b","team":"red"})");
  EXPECT_EQ(Labels(TryConfigMap("skipped")), R"({"a":"b"})");
}

TEST_F(MutatingAdmissionPolicyTest, APolicyIsAppliedAgainIfALaterOneChangesTheObject) {
  const std::string counts = Apply(
      "Object{metadata: Object.metadata{labels: "
      "{'labels': string(object.metadata.labels.size())}}}");
  Policy("a", counts, "", "configmaps", "IfNeeded");
  Policy("b", Apply("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}"));
  EXPECT_EQ(Labels(TryConfigMap("x")), R"({"a":"b","labels":"3","late":"yes"})");
}

TEST_F(MutatingAdmissionPolicyTest, InvalidPoliciesAreRejected) {
  EXPECT_THAT(Message(TryPolicy("p", Apply("1 + 1"))),
              HasSubstr("must evaluate to Object but got"));
  EXPECT_THAT(Message(TryPolicy("p", JsonPatch("Object{}"))),
              HasSubstr("must evaluate to list(JSONPatch) but got Object"));
  EXPECT_THAT(Message(TryPolicy("p", JsonPatch(R"([JSONPatch{opp: "add"}])"))),
              HasSubstr("undefined field 'opp'"));
  EXPECT_THAT(Message(TryPolicy("p", Apply("Other{}"))),
              HasSubstr("undeclared reference to 'Other'"));
  EXPECT_THAT(Message(TryPolicy("p", "")), HasSubstr("mutations must contain at least one item"));
  EXPECT_THAT(Message(TryPolicy("p", Apply("Object{}"), "", "configmaps", "Sometimes")),
              HasSubstr("supported values: \"IfNeeded\", \"Never\""));
}

TEST_F(MutatingAdmissionPolicyTest, ValuesThatShareTheirPartsAreBounded) {
  std::string variables = R"(,"variables":[{"name":"v0","expression":"['x']"})";
  for (int i = 1; i < 30; ++i) {
    variables += StrCat(R"(,{"name":"v)", i, R"(","expression":"[variables.v)", i - 1,
                        ", variables.v", i - 1, R"(]"})");
  }
  Policy("p", JsonPatch(R"([JSONPatch{op: "add", path: "/data", value: variables.v29}])"),
         variables + "]");
  EXPECT_THAT(Message(TryConfigMap("a")), HasSubstr("the value is too large"));
}

}  // namespace
}  // namespace drakkar::apiserver
