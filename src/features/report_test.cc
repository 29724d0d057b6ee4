#include "features/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "features/declared.h"
#include "features/testing/static_cpu_feature.h"

namespace drakkar::features {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

api::TreePtr Json(std::string_view text) {
  return api::ParseJson(text).value();
}

DiscoverReport Discover(NodeInput input) {
  return ReportDiscover(DefaultFramework(), input).value();
}

std::string DiscoverError(NodeInput input) {
  const auto report = ReportDiscover(DefaultFramework(), input);
  return report.ok() ? "" : report.error().message;
}

TEST(Report, AStockNodeOfOurVersionDeclaresWhatIsOnByDefault) {
  const DiscoverReport report = Discover({});
  EXPECT_EQ(ToText(report),
            "ExtendWebSocketsToKubelet\nInPlacePodLevelResourcesVerticalScaling\n"
            "InPlacePodVerticalScalingInitContainers\nRestartAllContainersOnContainerExits\n");
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST(Report, GatesOfTheFileAreOverriddenByTheFlag) {
  const api::TreePtr file = Json(R"({"kind":"KubeletConfiguration","featureGates":
      {"DRAOptionalNodeOperations":true,"RestartAllContainersOnContainerExits":false,"Foreign":true}})");
  const std::vector<std::string> from_file =
      Discover({.kubelet_configuration = file->root()}).declared;
  EXPECT_THAT(from_file, Contains("DRAOptionalNodeOperations"));
  EXPECT_THAT(from_file, Contains("DraOptionalNodePreparation"));
  EXPECT_THAT(from_file, Not(Contains("RestartAllContainersOnContainerExits")));
  const std::vector<std::string> with_flag =
      Discover({.kubelet_configuration = file->root(),
                .feature_gates = "DRAOptionalNodePreparation=false,"
                                 "RestartAllContainersOnContainerExits=true"})
          .declared;
  EXPECT_THAT(with_flag, Not(Contains("DraOptionalNodePreparation")));
  EXPECT_THAT(with_flag, Contains("RestartAllContainersOnContainerExits"));
}

TEST(Report, RuntimeFeaturesCountAsStated) {
  const std::string gates = "UserNamespacesHostNetworkSupport=true,VolumeBindMountOptions=true";
  EXPECT_THAT(Discover({.feature_gates = gates}).declared, Not(Contains("VolumeBindMountOptions")));
  const std::vector<std::string> declared =
      Discover(
          {.feature_gates = gates, .runtime_features = "UserNamespacesHostNetwork, mountOptions"})
          .declared;
  EXPECT_THAT(declared, Contains("VolumeBindMountOptions"));
  EXPECT_THAT(declared, Contains("UserNamespacesHostNetworkSupport"));
  EXPECT_THAT(DiscoverError({.runtime_features = "Magic"}),
              HasSubstr("unknown runtime feature \"Magic\""));
}

TEST(Report, AnOlderNodeDeclaresWhatItsReleaseKnows) {
  EXPECT_THAT(
      Discover({.version = "1.34.3"}).notes,
      ElementsAre("version 1.34 does not have NodeDeclaredFeatures; the node declares nothing"));
  EXPECT_THAT(Discover({.version = "v1.35.0"}).notes,
              ElementsAre("feature gate NodeDeclaredFeatures is off; the node declares nothing"));
  EXPECT_THAT(Discover({.feature_gates = "NodeDeclaredFeatures=true,"
                                         "RestartAllContainersOnContainerExits=true",
                        .version = "v1.35.0"})
                  .declared,
              ElementsAre("RestartAllContainersOnContainerExits"));
  EXPECT_THAT(
      DiscoverError({.feature_gates = "DRAOptionalNodePreparation=true", .version = "1.36"}),
      HasSubstr("is not known in version 1.36"));
}

TEST(Report, ANewerNodeIsTreatedWithOurGates) {
  const DiscoverReport report = Discover({.version = "1.99.0"});
  EXPECT_EQ(report.declared, Discover({}).declared);
  EXPECT_THAT(report.notes,
              ElementsAre(HasSubstr("1.99 are unknown; using the defaults of version 1.37")));
}

TEST(Report, AnUnknownGateIsReported) {
  const DiscoverReport report =
      Discover({.feature_gates = "RestartAllContainersOnContainerExit=false"});
  EXPECT_EQ(report.declared, Discover({}).declared);
  EXPECT_THAT(
      report.notes,
      ElementsAre(
          "feature gate RestartAllContainersOnContainerExit is unknown; no feature depends on it"));
}

TEST(Report, AVersionHasAtLeastMajorAndMinor) {
  for (const char* version : {"1", "banana", "1.2.3.4", "v", "-1.37"}) {
    EXPECT_EQ(DiscoverError({.version = version}),
              StrCat("version \"", version, "\" is invalid; use for example 1.37 or 1.37.2"));
  }
  EXPECT_EQ(Discover({.version = "v1.37.1-alpha.2+x"}).declared, Discover({}).declared);
}

TEST(Report, RejectsConfigurationsThatNoNodeWouldStartWith) {
  EXPECT_THAT(
      DiscoverError({.feature_gates = "ContainerRestartRules=false"}),
      HasSubstr(
          "RestartAllContainersOnContainerExits is on, but depends on ContainerRestartRules"));
  EXPECT_THAT(DiscoverError({.feature_gates = "NodeDeclaredFeatures=maybe"}),
              HasSubstr("\"maybe\""));
  EXPECT_THAT(DiscoverError({.feature_gates = "Foreign=maybe"}), HasSubstr("\"maybe\""));
  EXPECT_THAT(DiscoverError({.feature_gates = "Foreign"}), HasSubstr("has no value"));
  EXPECT_THAT(DiscoverError({.version = "new"}), HasSubstr("version \"new\""));
  const api::TreePtr pod = Json(R"({"kind":"Pod"})");
  EXPECT_THAT(DiscoverError({.kubelet_configuration = pod->root()}),
              HasSubstr("but must be KubeletConfiguration"));
  const api::TreePtr odd = Json(R"({"featureGates":{"A":"true"}})");
  EXPECT_EQ(DiscoverError({.kubelet_configuration = odd->root()}),
            "featureGates: A must be true or false");
  const api::TreePtr list = Json(R"({"featureGates":["A"]})");
  EXPECT_THAT(DiscoverError({.kubelet_configuration = list->root()}), HasSubstr("must be a map"));
}

TEST(Report, SettingsOfTheFileReachACustomFeature) {
  FeatureList more;
  more.push_back(std::make_unique<StaticCpuFeature>());
  const Framework framework = FrameworkWith(std::move(more)).value();
  const api::TreePtr file =
      Json(R"({"cpuManagerPolicy":"static","featureGates":{"TestStaticCpuGate":true}})");
  EXPECT_THAT(ReportDiscover(framework, {.kubelet_configuration = file->root()}).value().declared,
              Contains("TestStaticCpu"));
  EXPECT_THAT(
      ReportDiscover(framework, {.feature_gates = "TestStaticCpuGate=true"}).value().declared,
      Not(Contains("TestStaticCpu")));
}

TEST(Report, EqualInputGivesEqualBytes) {
  const NodeInput input{.feature_gates = "VolumeBindMountOptions=true",
                        .runtime_features = "MountOptions"};
  EXPECT_EQ(
      api::WriteJson(ToTree(Discover(input))->root()),
      R"({"declaredFeatures":["ExtendWebSocketsToKubelet",)"
      R"("InPlacePodLevelResourcesVerticalScaling","InPlacePodVerticalScalingInitContainers",)"
      R"("RestartAllContainersOnContainerExits","VolumeBindMountOptions"]})");
}

TEST(Report, ReportsWhatAPodRequiresAndWhy) {
  const api::TreePtr pod = Json(R"({"kind":"Pod","spec":{"hostNetwork":true,"hostUsers":false,
      "containers":[{"restartPolicyRules":[{"action":"RestartAllContainers"}]}]}})");
  const api::TreePtr claim = Json(R"({"metadata":{"name":"c"},"status":{"allocation":{"devices":
      {"results":[{"skipNodeOperations":true}]}}}})");
  const RequireReport report =
      ReportRequire(DefaultFramework(), pod->root(), {claim->root()}).value();
  EXPECT_EQ(ToText(report, false),
            "DraOptionalNodePreparation\nRestartAllContainersOnContainerExits\n"
            "UserNamespacesHostNetworkSupport\n");
  EXPECT_EQ(ToText(report, true),
            "DraOptionalNodePreparation: claim c: "
            "status.allocation.devices.results[0].skipNodeOperations\n"
            "RestartAllContainersOnContainerExits: "
            "spec.containers[0].restartPolicyRules[0].action\n"
            "UserNamespacesHostNetworkSupport: spec.hostUsers\n");
  const api::TreePtr plain = Json(R"({"spec":{"containers":[]}})");
  EXPECT_EQ(
      api::WriteJson(ToTree(ReportRequire(DefaultFramework(), plain->root(), {}).value())->root()),
      R"({"requiredFeatures":[]})");
}

