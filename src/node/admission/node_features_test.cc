// What the node declares, and which pods it rejects because of that (KEP-5328).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "features/report.h"
#include "features/testing/static_cpu_feature.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRestartAll[] = "RestartAllContainersOnContainerExits";
// Needs RestartAllContainersOnContainerExits.
constexpr char kRestartingPod[] = R"("restartPolicy":"Never","containers":[{"name":"a",
  "image":"busybox:1","restartPolicy":"Never","restartPolicyRules":[{"action":"RestartAllContainers",
  "exitCodes":{"operator":"In","values":[42]}}]}])";

std::vector<std::string> Declared(NodeHarness& node) {
  std::vector<std::string> names;
  const api::ObjectPtr object = node.api.Get("Node", "node-1");
  for (api::Value each : (*object)["status"]["declaredFeatures"].elements()) {
    names.emplace_back(each.str());
  }
  return names;
}

void Restart(NodeHarness& node, FeatureGates gates) {
  node.KillAgent();
  node.gates = std::move(gates);
  node.StartAgent();
  node.Advance(seconds(31));
}

TEST(NodeFeatures, AreDeclaredSortedAndUnderAllNames) {
  NodeHarness node;
  node.StartAgent();
  EXPECT_THAT(Declared(node), ElementsAre("DRAOptionalNodeOperations", "DraOptionalNodePreparation",
                                          "ExtendWebSocketsToKubelet", kRestartAll));
}

TEST(NodeFeatures, AreOnlyThoseThatTheNodeImplements) {
  // All gates on: the library knows more features than this node implements.
  FeatureGates all = FeatureGates();
  for (int i = 0; i < static_cast<int>(Gate::kCount); ++i)
    all = all.With(static_cast<Gate>(i), true);
  NodeHarness node(all);
  node.StartAgent();
  EXPECT_THAT(Declared(node), ElementsAre("DRAOptionalNodeOperations", "DraOptionalNodePreparation",
                                          "ExtendWebSocketsToKubelet", kRestartAll));
}

TEST(NodeFeatures, FollowTheGatesOnlyWhenTheAgentStarts) {
  NodeHarness node;
  node.StartAgent();
  node.gates = node.gates.With(Gate::kRestartAllContainersOnContainerExits, false);
  node.Advance(seconds(400));
  EXPECT_THAT(Declared(node), ::testing::Contains(kRestartAll)) << "heartbeats change nothing";
  Restart(node, node.gates);
  EXPECT_THAT(Declared(node), ElementsAre("DRAOptionalNodeOperations", "DraOptionalNodePreparation",
                                          "ExtendWebSocketsToKubelet"));
}

TEST(NodeFeatures, AreRemovedWithTheGateOffAndRestoredWithItOn) {
  NodeHarness node;
  const FeatureGates on = node.gates;
  node.StartAgent();
  ASSERT_FALSE(Declared(node).empty());
  Restart(node, on.With(Gate::kNodeDeclaredFeatures, false));
  EXPECT_FALSE((*node.api.Get("Node", "node-1"))["status"]["declaredFeatures"].has_value());
  Restart(node, on);
  EXPECT_EQ(Declared(node).size(), 4u);
  // A configuration that enables no feature clears the field too.
  Restart(node, on.With(Gate::kRestartAllContainersOnContainerExits, false)
                    .With(Gate::kDRAOptionalNodePreparation, false)
                    .With(Gate::kExtendWebSocketsToKubelet, false));
  EXPECT_FALSE((*node.api.Get("Node", "node-1"))["status"]["declaredFeatures"].has_value());
}

TEST(NodeFeatures, AreRestoredWhenSomebodyElseChangesThem) {
  NodeHarness node;
  node.StartAgent();
  const std::vector<std::string> ours = Declared(node);
  for (const char* theirs : {R"(["Made/up"])", "[]"}) {
    api::Draft object(node.api.Get("Node", "node-1")->tree());
    object["status"]["declaredFeatures"] = api::Draft(api::ParseJson(theirs).value());
    node.api.Update("Node", "node-1", "status", object.Freeze());
    node.Run();
    ASSERT_NE(Declared(node), ours);
    node.Advance(seconds(11));
    EXPECT_EQ(Declared(node), ours);
  }
}

TEST(NodeFeatures, OfTheRuntimeCountIfConfiguredAndReported) {
  const std::string_view implemented[] = {"UserNamespacesHostNetworkSupport"};
  for (const auto& [stated, offered] : std::vector<std::pair<bool, bool>>{
           {false, false}, {true, false}, {false, true}, {true, true}}) {
    NodeHarness node(FeatureGates().With(Gate::kUserNamespacesHostNetworkSupport, true));
    node.features.implemented = implemented;
    node.features.runtime_features.user_namespaces_host_network = stated;
    node.machine.features.user_namespaces_host_network = offered;
    node.StartAgent();
    EXPECT_EQ(Declared(node).size(), stated && offered ? 1u : 0u) << stated << offered;
  }
}

