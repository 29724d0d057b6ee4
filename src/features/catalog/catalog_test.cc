#include "features/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "features/testing/static_cpu_feature.h"

namespace drakkar::features {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Version k137 = VersionOf({1, 37});

api::TreePtr Json(std::string_view text) {
  return api::ParseJson(text).value();
}

// A configuration that meets exactly the requirements of `feature`.
NodeConfiguration Meeting(const Feature& feature) {
  const FeatureRequirements needs = feature.Requirements();
  std::map<std::string, bool, std::less<>> gates;
  for (const std::string& gate : needs.enabled_feature_gates) gates[gate] = true;
  NodeConfiguration configuration;
  configuration.gate_enabled = LookupIn(std::move(gates));
  configuration.static_configuration = needs.static_configuration;
  configuration.runtime_features = needs.runtime_features;
  return configuration;
}

std::vector<std::string> Required(std::string_view pod, std::vector<std::string_view> claims = {},
                                  CatalogSetting setting = CatalogSetting::kKep) {
  const api::TreePtr tree = Json(pod);
  PodInfo info = PodInfoOf(tree->root());
  std::vector<api::TreePtr> kept;
  for (std::string_view claim : claims) {
    kept.push_back(Json(claim));
    info.claims.push_back(kept.back()->root());
  }
  const Framework& framework = DefaultFramework(setting);
  const std::vector<Need> needs = framework.ExplainPodScheduling(info, k137).value();
  std::vector<std::string> texts;
  for (const Need& need : needs) {
    texts.push_back(need.feature + " (" + need.field + ")");
  }
  return texts;
}

std::vector<std::string> RequiredForUpdate(std::string_view before, std::string_view after,
                                           CatalogSetting setting = CatalogSetting::kKep) {
  const api::TreePtr old_pod = Json(before);
  const api::TreePtr new_pod = Json(after);
  const Framework& framework = DefaultFramework(setting);
  return framework.registry()
      .Names(
          framework.InferForPodUpdate(PodInfoOf(old_pod->root()), PodInfoOf(new_pod->root()), k137)
              .value())
      .value();
}

// Every feature of every setting.
class EachFeature : public testing::TestWithParam<std::tuple<CatalogSetting, std::size_t>> {
 protected:
  const Framework& framework() const { return DefaultFramework(std::get<0>(GetParam())); }
  const Feature& feature() const { return framework().registry().feature(std::get<1>(GetParam())); }
};

std::string NameOfCase(const testing::TestParamInfo<EachFeature::ParamType>& info) {
  const auto [setting, index] = info.param;
  return std::string(setting == CatalogSetting::kKep ? "Kep" : "Kubernetes") +
         std::string(DefaultFramework(setting).registry().feature(index).Name());
}

INSTANTIATE_TEST_SUITE_P(
    Catalog, EachFeature,
    testing::Combine(testing::Values(CatalogSetting::kKep, CatalogSetting::kKubernetes),
                     testing::Range<std::size_t>(0, DefaultFramework().registry().size())),
    NameOfCase);

TEST_P(EachFeature, IsDeclaredWhenItsRequirementsAreMet) {
  const Discovery discovery = framework().DiscoverNodeFeatures(Meeting(feature()));
  EXPECT_THAT(discovery.names, testing::Contains(std::string(feature().Name())));
  EXPECT_THAT(discovery.problems, IsEmpty());
}

TEST_P(EachFeature, IsNotDeclaredWithAnyOfItsGatesOff) {
  const FeatureRequirements needs = feature().Requirements();
  ASSERT_FALSE(needs.enabled_feature_gates.empty());
  for (const std::string& off : needs.enabled_feature_gates) {
    NodeConfiguration configuration = Meeting(feature());
    // All other gates are on.
    configuration.gate_enabled = [&](std::string_view name) { return name != off; };
    configuration.runtime_features = {true, true};
    EXPECT_FALSE(
        framework().DiscoverNodeFeatures(configuration).features.Get(std::get<1>(GetParam())));
    // The feature itself agrees.
    EXPECT_FALSE(feature().Discover(configuration).value());
  }
}

TEST_P(EachFeature, HasGatesThatAreInTheGateTable) {
  for (const std::string& gate : feature().Requirements().enabled_feature_gates) {
    EXPECT_TRUE(FindGate(gate)) << gate;
  }
}

TEST_P(EachFeature, IsNotRequiredByAPlainPod) {
  const api::TreePtr pod = Json(R"({"spec":{"containers":[{"name":"c"}]}})");
  const PodInfo info = PodInfoOf(pod->root());
  EXPECT_FALSE(feature().InferForScheduling(info));
  EXPECT_FALSE(feature().InferForUpdate(info, info));
  EXPECT_FALSE(feature().InferForScheduling(PodInfo{}));
  EXPECT_FALSE(feature().InferForUpdate(PodInfo{}, info));
}

TEST(Catalog, ContainsTheFeaturesOfKubernetesAndTheProposals) {
  const Registry& registry = DefaultFramework().registry();
  FeatureSet all = registry.NewSet();
  for (std::size_t i = 0; i < registry.size(); ++i) all.Set(i);
  EXPECT_THAT(registry.DeclaredNames(all),
              ElementsAre("DRANodeAllocatableResources", "DRAOptionalNodeOperations",
                          "DraOptionalNodePreparation", "ExtendWebSocketsToKubelet",
                          "InPlacePodLevelResourcesVerticalScaling",
                          "InPlacePodVerticalScalingInitContainers",
                          "InPlacePodVerticalScalingMemoryBackedVolumes",
                          "RestartAllContainersOnContainerExits",
                          "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"));
  EXPECT_EQ(registry.size(), 9u);
}

TEST(Catalog, ACustomFeatureIsRespectedEverywhere) {
  FeatureList more;
  more.push_back(std::make_unique<StaticCpuFeature>());
  const Framework framework = FrameworkWith(std::move(more)).value();
  EXPECT_EQ(framework.registry().size(), DefaultFramework().registry().size() + 1);

  NodeConfiguration node;
  node.gate_enabled = LookupIn({{"TestStaticCpuGate", true}});
  node.static_configuration["CPUManagerPolicy"] = "static";
  const Discovery discovery = framework.DiscoverNodeFeatures(node);
  EXPECT_THAT(discovery.names, ElementsAre("TestStaticCpu", "TestStaticCpu/old"));

  const api::TreePtr pod = Json(R"({"spec":{"tolerations":[{"key":"exclusive-cpus"}]}})");
  const FeatureSet required = framework.InferForPodScheduling(PodInfoOf(pod->root()), k137).value();
  EXPECT_TRUE(framework.MatchNodeFeatureSet(required, discovery.features).value().is_match);
  EXPECT_THAT(
      framework.MatchNodeFeatureSet(required, framework.registry().NewSet()).value().unsatisfied,
      ElementsAre("TestStaticCpu"));
}

TEST(Catalog, ANameThatIsTakenCannotBeAdded) {
  FeatureList more = AllFeatures(CatalogSetting::kKubernetes);
  EXPECT_FALSE(FrameworkWith(std::move(more), CatalogSetting::kKep).ok());
}

constexpr std::string_view kPod = R"({"spec":{"containers":[{"name":"c"}]}})";

TEST(DraOptionalNodePreparation, IsRequiredIfAResultOfAnAllocatedClaimSkipsOperations) {
  const auto claim = [](std::string_view skip) {
    return R"({"metadata":{"namespace":"n","name":"gpu"},"status":{"allocation":{"devices":{"results":[
      {"request":"a","driver":"d","pool":"p","device":"0"},
      {"request":"b","driver":"d","pool":"p","device":"1","skipNodeOperations":)" +
           std::string(skip) + "}]}}}}";
  };
  const std::string why =
      "DraOptionalNodePreparation (claim n/gpu: "
      "status.allocation.devices.results[1].skipNodeOperations)";
  for (const char* skip :
       {"true", R"(["*"])", R"(["NodePrepareResources"])", R"(["NodeUnprepareResources"])"}) {
    EXPECT_THAT(Required(kPod, {claim(skip)}), ElementsAre(why)) << skip;
    EXPECT_THAT(Required(kPod, {R"({"metadata":{"name":"x"}})", claim(skip)}), ElementsAre(why));
    EXPECT_THAT(Required(kPod, {claim(skip)}, CatalogSetting::kKubernetes), IsEmpty());
  }
  for (const char* skip : {"false", "[]", "null"}) {
    EXPECT_THAT(Required(kPod, {claim(skip)}), IsEmpty()) << skip;
  }
}

TEST(DraOptionalNodePreparation, IsNotRequiredByUnallocatedClaims) {
  EXPECT_THAT(Required(kPod, {R"({"metadata":{"name":"x"},"spec":{"devices":{"requests":[]}}})",
                              R"({"metadata":{"name":"y"},"status":{}})"}),
              IsEmpty());
}

TEST(DraOptionalNodePreparation, IsDeclaredUnderBothNamesAndEitherSatisfies) {
  const Framework& framework = DefaultFramework();
  NodeConfiguration node;
  node.gate_enabled = LookupIn(FeatureGates().With(Gate::kDRAOptionalNodePreparation, true));
  EXPECT_THAT(framework.DiscoverNodeFeatures(node).names,
              testing::IsSupersetOf({"DRAOptionalNodeOperations", "DraOptionalNodePreparation"}));
  const FeatureSet required = framework.registry().Map({"DraOptionalNodePreparation"}).value();
  for (const char* name : {"DRAOptionalNodeOperations", "DraOptionalNodePreparation"}) {
    const api::TreePtr tree =
        Json(R"({"status":{"declaredFeatures":[")" + std::string(name) + R"("]}})");
    EXPECT_TRUE(framework.MatchNode(required, tree->root()).value().is_match) << name;
  }
  EXPECT_THAT(
      framework.MatchNodeFeatureSet(required, framework.registry().NewSet()).value().unsatisfied,
      ElementsAre("DraOptionalNodePreparation"));
}

TEST(DraOptionalNodePreparation, HasOneNameInTheKubernetesSetting) {
  const Registry& registry = DefaultFramework(CatalogSetting::kKubernetes).registry();
  EXPECT_TRUE(registry.FindIndex("DRAOptionalNodeOperations"));
  EXPECT_FALSE(registry.FindIndex("DraOptionalNodePreparation"));
}

TEST(RestartAllContainers, IsRequiredByTheActionInAnyContainerExceptEphemeralOnes) {
  const auto pod = [](std::string_view list, std::string_view action) {
    return R"({"spec":{")" + std::string(list) +
           R"(":[{"name":"a"},{"name":"b","restartPolicyRules":[
      {"action":"Restart"},{"action":")" +
           std::string(action) + R"("}]}]}})";
  };
  EXPECT_THAT(Required(pod("containers", "RestartAllContainers")),
              ElementsAre("RestartAllContainersOnContainerExits "
                          "(spec.containers[1].restartPolicyRules[1].action)"));
  EXPECT_THAT(Required(pod("initContainers", "RestartAllContainers")),
              ElementsAre("RestartAllContainersOnContainerExits "
                          "(spec.initContainers[1].restartPolicyRules[1].action)"));
  EXPECT_THAT(Required(pod("ephemeralContainers", "RestartAllContainers")), IsEmpty());
  EXPECT_THAT(Required(pod("containers", "Restart")), IsEmpty());
}

