#include "answers/why/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/render/why.h"
#include "answers/testing/snapshots.h"
#include "answers/why/summary.h"
#include "base/testing/seeded_loop.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using ::testing::ElementsAre;
using testing::FromYaml;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Slice;

constexpr char kClass[] =
    "---\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\nspec: {selectors: [{cel: "
    "{expression: \"device.driver == 'gpu.example.com'\"}}]}\n";

std::string NodeDeclaring(std::string_view features, std::string_view version = "v1.37.0") {
  return StrCat(
      "---\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 8, memory: "
      "32Gi, pods: 110}, declaredFeatures: [",
      features, "], nodeInfo: {kubeletVersion: ", version,
      "}, conditions: [{type: Ready, status: 'True'}]}\n");
}

std::string Pod(std::string_view spec = {}, std::string_view status = "{}") {
  return StrCat(
      "---\nkind: Pod\nmetadata: {name: train, namespace: team-a}\nspec: {containers: "
      "[{name: c}], resourceClaims: [{name: g, resourceClaimName: train}]",
      spec, "}\nstatus: ", status, "\n");
}

std::string Claim(std::string_view request = {}, std::string_view status = "{}") {
  return StrCat(
      "---\nkind: ResourceClaim\nmetadata: {name: train, namespace: team-a}\nspec: "
      "{devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, "
      "allocationMode: ExactCount, count: 1",
      request, "}}]}}\nstatus: ", status, "\n");
}

std::string SkippingSlice() {
  return "---\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: gpu.example.com, nodeName: "
         "n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, skipNodeOperations: true, "
         "devices: [{name: gpu-0}]}\n";
}

class WhyGatesTest : public ::testing::Test {
 protected:
  WhyAnswer Ask(const std::string& yaml) {
    snapshot_ = FromYaml(yaml);
    loop_.fake_clock().JumpWall(snapshot_.now - loop_.clock().Now());
    Result<WhyAnswer> asked = ExplainWhy(snapshot_, {WhySubject::Kind::kPod, "team-a", "train"},
                                         {.loop = loop_,
                                          .random = loop_.random(),
                                          .compiler = compiler_,
                                          .settings = settings_,
                                          .with_nodes = false,
                                          .node = {}});
    EXPECT_TRUE(asked.ok()) << asked.error().message;
    if (!asked.ok()) return {};
    Summarize(*asked, snapshot_.now);
    return *std::move(asked);
  }
  void Set(Gate gate, bool on) { settings_.gates = settings_.gates.With(gate, on); }

  SeededLoop loop_;
  device::CelExpressions compiler_;
  scheduler::Settings settings_;
  Snapshot snapshot_;
};

TEST_F(WhyGatesTest, NamesTheGatesOfTheSchedulerThatBindingConditionsNeed) {
  const std::string cluster =
      kClass + NodeDeclaring("") +
      Slice("n1",
            "[{name: gpu-0, bindingConditions: [attached], bindingFailureConditions: "
            "[broken]}]") +
      Claim() + Pod();
  EXPECT_TRUE(Ask(cluster).fits) << "the gates are on by default";
  Set(Gate::kDRADeviceBindingConditions, false);
  const WhyAnswer one = Ask(cluster);
  EXPECT_FALSE(one.fits);
  EXPECT_EQ(one.sentence,
            "0 of 1 node: 1 feature gate off; turn on feature gate DRADeviceBindingConditions in "
            "the scheduler (--feature-gates=DRADeviceBindingConditions=true)");
  EXPECT_THAT(RenderWhy(one, {.now = snapshot_.now}),
              HasSubstr("What would help:\n"
                        "- turn on feature gate DRADeviceBindingConditions in the scheduler\n"
                        "  (--feature-gates=DRADeviceBindingConditions=true): fits n1\n"));
  Set(Gate::kDRAResourceClaimDeviceStatus, false);
  EXPECT_THAT(Ask(cluster).sentence,
              HasSubstr("turn on feature gates DRAResourceClaimDeviceStatus and "
                        "DRADeviceBindingConditions in the scheduler "
                        "(--feature-gates=DRAResourceClaimDeviceStatus=true,"
                        "DRADeviceBindingConditions=true)"));
  Set(Gate::kDRADeviceBindingConditions, true);
  EXPECT_THAT(Ask(cluster).sentence,
              HasSubstr("turn on feature gate DRAResourceClaimDeviceStatus in the scheduler"));
}