TEST(Report, OnlyPodsRequireFeatures) {
  const auto error = [](std::string_view text, std::string_view version = {}) {
    const api::TreePtr tree = Json(text);
    return ReportRequire(DefaultFramework(), tree->root(), {}, version).error().message;
  };
  EXPECT_EQ(error(R"({"kind":"Node","spec":{}})"), "kind is \"Node\", but must be Pod");
  EXPECT_EQ(error(R"({"kind":"Pod"})"), "the pod has no spec");
  EXPECT_THAT(error(R"({"spec":{}})", "x"), HasSubstr("version \"x\""));
}

TEST(Report, ReportsWhatAFeatureDependsOn) {
  EXPECT_EQ(ToText(ReportNeeds(DefaultFramework(), "UserNamespacesHostNetworkSupport").value()),
            "feature: UserNamespacesHostNetworkSupport\n"
            "feature gate: UserNamespacesHostNetworkSupport\n"
            "runtime feature: UserNamespacesHostNetwork\n");
  // Also by its alias.
  EXPECT_EQ(ToText(ReportNeeds(DefaultFramework(), "DRAOptionalNodeOperations").value()),
            "feature: DraOptionalNodePreparation\nalso declared as: DRAOptionalNodeOperations\n"
            "feature gate: DRAOptionalNodePreparation\n");
  FeatureList more;
  more.push_back(std::make_unique<StaticCpuFeature>(ParseVersion("1.40").value()));
  const Framework framework = FrameworkWith(std::move(more)).value();
  const NeedsReport report = ReportNeeds(framework, "TestStaticCpu").value();
  EXPECT_EQ(ToText(report),
            "feature: TestStaticCpu\nalso declared as: TestStaticCpu/old\n"
            "feature gate: TestStaticCpuGate\nsetting: CPUManagerPolicy=static\n"
            "up to version: 1.40.0\n");
  EXPECT_EQ(api::WriteJson(ToTree(report)->root()),
            R"({"name":"TestStaticCpu","aliases":["TestStaticCpu/old"],)"
            R"("featureGates":["TestStaticCpuGate"],)"
            R"("staticConfiguration":{"CPUManagerPolicy":"static"},"maxVersion":"1.40.0"})");
  EXPECT_EQ(ReportNeeds(framework, "Nothing").error().message, "feature 'Nothing' not registered");
}