TEST(UserNamespacesHostNetwork, IsRequiredByAUserNamespaceOnTheHostNetwork) {
  EXPECT_THAT(Required(R"({"spec":{"hostNetwork":true,"hostUsers":false}})"),
              ElementsAre("UserNamespacesHostNetworkSupport (spec.hostUsers)"));
  EXPECT_THAT(Required(R"({"spec":{"hostNetwork":true}})"), IsEmpty());
  EXPECT_THAT(Required(R"({"spec":{"hostUsers":false}})"), IsEmpty());
  EXPECT_THAT(Required(R"({"spec":{"hostNetwork":true,"hostUsers":true}})"), IsEmpty());
}

TEST(UserNamespacesHostNetwork, DependsOnTheRuntimeAndTheGate) {
  NodeConfiguration node;
  node.gate_enabled = [](std::string_view) { return true; };
  const auto names = [&] { return DefaultFramework().DiscoverNodeFeatures(node).names; };
  EXPECT_THAT(names(), testing::Not(testing::Contains("UserNamespacesHostNetworkSupport")));
  EXPECT_THAT(names(), testing::Not(testing::Contains("VolumeBindMountOptions")));
  node.runtime_features.user_namespaces_host_network = true;
  EXPECT_THAT(names(), testing::Contains("UserNamespacesHostNetworkSupport"));
  node.runtime_features.mount_options = true;
  EXPECT_THAT(names(), testing::Contains("VolumeBindMountOptions"));
}