TEST_F(WhyGatesTest, NamesEveryOtherGateOfTheSchedulerThatDevicesNeed) {
  struct Case {
    Gate gate;
    std::string slice;
    std::string claim;
  };
  const std::vector<Case> cases = {
      {Gate::kDRAOptionalNodePreparation, SkippingSlice(), Claim()},
      {Gate::kDRAPartitionableDevices,
       "---\nkind: ResourceSlice\nmetadata: {name: a}\nspec: {driver: gpu.example.com, nodeName: "
       "n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, sharedCounters: [{name: set, "
       "counters: {memory: {value: 4Gi}}}]}\n"
       "---\nkind: ResourceSlice\nmetadata: {name: b}\nspec: {driver: gpu.example.com, nodeName: "
       "n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, devices: [{name: gpu-0, "
       "consumesCounters: [{counterSet: set, counters: {memory: {value: 1Gi}}}]}]}\n",
       Claim()},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(std::string(GateName(each.gate)));
    const std::string cluster =
        kClass + NodeDeclaring("DRAOptionalNodeOperations") + each.slice + each.claim + Pod();
    Set(each.gate, true);
    EXPECT_TRUE(Ask(cluster).fits) << Ask(cluster).sentence;
    Set(each.gate, false);
    const WhyAnswer answer = Ask(cluster);
    EXPECT_FALSE(answer.fits);
    EXPECT_THAT(
        answer.sentence,
        HasSubstr(StrCat("; turn on feature gate ", GateName(each.gate),
                         " in the scheduler (--feature-gates=", GateName(each.gate), "=true)")));
    EXPECT_EQ(answer.help.size(), 1u) << RenderWhy(answer, {.now = snapshot_.now});
  }
}

TEST_F(WhyGatesTest, NamesAGateWithoutWhichNoNodeIsLookedAt) {
  settings_.gates = FeatureGates::Create({.emulated = {1, 34},
                                          .overrides = "DRAAdminAccess=false",
                                          .file_overrides = {},
                                          .turned_on = {}})
                        .value();
  const WhyAnswer answer = Ask(kClass + NodeDeclaring("") + Slice("n1", "[{name: gpu-0}]") +
                               Claim(", adminAccess: true") + Pod());
  EXPECT_FALSE(answer.fits);
  EXPECT_THAT(answer.sentence, HasSubstr("admin access is requested, but the feature is disabled; "
                                         "turn on feature gate DRAAdminAccess in the scheduler "
                                         "(--feature-gates=DRAAdminAccess=true)"));
}

TEST_F(WhyGatesTest, AGateThatChangesNothingIsNotNamed) {
  const WhyAnswer answer = Ask(kClass + NodeDeclaring("") + Claim() + Pod());
  EXPECT_EQ(answer.sentence, "0 of 1 node: 1 no devices");
  EXPECT_THAT(answer.help, IsEmpty());
}

TEST_F(WhyGatesTest, NamesTheGateOfANodeThatDevicesNeed) {
  Set(Gate::kDRAOptionalNodePreparation, true);
  const std::string rest = SkippingSlice() + Claim() + Pod();
  EXPECT_TRUE(Ask(kClass + NodeDeclaring("DRAOptionalNodeOperations") + rest).fits);
  EXPECT_EQ(Ask(kClass + NodeDeclaring("VolumeBindMountOptions") + rest).sentence,
            "0 of 1 node: 1 missing node features; turn on feature gate DRAOptionalNodePreparation "
            "on node n1 (--feature-gates=DRAOptionalNodePreparation=true, or featureGates in its "
            "configuration)");
  // It may be the framework itself that is off.
  EXPECT_THAT(Ask(kClass + NodeDeclaring("") + rest).sentence,
              HasSubstr("turn on feature gates NodeDeclaredFeatures and DRAOptionalNodePreparation "
                        "on node n1 (--feature-gates=NodeDeclaredFeatures=true,"
                        "DRAOptionalNodePreparation=true, or featureGates in its configuration)"));
  EXPECT_THAT(Ask(kClass + NodeDeclaring("VolumeBindMountOptions", "v1.36.1") + rest).sentence,
              HasSubstr("; upgrade node n1 to 1.37 or later, and turn on feature gate "
                        "DRAOptionalNodePreparation on node n1"));
}

TEST_F(WhyGatesTest, NamesTheGateOfANodeThatThePodNeeds) {
  Set(Gate::kDRAOptionalNodePreparation, true);
  const std::string slice = Slice("n1", "[{name: gpu-0}]");
  // A field of the pod, with what else the feature needs.
  EXPECT_EQ(Ask(kClass + NodeDeclaring("VolumeBindMountOptions") + slice + Claim() +
                Pod(", hostUsers: false, hostNetwork: true"))
                .sentence,
            "0 of 1 node: 1 missing node features; turn on feature gate "
            "UserNamespacesHostNetworkSupport on node n1 "
            "(--feature-gates=UserNamespacesHostNetworkSupport=true, or featureGates in its "
            "configuration), with a container runtime with user namespaces on the host network");
  // An allocated claim.
  EXPECT_THAT(Ask(kClass + NodeDeclaring("VolumeBindMountOptions") + SkippingSlice() +
                  Claim("",
                        "{allocation: {devices: {results: [{request: gpu, driver: "
                        "gpu.example.com, pool: n1, device: gpu-0, skipNodeOperations: "
                        "true}]}}}") +
                  Pod())
                  .sentence,
              HasSubstr("; turn on feature gate DRAOptionalNodePreparation on node n1"));
}

