#include "scheduler/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/testing/simple_expressions.h"
#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "scheduler/plugins/node_resources/node_resources_args.h"
#include "scheduler/settings.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

// Two nodes with a device each; the pod wants one, and one cpu.
class ExplainPodTest : public ::testing::Test {
 protected:
  ExplainPodTest() {
    for (const char* name : {"n1", "n2"}) {
      AddNode(name);
      AddSlice(name);
    }
    cluster_.classes.push_back(Parse(R"({"metadata":{"name":"gpu"},"spec":{}})"));
    SetClaim("");
    SetPod("");
  }
  void AddNode(std::string name, std::string spec = "{}") {
    cluster_.nodes.push_back(Parse(
        StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"name":")", name, R"("}},"spec":)",
               spec, R"(,"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}})")));
  }
  void AddSlice(std::string node, std::string device = "") {
    cluster_.slices.push_back(Parse(StrCat(
        R"({"metadata":{"name":"s-)", node, R"("},"spec":{"driver":"d.example.com","nodeName":")",
        node, R"(","pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":1},)",
        R"("devices":[{"name":"dev-0")", device, "}]}}")));
  }
  void SetClaim(std::string metadata, std::string status = "{}") {
    cluster_.claims = {Parse(
        StrCat(R"({"metadata":{"namespace":"default","name":"c","uid":"cu","resourceVersion":"1")",
               metadata, R"(},"spec":{"devices":{"requests":[{"name":"req","exactly":{)",
               R"("deviceClassName":"gpu","allocationMode":"ExactCount","count":1}}]}},"status":)",
               status, "}"))};
  }
  void SetPod(std::string spec) {
    cluster_.pod = Parse(StrCat(
        R"({"metadata":{"namespace":"default","name":"p","uid":"pu"},"spec":{"containers":[)",
        R"({"name":"c","resources":{"requests":{"cpu":"1"}}}],)",
        R"("resourceClaims":[{"name":"r","resourceClaimName":"c"}])", spec, "}}"));
  }
  PodExplanation Ask(FeatureGates gates = FeatureGates()) {
    return ExplainPod(cluster_, {.loop = loop_,
                                 .random = loop_.random(),
                                 .compiler = expressions_,
                                 .gates = gates,
                                 .declared_features = nullptr,
                                 .profile = {}})
        .value();
  }
  // Why each plugin rejects the node.
  static std::vector<std::string> Refusals(const PodExplanation& answer, std::string_view node) {
    std::vector<std::string> texts;
    for (const NodeExplanation& each : answer.nodes) {
      if (each.node != node) continue;
      for (const NodeRefusal& refusal : each.refusals) {
        texts.push_back(StrCat(refusal.plugin, ": ", Join(refusal.reasons, ", ")));
      }
    }
    return texts;
  }

  SeededLoop loop_;
  allocator::SimpleExpressions expressions_;
  Simulation cluster_;
};

TEST_F(ExplainPodTest, EveryFittingNodeIsReported) {
  const PodExplanation answer = Ask();
  EXPECT_EQ(answer.blocked, "");
  ASSERT_EQ(answer.nodes.size(), 2u);
  for (const NodeExplanation& node : answer.nodes) {
    EXPECT_TRUE(node.fits()) << node.node;
    EXPECT_THAT(node.waits_for, IsEmpty());
    ASSERT_TRUE(node.devices);
    EXPECT_TRUE(node.devices->fits);
  }
}

TEST_F(ExplainPodTest, CpuUsedByOtherPodsCounts) {
  cluster_.pods.push_back(Parse(R"({"metadata":{"namespace":"default","name":"o","uid":"ou"},
      "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]}})"));
  const PodExplanation answer = Ask();
  EXPECT_THAT(Refusals(answer, "n1"), ElementsAre("NodeResourcesFit: Insufficient cpu"));
  EXPECT_THAT(Refusals(answer, "n2"), IsEmpty());
  EXPECT_TRUE(answer.FitsSomewhere());
}