TEST(VolumeBindMountOptions, IsRequiredByOptionsOnAnyMount) {
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    const std::string pod =
        R"({"spec":{")" + std::string(list) +
        R"(":[{"volumeMounts":[{"name":"v","bindMountOptions":["noexec"]}]}]}})";
    EXPECT_THAT(Required(pod), ElementsAre("VolumeBindMountOptions (spec." + std::string(list) +
                                           "[0].volumeMounts[0].bindMountOptions)"));
  }
}

TEST(PodLevelResources, AnUpdateRequiresTheFeatureIfTheValuesChange) {
  const auto pod = [](std::string_view resources) {
    return R"({"spec":{"resources":)" + std::string(resources) + "}}";
  };
  const auto changed = ElementsAre("InPlacePodLevelResourcesVerticalScaling");
  EXPECT_THAT(
      RequiredForUpdate(pod(R"({"requests":{"cpu":"1"}})"), pod(R"({"requests":{"cpu":"2"}})")),
      changed);
  EXPECT_THAT(
      RequiredForUpdate(pod(R"({"requests":{"cpu":"1"}})"), pod(R"({"requests":{"cpu":"1000m"}})")),
      IsEmpty());
  EXPECT_THAT(
      RequiredForUpdate(pod(R"({"requests":{"cpu":1}})"), pod(R"({"requests":{"cpu":"1"}})")),
      IsEmpty());
  EXPECT_THAT(
      RequiredForUpdate(pod(R"({"requests":{"cpu":"1"}})"), pod(R"({"requests":{"memory":"1"}})")),
      changed);
  EXPECT_THAT(RequiredForUpdate(pod("null"), pod("{}")), changed);
  EXPECT_THAT(RequiredForUpdate(pod(R"({"limits":{}})"), pod("{}")), IsEmpty());
}

