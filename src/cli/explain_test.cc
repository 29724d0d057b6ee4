#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "cli/testing/test_server.h"
#include "scheduler/settings.h"

namespace drakkar::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainTest : public testing::CommandTest {
 protected:
  ExplainTest() {
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

TEST_F(ExplainTest, NamesTheRuleThatRejectsAClaim) {
  CreateClaim("c", 2, 5);
  Outcome told = Run("explain claim c");
  EXPECT_EQ(told.code, 1) << "nothing fits" << told.err;
  EXPECT_THAT(
      told.out,
      AllOf(HasSubstr("node n1: does not fit"), HasSubstr("request r wants 2, 1 of 2 devices left"),
            HasSubstr("1 not selected by the request (e.g. d.example.com/n1/small)"),
            HasSubstr("would fit but for: not selected by the request"),
            HasSubstr("change claim default/c: spec.devices.requests[0].exactly."
                      "selectors[0].cel.expression: "
                      "device.attributes['d.example.com'].size >= 5")));
  EXPECT_THAT(told.out, HasSubstr("node n2: does not fit"));
}

TEST_F(ExplainTest, ReportsAFitAndPrintsJson) {
  CreateClaim("c", 1, 5);
  EXPECT_THAT(Run("explain claim c --node n1").out, HasSubstr("node n1: fits"));
  EXPECT_EQ(Run("explain claim c").code, 0) << "one node is enough";
  EXPECT_EQ(Run("explain claim c --node n2").code, 1);
  EXPECT_THAT(Run("explain claim c --node n1 -o json").out, HasSubstr("\"fits\": true"));
}

TEST_F(ExplainTest, ExplainsAPodByItsClaims) {
  CreateClaim("c", 2, 5);
  Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
      "  containers: [{name: a, image: i, resources: {claims: [{name: x}]}}]\n"
      "  resourceClaims: [{name: x, resourceClaimName: c}]\n");
  EXPECT_THAT(Run("explain pod p").out, HasSubstr("claim default/c"));
}

TEST_F(ExplainTest, ReportsTheReasonsOfTheSchedulersPlugins) {
  CreateClaim("c", 1, 1);
  Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
      "  containers: [{name: a, image: i, resources: {requests: {cpu: 5}, claims: [{name: x}]}}]\n"
      "  resourceClaims: [{name: x, resourceClaimName: c}]\n");
  const Outcome told = Run("explain pod p");
  EXPECT_EQ(told.code, 1);
  EXPECT_THAT(told.out, AllOf(HasSubstr("node n1: does not fit"),
                              HasSubstr("NodeResourcesFit: Insufficient cpu")));
  EXPECT_THAT(Run("explain pod p -o json").out,
              AllOf(HasSubstr("\"fits\": false"), HasSubstr("\"plugin\": \"NodeResourcesFit\"")));
}

TEST_F(ExplainTest, UsesTheSettingsThatTheSchedulerPublishes) {
  CreateClaim("c", 1, 5);
  EXPECT_THAT(Run("explain claim c").out, HasSubstr("assuming the defaults"));
  Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n");
  scheduler::Configuration configuration;
  configuration.profiles[0].name = "other";
  Create(api::WriteJson(scheduler::SettingsToConfigMap(FeatureGates(), configuration)->root()));
  const Outcome told = Run("explain claim c");
  EXPECT_EQ(told.code, 1);
  EXPECT_EQ(told.out,
            "does not fit on any node: no scheduler profile is named \"default-scheduler\" "
            "(spec.schedulerName)\n");
}

TEST_F(ExplainTest, BadInputGetsAClearError) {
  EXPECT_THAT(Run("explain pod nobody").err, HasSubstr("pods \"nobody\" not found"));
  EXPECT_EQ(Run("explain spaceship x").err,
            "error: explain works for a pod or a claim, not \"spaceship\"\n");
  CreateClaim("c", 1, 1);
  EXPECT_THAT(Run("explain claim c --node n9").err, HasSubstr("node \"n9\" not found"));
}

}  // namespace
}  // namespace drakkar::cli