TEST(NodeFeatures, ACustomFeatureWithAStaticSettingIsDeclaredAndEnforced) {
  features::FeatureList more;
  more.push_back(std::make_unique<features::StaticCpuFeature>());
  const features::Framework framework = features::FrameworkWith(std::move(more)).value();
  const std::string_view implemented[] = {"TestStaticCpu", "NobodyKnowsThis"};
  constexpr char kExclusive[] = R"("tolerations":[{"key":"exclusive-cpus","operator":"Exists"}],
    "containers":[{"name":"a","image":"busybox:1"}])";
  for (const char* policy : {"static", "none"}) {
    NodeHarness node;
    node.features = {.framework = &framework,
                     .gate_enabled = features::LookupIn({{"TestStaticCpuGate", true}}),
                     .static_configuration = {{"CPUManagerPolicy", policy}},
                     .runtime_features = {},
                     .implemented = implemented};
    node.StartAgent();
    node.CreatePod("p", kExclusive);
    if (std::string_view(policy) == "static") {
      EXPECT_THAT(Declared(node), ElementsAre("TestStaticCpu", "TestStaticCpu/old"));
      EXPECT_EQ(node.Phase("p"), "Running");
    } else {
      EXPECT_THAT(Declared(node), IsEmpty());
      EXPECT_EQ(node.Phase("p"), "Failed");
      EXPECT_THAT(node.Events("PodFeatureUnsupported"),
                  ElementsAre("Pod requires node features that are not available: TestStaticCpu"));
    }
  }
}

TEST(NodeFeatures, APodThatNeedsAMissingFeatureFails) {
  NodeHarness node;  // the API server knows the feature, the node does not
  node.gates = node.gates.With(Gate::kRestartAllContainersOnContainerExits, false);
  node.StartAgent();
  node.CreatePod("p", kRestartingPod);
  node.CreatePod("plain", R"("containers":[{"name":"a","image":"busybox:1"}])");
  EXPECT_EQ(node.Phase("plain"), "Running");
  EXPECT_EQ(node.Phase("p"), "Failed");
  const std::string message =
      StrCat("Pod requires node features that are not available: ", kRestartAll);
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
  EXPECT_EQ((*node.Pod("p"))["status"]["message"].str(), "Pod was rejected: " + message);
  EXPECT_THAT(node.Events("PodFeatureUnsupported"), ElementsAre(message));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr(R"(kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1)"));
  EXPECT_THAT(node.Containers("p", "a"), IsEmpty());
}

TEST(NodeFeatures, WithTheGateOffNothingIsChecked) {
  NodeHarness node;
  node.gates = node.gates.With(Gate::kRestartAllContainersOnContainerExits, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.StartAgent();
  node.CreatePod("p", kRestartingPod);
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(NodeFeatures, APodIsCheckedAgainAfterARestartBeforeItIsAdopted) {
  NodeHarness node;
  const FeatureGates on = node.gates;
  node.StartAgent();
  node.CreatePod("p", kRestartingPod);
  ASSERT_EQ(node.Phase("p"), "Running");
  // The gate of the framework: nothing is declared, nothing checked.
  Restart(node, on.With(Gate::kNodeDeclaredFeatures, false));
  EXPECT_EQ(node.Phase("p"), "Running");
  Restart(node, on);
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Containers("p", "a").size(), 1u) << "adopted each time";
  // The gate of the feature.
  Restart(node, on.With(Gate::kRestartAllContainersOnContainerExits, false));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ(node.Containers("p", "a").at(0)->status.state, ContainerState::kExited);
  Restart(node, on);
  EXPECT_EQ(node.Phase("p"), "Failed") << "final";
}

TEST(NodeFeatures, ARejectedPodReleasesItsClaims) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p", StrCat(R"("restartPolicy":"Never","containers":[{"name":"a",
    "image":"busybox:1","resources":{"claims":[{"name":"c"}]},"restartPolicy":"Never",
    "restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In",
    "values":[42]}}]}])"),
                 {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  Restart(node, node.gates.With(Gate::kRestartAllContainersOnContainerExits, false));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
  EXPECT_EQ(node.Containers("p", "a").at(0)->status.state, ContainerState::kExited);
}

TEST(NodeFeatures, APodThatIsBeingDeletedIsNotChecked) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", kRestartingPod);
  node.KillAgent();
  node.api.Delete("Pod", "default/p", {.grace_period_seconds = 30});
  node.gates = node.gates.With(Gate::kRestartAllContainersOnContainerExits, false);
  node.StartAgent();
  node.Advance(seconds(31));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.Events("PodFeatureUnsupported"), IsEmpty());
  EXPECT_THAT(node.metrics.Text(),
              ::testing::Not(HasSubstr("kubelet_admission_rejections_total{")));
}