// Depends on two of everything.
class DemandingFeature final : public StaticCpuFeature {
 public:
  using StaticCpuFeature::StaticCpuFeature;
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"ForeignGate", "OtherForeignGate"},
            .static_configuration = {{"A", "1"}, {"CPUManagerPolicy", "none"}},
            .runtime_features = {.user_namespaces_host_network = true, .mount_options = true}};
  }
};

TEST(Report, ReportsEverythingThatAFeatureDependsOn) {
  FeatureList more;
  more.push_back(std::make_unique<DemandingFeature>());
  const Framework framework = FrameworkWith(std::move(more)).value();
  const NeedsReport report = ReportNeeds(framework, "TestStaticCpu").value();
  EXPECT_EQ(ToText(report),
            "feature: TestStaticCpu\nalso declared as: TestStaticCpu/old\n"
            "feature gate: ForeignGate\nfeature gate: OtherForeignGate\n"
            "setting: A=1\nsetting: CPUManagerPolicy=none\n"
            "runtime feature: MountOptions\nruntime feature: UserNamespacesHostNetwork\n");
  EXPECT_EQ(api::WriteJson(ToTree(report)->root()),
            R"({"name":"TestStaticCpu","aliases":["TestStaticCpu/old"],)"
            R"("featureGates":["ForeignGate","OtherForeignGate"],)"
            R"("staticConfiguration":{"A":"1","CPUManagerPolicy":"none"},)"
            R"("runtimeFeatures":["MountOptions","UserNamespacesHostNetwork"]})");
}