TEST(InitContainerResources, EqualValuesAreNoChangeExceptForKubernetes) {
  const auto pod = [](std::string_view cpu) {
    return R"({"spec":{"initContainers":[{"resources":{"requests":{"cpu":")" + std::string(cpu) +
           R"("}}}]}})";
  };
  const auto needed = ElementsAre("InPlacePodVerticalScalingInitContainers");
  EXPECT_THAT(RequiredForUpdate(pod("1"), pod("2")), needed);
  EXPECT_THAT(RequiredForUpdate(pod("1"), pod("1000m")), IsEmpty());
  EXPECT_THAT(RequiredForUpdate(pod("1"), pod("1000m"), CatalogSetting::kKubernetes), needed);
}

TEST(InitContainerResources, AnyInitContainerCountsExceptSidecars) {
  const auto pod = [](std::string_view second) {
    return R"({"spec":{"initContainers":[{"name":"a","resources":{"limits":{"cpu":"1"}}},{"name":"b")" +
           std::string(second) + "}]}}";
  };
  const auto needed = ElementsAre("InPlacePodVerticalScalingInitContainers");
  const std::string one = R"(,"resources":{"limits":{"cpu":"1"}})";
  const std::string two = R"(,"resources":{"limits":{"cpu":"2"}})";
  const std::string sidecar = R"(,"restartPolicy":"Always")";
  EXPECT_THAT(RequiredForUpdate(pod(one), pod(two)), needed);
  EXPECT_THAT(RequiredForUpdate(pod(one), pod(one)), IsEmpty());
  EXPECT_THAT(RequiredForUpdate(pod(sidecar + one), pod(sidecar + two)), IsEmpty());
}

