#include "apiserver/admission/pod_defaults.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class PodDefaultsTest : public CoreFixture {
 protected:
  PodDefaultsTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<PriorityAdmission>());
    steps.push_back(std::make_unique<DefaultTolerationSeconds>());
    steps.push_back(std::make_unique<RuntimeClassAdmission>());
    StartCore(nullptr, std::move(steps));
  }
  Response CreatePod(std::string_view spec) {
    return TryCreate(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{)",
                            R"("containers":[{"name":"c","image":"i:1"}])", spec, "}}"));
  }
  void CreateClass(std::string_view name, int value, bool global) {
    Create(StrCat(
        R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":")", name,
        R"("},"value":)", value, R"(,"globalDefault":)", global ? "true" : "false", "}"));
  }
};

TEST_F(PodDefaultsTest, APodWithoutAClassHasPriorityZero) {
  const Response made = CreatePod("");
  ASSERT_FALSE(made.failure) << made.failure->message;
  EXPECT_EQ((*made.object)["spec"]["priority"].optional_integer(), 0);
  EXPECT_EQ((*made.object)["spec"]["preemptionPolicy"].str(), "PreemptLowerPriority");
}

TEST_F(PodDefaultsTest, PriorityComesFromTheNamedClassOrTheGlobalDefault) {
  CreateClass("high", 1000, false);
  CreateClass("usual", 7, true);
  EXPECT_EQ((*CreatePod(R"(,"priorityClassName":"high")").object)["spec"]["priority"].integer(),
            1000);
  Delete("v1", "Pod", "default", "p");
  EXPECT_EQ((*CreatePod("").object)["spec"]["priority"].integer(), 7);
}

TEST_F(PodDefaultsTest, MissingOrContradictoryClassesAreForbidden) {
  EXPECT_EQ(CreatePod(R"(,"priorityClassName":"none")").failure->message,
            "pods \"p\" is forbidden: no PriorityClass with name none was found");
  EXPECT_EQ(CreatePod(R"(,"priority":5)").failure->code, 403);
  EXPECT_EQ(CreatePod(R"(,"runtimeClassName":"vm")").failure->message,
            "pods \"p\" is forbidden: pod rejected: RuntimeClass \"vm\" not found");
  Create(
      R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"vm"},"handler":"h"})");
  EXPECT_FALSE(CreatePod(R"(,"runtimeClassName":"vm")").failure);
}

TEST_F(PodDefaultsTest, APodToleratesALostNodeForFiveMinutesUnlessItSaysOtherwise) {
  const auto tolerations = [&](std::string_view spec) {
    const Response made = CreatePod(spec);
    EXPECT_FALSE(made.failure);
    std::string text;
    for (api::Value each : (*made.object)["spec"]["tolerations"].elements()) {
      text += StrCat(text.empty() ? "" : " ", each["key"].str(), ":", each["effect"].str(), ":",
                     each["tolerationSeconds"].integer(-1));
    }
    Delete("v1", "Pod", "default", "p");
    return text;
  };
  const std::string not_ready = "node.kubernetes.io/not-ready:NoExecute:";
  const std::string unreachable = "node.kubernetes.io/unreachable:NoExecute:";
  EXPECT_EQ(tolerations(""), not_ready + "300 " + unreachable + "300");
  EXPECT_EQ(tolerations(R"(,"tolerations":[{"key":"node.kubernetes.io/not-ready",
      "operator":"Exists","effect":"NoExecute","tolerationSeconds":5}])"),
            not_ready + "5 " + unreachable + "300");
  EXPECT_EQ(tolerations(R"(,"tolerations":[{"operator":"Exists"}])"), "::-1");
}

TEST_F(PodDefaultsTest, ARuntimeClassGivesItsPodsOverheadAndAPlace) {
  Create(R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"vm"},
      "handler":"h","overhead":{"podFixed":{"cpu":"250m"}},"scheduling":{"nodeSelector":{"vm":"yes"},
      "tolerations":[{"key":"vm","operator":"Exists"}]}})");
  const Response made = CreatePod(R"(,"runtimeClassName":"vm","nodeSelector":{"zone":"a"})");
  ASSERT_FALSE(made.failure) << made.failure->message;
  const api::Value spec = (*made.object)["spec"];
  EXPECT_EQ(spec["overhead"].Entry("cpu").str(), "250m");
  EXPECT_EQ(spec["nodeSelector"].Entry("vm").str(), "yes");
  EXPECT_EQ(spec["nodeSelector"].Entry("zone").str(), "a");
  EXPECT_EQ(spec["tolerations"].at(2)["key"].str(), "vm");
  Delete("v1", "Pod", "default", "p");
  EXPECT_EQ(CreatePod(R"(,"runtimeClassName":"vm","nodeSelector":{"vm":"no"})").failure->message,
            "pods \"p\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
            "pod.spec.nodeSelector[vm] = no");
  EXPECT_EQ(CreatePod(R"(,"runtimeClassName":"vm","overhead":{"cpu":"1"})").failure->message,
            "pods \"p\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's "
            "defined Overhead");
  EXPECT_EQ(CreatePod(R"(,"overhead":{"cpu":"1"})").failure->message,
            "pods \"p\" is forbidden: pod rejected: Pod Overhead set without corresponding "
            "RuntimeClass defined Overhead");
}

}  // namespace
}  // namespace drakkar::apiserver