TEST_F(ExplainPodTest, RoomThatIsKeptForANominatedPodCounts) {
  cluster_.pods.push_back(Parse(R"({"metadata":{"namespace":"default","name":"o","uid":"ou"},
      "spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]},
      "status":{"nominatedNodeName":"n1"}})"));
  EXPECT_THAT(Refusals(Ask(), "n1"),
              ElementsAre("NodeResourcesFit: Insufficient cpu (room is kept for nominated pod "
                          "default/o)"));
}

TEST_F(ExplainPodTest, NodeSelectorsTaintsAndCordonsCount) {
  SetPod(R"(,"nodeSelector":{"name":"n2"})");
  AddNode("n3", R"({"unschedulable":true})");
  AddNode("n4", R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  AddNode("n5", R"({"taints":[{"key":"other","effect":"NoSchedule"}]})");
  const PodExplanation answer = Ask();
  EXPECT_THAT(Refusals(answer, "n1"), ElementsAre(HasSubstr("NodeAffinity: ")));
  EXPECT_THAT(Refusals(answer, "n2"), IsEmpty());
  EXPECT_THAT(Refusals(answer, "n3"),
              ::testing::Contains("NodeUnschedulable: node(s) were unschedulable"));
  EXPECT_THAT(Refusals(answer, "n4"),
              ::testing::Contains("TaintToleration: node(s) had untolerated taint {k: v}"))
      << "only its own";
  EXPECT_THAT(Refusals(answer, "n4"), ::testing::Contains(HasSubstr("NodeAffinity: ")))
      << "each plugin that rejects it";
}

TEST_F(ExplainPodTest, DeviceTaintRulesCountIfTheSchedulerUsesThem) {
  cluster_.taint_rules.push_back(Parse(R"({"metadata":{"name":"t"},"spec":{
      "deviceSelector":{"driver":"d.example.com","pool":"n1"},
      "taint":{"key":"broken","effect":"NoSchedule"}}})"));
  const FeatureGates on =
      FeatureGates().With(Gate::kDRADeviceTaints, true).With(Gate::kDRADeviceTaintRules, true);
  const PodExplanation answer = Ask(on);
  EXPECT_THAT(Refusals(answer, "n1"), ElementsAre(HasSubstr("DynamicResources: ")));
  EXPECT_THAT(Refusals(answer, "n2"), IsEmpty());
  EXPECT_THAT(Refusals(Ask(on.With(Gate::kDRADeviceTaintRules, false)), "n1"), IsEmpty());
}

TEST_F(ExplainPodTest, VolumesThatTheSchedulerDoesNotSupportBlockThePod) {
  SetPod(R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"x"}}])");
  const PodExplanation answer = Ask();
  EXPECT_THAT(answer.blocked, HasSubstr("spec.volumes[0].persistentVolumeClaim"));
  EXPECT_FALSE(answer.FitsSomewhere());
}

TEST_F(ExplainPodTest, AClaimThatIsBeingDeletedBlocksThePod) {
  SetClaim(R"(,"deletionTimestamp":"2027-01-01T00:00:00Z")");
  EXPECT_EQ(Ask().blocked, "resourceclaim \"c\" is being deleted");
}

TEST_F(ExplainPodTest, ConditionsThatThePodWouldWaitForAreNamed) {
  cluster_.slices.clear();
  AddSlice("n1", R"(,"bindingConditions":["attached"],"bindingFailureConditions":["failed"])");
  const PodExplanation answer = Ask();
  EXPECT_TRUE(answer.FitsSomewhere());
  EXPECT_THAT(answer.nodes.at(0).waits_for,
              ElementsAre("condition attached of device d.example.com/n1/dev-0"));
}

