#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "cli/testing/test_server.h"
#include "scheduler/settings.h"

namespace drakkar::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WhyCommandTest : public testing::CommandTest {
 protected:
  WhyCommandTest() {
    for (const char* name : {"n1", "n2"}) {
      Create(StrCat("apiVersion: v1\nkind: Node\nmetadata: {name: ", name,
                    "}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"));
    }
    Create(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n"
        "spec: {selectors: [{cel: {expression: \"device.driver == 'd.example.com'\"}}]}\n");
    Create(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s1}\n"
        "spec:\n  driver: d.example.com\n  nodeName: n1\n"
        "  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n"
        "  devices:\n"
        "  - {name: small, attributes: {size: {int: 1}}}\n"
        "  - {name: large, attributes: {size: {int: 9}}}\n");
  }
  void Create(const std::string& manifest) {
    Outcome outcome = Run("create -f -", manifest);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void CreateClaim(const std::string& name, int count, int size) {
    Create(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: " + name +
        "}\nspec:\n  devices:\n    requests:\n    - name: r\n      exactly:\n"
        "        deviceClassName: gpu\n        count: " +
        std::to_string(count) +
        "\n        selectors: [{cel: {expression: \"device.attributes['d.example.com'].size >= " +
        std::to_string(size) + "\"}}]\n");
  }
};

TEST_F(WhyCommandTest, SaysInOneSentenceWhyAClaimDoesNotFit) {
  CreateClaim("c", 2, 5);
  const Outcome told = Run("why claim c");
  EXPECT_EQ(told.code, 1) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("claim default/c: 0 of 2 nodes: 1 no devices, 1 too few "
                                        "devices (1 of 2)\n"),
                              HasSubstr("What would help:\n- change claim default/c:\n"),
                              HasSubstr("device.attributes['d.example.com'].size >= 5: fits n1")));
  EXPECT_EQ(Run("explain claim c").out, told.out) << "explain is another name for it";
  EXPECT_EQ(Run("why claim/c").out, told.out);
}

TEST_F(WhyCommandTest, ShowsOneNodeOrAllInDetail) {
  CreateClaim("c", 2, 5);
  const Outcome one = Run("why claim c --node n1");
  EXPECT_EQ(one.code, 1);
  EXPECT_THAT(
      one.out,
      AllOf(HasSubstr("node n1: does not fit"), HasSubstr("request r wants 2, 1 of 2 devices left"),
            HasSubstr("1 not selected by the request (e.g. d.example.com/n1/small)"),
            Not(HasSubstr("node n2"))));
  EXPECT_THAT(Run("why claim c --verbose").out,
              AllOf(HasSubstr("node n1: does not fit"), HasSubstr("node n2: does not fit")));
}

TEST_F(WhyCommandTest, SaysWhenItFitsAndSpeaksJsonAndYaml) {
  CreateClaim("c", 1, 5);
  const Outcome fits = Run("why claim c");
  EXPECT_EQ(fits.code, 0) << "one node is enough";
  EXPECT_THAT(fits.out, HasSubstr("claim default/c: fits 1 of 2 nodes: n1\n"));
  EXPECT_EQ(Run("why claim c --node n2").code, 1);
  EXPECT_THAT(Run("why claim c -o json").out, HasSubstr("\"fits\": true"));
  EXPECT_THAT(Run("why claim c -o yaml").out, HasSubstr("fits: true\n"));
}

TEST_F(WhyCommandTest, ExplainsAPodWithWhatThePluginsOfTheSchedulerSay) {
  CreateClaim("c", 1, 1);
  Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
      "  containers: [{name: a, image: i, resources: {requests: {cpu: 5}, claims: [{name: x}]}}]\n"
      "  resourceClaims: [{name: x, resourceClaimName: c}]\n");
  const Outcome told = Run("why pod p");
  EXPECT_EQ(told.code, 1);
  EXPECT_THAT(told.out, HasSubstr("pod default/p: 0 of 2 nodes: 2 insufficient cpu\n"));
  EXPECT_EQ(Run("why p").out, told.out) << "a name alone is a pod's";
  EXPECT_THAT(Run("why pod p -o json --verbose").out,
              AllOf(HasSubstr("\"fits\": false"), HasSubstr("\"plugin\": \"NodeResourcesFit\"")));
}