TEST_F(WhyGatesTest, AGateIsNotNamedWhereSomethingElseIsInTheWayToo) {
  Set(Gate::kDRAOptionalNodePreparation, true);
  const WhyAnswer answer =
      Ask(std::string(kClass) +
          "---\nkind: Node\nmetadata: {name: n1}\nspec: {taints: [{key: k, effect: NoSchedule}]}\n"
          "status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}\n" +
          SkippingSlice() + Claim() + Pod());
  EXPECT_EQ(answer.sentence, "0 of 1 node: 1 tainted");
}

TEST_F(WhyGatesTest, NamesTheGateThatIsOffInTheApiServer) {
  const std::string cluster = kClass + NodeDeclaring("") + Slice("n1", "[{name: gpu-0}]") + Claim();
  const auto failed = [&](std::string_view message) {
    return Ask(cluster + Pod("", StrCat("{conditions: [{type: PodScheduled, status: 'False', "
                                        "reason: SchedulerError, message: \"",
                                        message, "\"}]}")));
  };
  const WhyAnswer dropped = failed(
      "the API server did not store bindingConditions of device d/n1/gpu-0 in claim "
      "team-a/train: the feature gate DRADeviceBindingConditions must be the same there and "
      "in the scheduler");
  EXPECT_FALSE(dropped.fits);
  EXPECT_THAT(dropped.sentence,
              HasSubstr("in the scheduler; turn on feature gate DRADeviceBindingConditions in the "
                        "API server (--feature-gates=DRADeviceBindingConditions=true)"));
  const WhyAnswer forbidden = failed(
      "could not update claim team-a/train: status.allocation.devices.results[0]."
      "skipNodeOperations: Forbidden: may not be set while the feature gate "
      "DRAOptionalNodePreparation is disabled");
  EXPECT_FALSE(forbidden.fits);
  EXPECT_THAT(forbidden.sentence,
              HasSubstr("; turn on feature gate DRAOptionalNodePreparation in the API server"));
  EXPECT_TRUE(failed("no nodes available").fits) << "the failure is of an earlier time";
}

TEST_F(WhyGatesTest, NamesTheGateOfANodeThatRefusedThePod) {
  const WhyAnswer answer =
      Ask(kClass + NodeDeclaring("VolumeBindMountOptions") +
          Pod(", nodeName: n1, hostUsers: false, hostNetwork: true",
              "{phase: Failed, reason: PodFeatureUnsupported, message: 'Pod requires node features "
              "that are not available: UserNamespacesHostNetworkSupport'}"));
  EXPECT_FALSE(answer.fits);
  EXPECT_THAT(answer.sentence,
              HasSubstr("node n1 refused it: Pod requires node features that are not available: "
                        "UserNamespacesHostNetworkSupport; turn on feature gate "
                        "UserNamespacesHostNetworkSupport on node n1"));
}

TEST_F(WhyGatesTest, NamesTheGateOfANodeThatDoesNotPrepareTheClaim) {
  const WhyAnswer answer =
      Ask(kClass + NodeDeclaring("VolumeBindMountOptions") +
          Claim("",
                "{allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, "
                "pool: n1, device: gpu-0, skipNodeOperations: true}]}}}") +
          Pod(", nodeName: n1", "{phase: Pending}") +
          "---\nkind: Event\nmetadata: {name: e}\nreason: FailedPrepareDynamicResources\n"
          "message: \"ResourceClaim train: DRAOptionalNodePreparationDisabled: device gpu-0 of "
          "driver gpu.example.com skips node operations\"\n");
  EXPECT_THAT(answer.sentence,
              HasSubstr("; turn on feature gate DRAOptionalNodePreparation on node n1 "
                        "(--feature-gates=DRAOptionalNodePreparation=true, or featureGates in its "
                        "configuration)"));
}

TEST_F(WhyGatesTest, WhoMayNotSeeNodesSeesTheGateWithoutTheNode) {
  Set(Gate::kDRAOptionalNodePreparation, true);
  WhyAnswer answer =
      Ask(kClass + NodeDeclaring("VolumeBindMountOptions") + SkippingSlice() + Claim() + Pod());
  Redact(answer, {.nodes = false, .sees_namespace = {}});
  Summarize(answer, snapshot_.now);
  EXPECT_THAT(answer.sentence,
              HasSubstr("turn on feature gate DRAOptionalNodePreparation on the node ("));
  EXPECT_THAT(WhyToJson(answer), Not(HasSubstr("n1")));
  EXPECT_THAT(answer.help, ElementsAre(::testing::Field(
                               &Help::gates, ElementsAre("DRAOptionalNodePreparation"))));
}

}  // namespace
}  // namespace drakkar::answers