TEST_F(ExplainPodTest, AGateThatIsOffInTheSchedulerCounts) {
  cluster_.slices.clear();
  AddSlice("n1", R"(,"bindingConditions":["attached"],"bindingFailureConditions":["failed"])");
  const PodExplanation answer = Ask(FeatureGates().With(Gate::kDRADeviceBindingConditions, false));
  EXPECT_FALSE(answer.FitsSomewhere());
}

TEST_F(ExplainPodTest, ConditionsOfAnAllocatedClaimThatAreNotTrueAreNamed) {
  SetClaim("", R"({"allocation":{"devices":{"results":[{"request":"req",
      "driver":"d.example.com","pool":"n1","device":"dev-0","bindingConditions":["attached"],
      "bindingFailureConditions":["failed"]}]}}})");
  const PodExplanation answer = Ask();
  EXPECT_THAT(answer.nodes.at(0).waits_for,
              ElementsAre("condition attached of device d.example.com/n1/dev-0"));
  EXPECT_FALSE(answer.nodes.at(0).devices) << "nothing is left to allocate";
}

TEST_F(ExplainPodTest, ANodeThatIsNotReadyOrUnresponsiveIsReported) {
  cluster_.nodes[0] = Parse(R"({"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4",
      "memory":"8Gi","pods":"10"},"conditions":[{"type":"Ready","status":"False",
      "message":"no runtime"}]}})");
  cluster_.leases.push_back(Parse(R"({"metadata":{"name":"n2"},"spec":{"leaseDurationSeconds":40,
      "renewTime":"2020-01-01T00:00:00.000000Z"}})"));
  const PodExplanation answer = Ask();
  EXPECT_THAT(Refusals(answer, "n1"), ElementsAre("Node: the node is not ready: no runtime"));
  EXPECT_THAT(Refusals(answer, "n2"), ElementsAre("Node: the node has not renewed its lease since "
                                                  "2020-01-01T00:00:00.000000Z"));
  EXPECT_FALSE(answer.FitsSomewhere());
}

TEST_F(ExplainPodTest, OnlyTheConditionReadySaysWhetherANodeIsReady) {
  const auto refusals = [&](const char* conditions) {
    cluster_.nodes[0] =
        Parse(StrCat(R"({"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":)",
                     R"("4","memory":"8Gi","pods":"10"},"conditions":[)", conditions, "]}}"));
    return Refusals(Ask(), "n1");
  };
  EXPECT_THAT(refusals(R"({"type":"MemoryPressure","status":"False"},
      {"type":"Ready","status":"True"})"),
              IsEmpty());
  EXPECT_THAT(refusals(R"({"type":"DiskPressure","status":"False"},
      {"type":"Ready","status":"Unknown"})"),
              ElementsAre("Node: the node is not ready"));
  EXPECT_THAT(refusals(""), IsEmpty());
}

TEST_F(ExplainPodTest, OnlyNodesThatTheSchedulerChoosesFromArePreferred) {
  const auto preferred = [&] {
    std::vector<std::string> names;
    for (const NodeExplanation& node : Ask().nodes) {
      if (node.preferred) names.push_back(node.node);
    }
    return names;
  };
  EXPECT_THAT(preferred(), ElementsAre("n1", "n2"));
  cluster_.slices.clear();
  AddSlice("n1", R"(,"bindingConditions":["attached"],"bindingFailureConditions":["failed"])");
  AddSlice("n2");
  EXPECT_THAT(preferred(), ElementsAre("n2")) << "its device is ready";
  cluster_.slices.pop_back();
  EXPECT_THAT(preferred(), ElementsAre("n1"));
}