// A feature of one gate that our table does not have.
class ForeignFeature final : public StaticCpuFeature {
 public:
  using StaticCpuFeature::StaticCpuFeature;
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"ForeignGate"},
            .static_configuration = {},
            .runtime_features = {}};
  }
};

TEST(Report, AForeignGateCountsWithItsValueAndAFeatureWithItsLastVersion) {
  FeatureList more;
  more.push_back(std::make_unique<ForeignFeature>(ParseVersion("1.36").value()));
  const Framework framework = FrameworkWith(std::move(more)).value();
  const auto declares = [&](std::string gates, std::string version, std::string agent = "") {
    const DiscoverReport report = ReportDiscover(framework, {.kubelet_configuration = {},
                                                             .feature_gates = std::move(gates),
                                                             .runtime_features = {},
                                                             .version = std::move(version),
                                                             .agent = std::move(agent)})
                                      .value();
    return std::ranges::count(report.declared, "TestStaticCpu") == 1;
  };
  EXPECT_TRUE(declares("ForeignGate=true", "1.36"));
  EXPECT_TRUE(declares("ForeignGate=true", "1.36", "kubelet"));
  EXPECT_FALSE(declares("ForeignGate=true", "1.36", "drakkar")) << "ours does not implement it";
  EXPECT_FALSE(declares("ForeignGate=false", "1.36"));
  EXPECT_FALSE(declares("", "1.36"));
  EXPECT_FALSE(declares("ForeignGate=true", "1.37")) << "above its last version";
  EXPECT_FALSE(declares("ForeignGate=true", "")) << "which is the default";
  NodeInput input;
  input.agent = "other";
  const auto other = ReportDiscover(framework, input);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "agent must be kubelet or drakkar, not \"other\"");
}

TEST(Report, AForeignGateOfTheFileIsOverriddenByTheFlagAndIsNoMistake) {
  FeatureList more;
  more.push_back(std::make_unique<ForeignFeature>());
  const Framework framework = FrameworkWith(std::move(more)).value();
  const api::TreePtr file = Json(R"({"featureGates":{"ForeignGate":true,"Misspelt":true}})");
  const auto report = [&](std::string flag) {
    return ReportDiscover(framework,
                          {.kubelet_configuration = file->root(), .feature_gates = std::move(flag)})
        .value();
  };
  EXPECT_THAT(report("").declared, Contains("TestStaticCpu"));
  EXPECT_THAT(report("").notes,
              ElementsAre("feature gate Misspelt is unknown; no feature depends on it"));
  EXPECT_THAT(report(" ForeignGate = FALSE ,").declared, Not(Contains("TestStaticCpu")));
  EXPECT_THAT(report("ForeignGate=True").declared, Contains("TestStaticCpu"));
}

TEST(Report, EveryGateOfTheFileCounts) {
  const api::TreePtr file = Json(R"({"featureGates":{"RestartAllContainersOnContainerExits":false,
      "ExtendWebSocketsToKubelet":false,"VolumeBindMountOptions":true}})");
  EXPECT_THAT(Discover({.kubelet_configuration = file->root(), .runtime_features = "mountoptions,"})
                  .declared,
              ElementsAre("InPlacePodLevelResourcesVerticalScaling",
                          "InPlacePodVerticalScalingInitContainers", "VolumeBindMountOptions"));
}