TEST(NodeFeatures, OnlyReleasesThatKnowTheFieldSeeClaimsThatSkip) {
  for (const int minor : {36, 37}) {
    NodeHarness node;
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    node.gates =
        FeatureGates::Create({.emulated = {1, minor}, .overrides = {}, .turned_on = {}}).value();
    node.StartAgent();
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"}, "*");
    node.CreatePod("p", kUsesClaim, {"c"});
    EXPECT_EQ(node.Phase("p"), minor == 36 ? "Running" : "Failed");
  }
}

TEST(NodeFeatures, AReleaseBeforeTheFrameworkRefusesWhatItCannotRun) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", kRestartingPod);
  ASSERT_EQ(node.Phase("p"), "Running");
  Restart(node,
          FeatureGates::Create({.emulated = {1, 34}, .overrides = {}, .turned_on = {}}).value());
  EXPECT_THAT(Declared(node), IsEmpty());
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
}

TEST(NodeFeatures, AnUpdateThatNeedsAMissingFeatureIsReportedButStands) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod(
      "p", R"("resources":{"limits":{"cpu":"1"}},"containers":[{"name":"a","image":"busybox:1"}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  features::FeatureList more;
  more.push_back(std::make_unique<features::StaticCpuFeature>());
  const features::Framework framework = features::FrameworkWith(std::move(more)).value();
  const NodeFeatures features({.framework = &framework,
                               .gate_enabled = {},
                               .static_configuration = {},
                               .runtime_features = {},
                               .implemented = {}},
                              FeatureGates(), {});
  const auto pod = [](const char* key) {
    return api::ParseJson(StrCat(R"({"spec":{"tolerations":[{"key":")", key, R"("}]}})")).value();
  };
  EXPECT_EQ(features.CheckUpdate(pod("a")->root(), pod("exclusive-cpus")->root()),
            "Pod requires node features that are not available: TestStaticCpu");
  EXPECT_FALSE(features.CheckUpdate(pod("a")->root(), pod("b")->root()));
}

// `drakkar features discover --agent drakkar`, `drakkar simulate` and the C interface predict what
// the node declares, for every combination of the relevant gates in every release.
TEST(NodeFeatures, ArePredictedForEveryCombinationOfGates) {
  std::set<std::string> decisive = {"NodeDeclaredFeatures", "ContainerRestartRules"};
  const features::Framework& framework = features::DefaultFramework();
  for (std::size_t i = 0; i < framework.registry().size(); ++i) {
    for (std::string& gate : framework.registry().feature(i).Requirements().enabled_feature_gates) {
      decisive.insert(std::move(gate));
    }
  }
  const std::vector<std::string> names(decisive.begin(), decisive.end());
  ASSERT_LE(names.size(), 12u) << "too many to try all combinations";
  std::size_t declared = 0;
  for (int minor = 34; minor <= 37; ++minor) {
    for (std::uint32_t bits = 0; bits < (1u << names.size()); ++bits) {
      std::vector<std::string> given;
      for (std::size_t i = 0; i < names.size(); ++i) {
        const bool on = (bits >> i) & 1;
        const bool is_known = FactsOf(*FindGate(names[i]), {1, minor}).is_known;
        if (is_known) given.push_back(StrCat(names[i], on ? "=true" : "=false"));
      }
      const std::string text = Join(given, ",");
      const Result<features::DiscoverReport> foreseen = features::ReportDiscover(
          framework, {.kubelet_configuration = {},
                      .feature_gates = text,
                      .runtime_features = "MountOptions,UserNamespacesHostNetwork",
                      .version = StrCat("1.", minor),
                      .agent = "drakkar"});
      const Result<FeatureGates> gates =
          FeatureGates::Create({.emulated = {1, minor}, .overrides = text, .turned_on = {}});
      ASSERT_EQ(foreseen.ok(), gates.ok()) << minor << " " << text;
      if (!gates.ok()) {
        EXPECT_EQ(foreseen.error().message, gates.error().message);
        continue;
      }
      const features::RuntimeFeatures all{.user_namespaces_host_network = true,
                                          .mount_options = true};
      NodeFeatureOptions options;
      options.runtime_features = all;
      const NodeFeatures node(options, *gates, all);
      ASSERT_EQ(foreseen->declared, node.declared_names()) << minor << " " << text;
      declared += node.declared_names().size();
    }
  }
  EXPECT_GT(declared, 0u);
}

}  // namespace
}  // namespace drakkar::node