TEST_F(ExplainPodTest, OnlyALeaseThatHasExpiredCounts) {
  const auto refusals = [&](const char* spec) {
    cluster_.leases = {Parse(R"({"metadata":{"name":"other"},"spec":{"leaseDurationSeconds":40,
        "renewTime":"2020-01-01T00:00:00.000000Z"}})"),
                       Parse(StrCat(R"({"metadata":{"name":"n2"},"spec":)", spec, "}"))};
    return Refusals(Ask(), "n2").size();
  };
  EXPECT_EQ(refusals(R"({"leaseDurationSeconds":40,"renewTime":"2020-01-01T00:00:00.000000Z"})"),
            1u);
  EXPECT_EQ(refusals(R"({"leaseDurationSeconds":40,"renewTime":"2999-01-01T00:00:00.000000Z"})"),
            0u);
  EXPECT_EQ(refusals(R"({"leaseDurationSeconds":0,"renewTime":"2020-01-01T00:00:00.000000Z"})"),
            0u);
  EXPECT_EQ(refusals(R"({"leaseDurationSeconds":40,"renewTime":"yesterday"})"), 0u);
  EXPECT_EQ(refusals(R"({})"), 0u);
}

TEST(SchedulerSettings, AreReadAsTheyWerePublished) {
  const FeatureGates gates = FeatureGates::Create({.emulated = kOurVersion,
                                                   .overrides = "DRADeviceBindingConditions=false",
                                                   .turned_on = {}})
                                 .value();
  Configuration configuration;
  configuration.profiles[0].name = "mine";
  NodeResourcesFitArgs fit;
  fit.ignored_groups = {"example.com"};
  configuration.profiles[0].SetArgs("NodeResourcesFit", fit);
  const api::Object map(SettingsToConfigMap(gates, configuration));
  const Result<Settings> read = SettingsFromConfigMap(map);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FALSE(read->gates.Enabled(Gate::kDRADeviceBindingConditions));
  ASSERT_EQ(read->profiles.size(), 1u);
  EXPECT_EQ(read->profiles[0].name, "mine");
  EXPECT_THAT(read->profiles[0].ArgsOf<NodeResourcesFitArgs>("NodeResourcesFit").ignored_groups,
              ElementsAre("example.com"));
}

TEST(SchedulerSettings, SayWhereTheSchedulerAnswers) {
  const api::Object plain(SettingsToConfigMap(FeatureGates(), {}));
  EXPECT_EQ(plain.name(), kSettingsName);
  EXPECT_EQ(plain.namespace_(), kSettingsNamespace);
  EXPECT_EQ(plain["kind"].str(), "ConfigMap");
  EXPECT_EQ(plain["data"].Entry("emulatedVersion").str(), kOurVersion.ToString());
  EXPECT_FALSE(plain["data"].Entry("statusURL").exists());
  EXPECT_FALSE(plain["data"].Entry("statusCA").exists());
  const api::Object with(SettingsToConfigMap(
      FeatureGates(), {}, {.url = "https://10.0.0.7:10259", .ca_pem = "certificate"}));
  EXPECT_EQ(with["data"].Entry("statusURL").str(), "https://10.0.0.7:10259");
  EXPECT_EQ(with["data"].Entry("statusCA").str(), "certificate");
}

TEST(SchedulerSettings, OfAnOldReleaseNameOnlyItsGates) {
  const FeatureGates old =
      FeatureGates::Create({.emulated = {1, 34}, .overrides = "", .turned_on = {}}).value();
  const Result<Settings> read = SettingsFromConfigMap(api::Object(SettingsToConfigMap(old, {})));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->gates.emulated().ToString(), "1.34");
  EXPECT_FALSE(read->gates.Known(Gate::kNodeDeclaredFeatures));
}

TEST(SchedulerSettings, AreRejectedIfTheyCannotBeRead) {
  EXPECT_FALSE(SettingsFromConfigMap(*Parse(R"({"data":{}})")).ok());
  EXPECT_FALSE(SettingsFromConfigMap(
                   *Parse(R"({"data":{"emulatedVersion":"1.37","featureGates":"Nonsense=true"}})"))
                   .ok());
}

}  // namespace
}  // namespace drakkar::scheduler