TEST(Report, AGateWithoutANameIsAnError) {
  EXPECT_NE(DiscoverError({.feature_gates = "=true"}), "");
  EXPECT_NE(DiscoverError({.feature_gates = "Foreign=true,=true"}), "");
}

TEST(Report, ANodeThatDeclaresNothingStillNamesUnknownGates) {
  EXPECT_THAT(Discover({.feature_gates = "NodeDeclaredFeatures=false,Misspelt=true"}).notes,
              ElementsAre("feature gate NodeDeclaredFeatures is off; the node declares nothing",
                          "feature gate Misspelt is unknown; no feature depends on it"));
}

TEST(Report, NotesAreInTheTree) {
  EXPECT_EQ(
      api::WriteJson(ToTree(DiscoverReport{.declared = {"A"}, .notes = {"n1", "n2"}})->root()),
      R"({"declaredFeatures":["A"],"notes":["n1","n2"]})");
}

TEST(Declared, ANodeDeclaresOnlyWhatItImplements) {
  NodeConfiguration node;
  node.gate_enabled = [](std::string_view) { return true; };
  const std::vector<std::string_view> implemented = {"RestartAllContainersOnContainerExits",
                                                     "DraOptionalNodePreparation", "Imagined"};
  const Declaration declaration = DeclareForNode(DefaultFramework(), node, implemented);
  EXPECT_THAT(declaration.names,
              ElementsAre("DRAOptionalNodeOperations", "DraOptionalNodePreparation",
                          "RestartAllContainersOnContainerExits"));
  EXPECT_THAT(declaration.problems, ElementsAre("unknown feature Imagined"));
  EXPECT_EQ(declaration.features.Count(), 2u);
  node.gate_enabled = nullptr;
  EXPECT_THAT(DeclareForNode(DefaultFramework(), node, implemented).names, IsEmpty());
  EXPECT_THAT(DeclaredNames(DefaultFramework(), node), IsEmpty());
}

TEST(Declared, WhatOurNodeImplementsIsRegistered) {
  NodeConfiguration node;
  node.gate_enabled = [](std::string_view) { return true; };
  const Declaration declaration = DeclareForNode(DefaultFramework(), node, ImplementedByOurNode());
  EXPECT_THAT(declaration.problems, IsEmpty());
  EXPECT_THAT(declaration.names,
              ElementsAre("DRAOptionalNodeOperations", "DraOptionalNodePreparation",
                          "ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"));
  EXPECT_THAT(ReportDiscover(DefaultFramework(), {.agent = "drakkar"}).value().declared,
              ElementsAre("ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"));
}

TEST(Declared, OnlyANodeThatNewlySatisfiesAPodHelpsIt) {
  const Registry& registry = DefaultFramework().registry();
  const FeatureSet none = registry.NewSet();
  const FeatureSet one = registry.Map({"VolumeBindMountOptions"}).value();
  const FeatureSet two =
      registry.Map({"VolumeBindMountOptions", "ExtendWebSocketsToKubelet"}).value();
  EXPECT_TRUE(ComesToSatisfy(one, none, two));
  EXPECT_TRUE(ComesToSatisfy(two, one, two));
  EXPECT_FALSE(ComesToSatisfy(two, none, one));
  EXPECT_FALSE(ComesToSatisfy(one, one, two));
  EXPECT_FALSE(ComesToSatisfy(one, two, none));
}

TEST(Declared, MessagesNameTheMissingFeatures) {
  EXPECT_EQ(UnmatchedNodeMessage({"X"}), "node(s) did not match node declared features: X");
  EXPECT_EQ(PodRejectedMessage({"A", "B"}),
            "Pod requires node features that are not available: A, B");
  EXPECT_EQ(UpdateRefusedMessage({"A", "B"}, "n"),
            "pod update requires features A, B which are not available on node \"n\"");
}

}  // namespace
}  // namespace drakkar::features