// For Kubernetes a list that appears or disappears is a change, even if it is empty.
TEST(InitContainerResources, OfKubernetesAreComparedAsWritten) {
  const auto needed = [](std::string_view before, std::string_view after) {
    const auto pod = [](std::string_view resources) {
      return R"({"spec":{"initContainers":[{"resources":)" + std::string(resources) + "}]}}";
    };
    const bool kep = !RequiredForUpdate(pod(before), pod(after)).empty();
    const bool kubernetes =
        !RequiredForUpdate(pod(before), pod(after), CatalogSetting::kKubernetes).empty();
    return std::pair(kep, kubernetes);
  };
  const std::pair neither{false, false}, kubernetes{false, true}, both{true, true};
  EXPECT_EQ(needed("{}", "{}"), neither);
  EXPECT_EQ(needed("{}", R"({"limits":{}})"), kubernetes);
  EXPECT_EQ(needed(R"({"requests":{}})", "{}"), kubernetes);
  EXPECT_EQ(needed("{}", R"({"claims":[]})"), kubernetes);
  EXPECT_EQ(needed(R"({"claims":[{"name":"a"}]})", R"({"claims":[{"name":"a"}]})"), neither);
  EXPECT_EQ(needed(R"({"claims":[{"name":"a"}]})", R"({"claims":[{"name":"b"}]})"), both);
  EXPECT_EQ(needed(R"({"claims":[{"name":"a"}]})", "{}"), both);
  EXPECT_EQ(needed("{}", R"({"claims":[{"name":"a"}]})"), both);
  EXPECT_EQ(needed(R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"1","memory":"1"}})"), both);
  EXPECT_EQ(
      needed(R"({"limits":{"cpu":"1","memory":"1"}})", R"({"limits":{"cpu":"1","memory":"2"}})"),
      both);
  EXPECT_EQ(needed(R"({"limits":{"cpu":"x"}})", R"({"limits":{"cpu":"x"}})"), neither);
  EXPECT_EQ(needed(R"({"limits":{"cpu":"x"}})", R"({"limits":{"cpu":"1"}})"), both);
  EXPECT_EQ(needed(R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"x"}})"), both);
}

TEST(InitContainerResources, ARemovedContainerRequiresNothing) {
  EXPECT_THAT(
      RequiredForUpdate(R"({"spec":{"initContainers":[{"resources":{"requests":{"cpu":"1"}}}]}})",
                        R"({"spec":{}})"),
      IsEmpty());
}

TEST(MemoryBackedVolumes, AnUpdateOfASizeLimitRequiresTheFeature) {
  // The first volume never changes.
  const auto pod = [](std::string_view volume) {
    return R"({"spec":{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},)" +
           std::string(volume) + "]}}";
  };
  const auto memory = [&](std::string_view limit) {
    return pod(R"({"name":"v","emptyDir":{"medium":"Memory","sizeLimit":")" + std::string(limit) +
               R"("}})");
  };
  const auto disk = [&](std::string_view limit) {
    return pod(R"({"name":"v","emptyDir":{"sizeLimit":")" + std::string(limit) + R"("}})");
  };
  EXPECT_THAT(RequiredForUpdate(memory("1Mi"), memory("2Mi")),
              ElementsAre("InPlacePodVerticalScalingMemoryBackedVolumes"));
  EXPECT_THAT(RequiredForUpdate(memory("1Mi"), memory("1024Ki")), IsEmpty()) << "the same amount";
  EXPECT_THAT(RequiredForUpdate(disk("1Mi"), disk("2Mi")), IsEmpty());
  EXPECT_THAT(
      RequiredForUpdate(pod(R"({"name":"v","emptyDir":{"medium":"Memory"}})"), memory("2Mi")),
      IsEmpty())
      << "no limit before";
  EXPECT_THAT(
      RequiredForUpdate(memory("1Mi"), pod(R"({"name":"v","emptyDir":{"medium":"Memory"}})")),
      IsEmpty())
      << "no limit after";
  EXPECT_THAT(
      RequiredForUpdate(memory("1Mi"),
                        pod(R"({"name":"w","emptyDir":{"medium":"Memory","sizeLimit":"2Mi"}})")),
      IsEmpty())
      << "another volume";
  EXPECT_THAT(
      RequiredForUpdate(
          R"({"spec":{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"2Mi"}}]}})",
          memory("2Mi")),
      IsEmpty())
      << "validation rejects an added volume";
}

TEST(MemoryBackedVolumes, AVolumeThatWasNotAnEmptyDirRequiresNothing) {
  EXPECT_THAT(
      RequiredForUpdate(
          R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})",
          R"({"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}}]}})"),
      IsEmpty());
}

}  // namespace
}  // namespace drakkar::features