TEST_F(WhyCommandTest, UsesTheSettingsThatTheSchedulerPublishes) {
  CreateClaim("c", 1, 5);
  EXPECT_THAT(Run("why claim c").out, HasSubstr("assuming the defaults"));
  Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n");
  scheduler::Configuration configuration;
  configuration.profiles[0].name = "other";
  Create(api::WriteJson(scheduler::SettingsToConfigMap(FeatureGates(), configuration)->root()));
  const Outcome told = Run("why claim c");
  EXPECT_EQ(told.code, 1);
  EXPECT_EQ(told.out,
            "claim default/c: no node was tried: no scheduler goes by the name\n"
            "\"default-scheduler\" (spec.schedulerName)\n");
}

constexpr char kPod[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
    "  containers: [{name: a, image: i}]\n";

TEST_F(WhyCommandTest, PrintsWhatTheSchedulerAnswers) {
  Create(kPod);
  scheduler_status_ = 200;
  scheduler_answer_ =
      R"({"sentence":"0 of 3 nodes","fits":false,"text":"0 of 3\u001b[2J nodes\n"})";
  const Outcome text = Run("why pod p --node n1 --no-headers");
  EXPECT_EQ(text.code, 1);
  EXPECT_EQ(text.out, "0 of 3^[[2J nodes\n") << "control characters are shown";
  EXPECT_EQ(log_query_, "width=80&headers=false&node=n1");
  EXPECT_EQ(Run("why pod p -o json").code, 1);
  EXPECT_EQ(log_query_, "");
  scheduler_answer_ = R"({"sentence":"fits 1 of 3 nodes","fits":true})";
  EXPECT_EQ(Run("why pod p -o json").out,
            "{\n  \"sentence\": \"fits 1 of 3 nodes\",\n  \"fits\": true\n}\n");
  EXPECT_EQ(Run("why pod p").code, 0);
}

TEST_F(WhyCommandTest, FindsTheAnswerItselfIfTheSchedulerDoesNotAnswer) {
  Create(kPod);
  Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n");
  Create(api::WriteJson(
      scheduler::SettingsToConfigMap(FeatureGates(), scheduler::Configuration{})->root()));
  scheduler_status_ = 503;
  scheduler_answer_ =
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable",)"
      R"("message":"it restarts","code":503})";
  const Outcome told = Run("why pod p");
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("the scheduler did not answer (Error from server"),
                              HasSubstr("fits 2 of 2 nodes: n1, n2\n")));
  // A server that serves something else there is not asked for more.
  scheduler_status_ = 200;
  scheduler_answer_ = R"({"kind":"Other"})";
  EXPECT_THAT(Run("why pod p").out, HasSubstr("fits 2 of 2 nodes"));
}

TEST_F(WhyCommandTest, BadInputGetsOneSentenceAndExitCodeTwo) {
  const Outcome nobody = Run("why pod nobody");
  EXPECT_EQ(nobody.code, 2);
  EXPECT_EQ(nobody.err, "error: pods \"nobody\" not found in namespace default\n");
  EXPECT_EQ(Run("why spaceship x").err,
            "error: why takes a pod or a claim (pod NAME, claim NAME), not \"spaceship x\"\n");
  EXPECT_EQ(Run("why spaceship x").code, 2);
  CreateClaim("c", 1, 1);
  EXPECT_EQ(Run("why claim c --node n9").err, "error: there is no node \"n9\"\n");
  EXPECT_EQ(Run("why claim c --node n9").code, 2);
}

}  // namespace
}  // namespace drakkar::cli
