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

}  // namespace
}  // namespace drakkar::apiserver
