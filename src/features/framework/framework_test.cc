#include "features/framework/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/json/reader.h"
#include "features/framework/feature_name.h"
#include "features/testing/static_cpu_feature.h"

namespace drakkar::features {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A feature defined by data only.
class PlainFeature : public Feature {
 public:
  PlainFeature(std::string name, std::vector<std::string> gates,
               std::vector<std::string> aliases = {})
      : name_(std::move(name)), gates_(std::move(gates)), aliases_(std::move(aliases)) {}
  std::string_view Name() const override { return name_; }
  std::vector<std::string> Aliases() const override { return aliases_; }
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = gates_, .static_configuration = {}, .runtime_features = {}};
  }

 private:
  std::string name_;
  std::vector<std::string> gates_;
  std::vector<std::string> aliases_;
};

class BrokenFeature : public PlainFeature {
 public:
  BrokenFeature() : PlainFeature("Broken", {"G"}) {}
  Result<bool> Discover(const NodeConfiguration&) const override {
    return FailedPrecondition("cannot tell");
  }
};

// Says yes regardless of its gate.
class CarelessFeature : public PlainFeature {
 public:
  CarelessFeature() : PlainFeature("Careless", {"G", "H"}) {}
  Result<bool> Discover(const NodeConfiguration&) const override { return true; }
};

template <typename... Features>
FeatureList ListOf(Features... features) {
  FeatureList list;
  (list.push_back(std::make_unique<Features>(std::move(features))), ...);
  return list;
}

template <typename... Features>
Framework FrameworkOf(Features... features) {
  return Framework(Registry::Create(ListOf(std::move(features)...)).value());
}

std::string RegistrationError(FeatureList list) {
  const auto registry = Registry::Create(std::move(list));
  return registry.ok() ? "" : registry.error().message;
}

NodeConfiguration With(std::map<std::string, bool, std::less<>> gates,
                       std::map<std::string, std::string, std::less<>> settings = {}) {
  NodeConfiguration configuration;
  configuration.gate_enabled = LookupIn(std::move(gates));
  configuration.static_configuration = std::move(settings);
  return configuration;
}

const Version k137 = VersionOf({1, 37});

TEST(FeatureName, FollowsTheRulesOfTheApi) {
  for (const char* good : {"A", "MyFeature", "MyFeature2/subFeature", "A/b/C3"}) {
    EXPECT_TRUE(CheckFeatureName(good).ok()) << good;
  }
  for (const char* bad : {"", "myFeature", "2Feature", "My-Feature", "My_Feature", "My/", "/My",
                          "My//Sub", "My/2sub", "My feature", "My/s\xc3\xa9"}) {
    const Result<void> checked = CheckFeatureName(bad);
    ASSERT_FALSE(checked.ok()) << bad;
    EXPECT_THAT(checked.error().message, HasSubstr("UpperCamelCase"));
  }
  EXPECT_TRUE(CheckFeatureName(std::string(253, 'A')).ok());
  EXPECT_EQ(CheckFeatureName(std::string(254, 'A')).error().message,
            "invalid feature name \"" + std::string(254, 'A') +
                "\": must be no more than 253 characters");
}

TEST(FeatureName, AListIsSortedAndInvalidOrDuplicateNamesAreDropped) {
  const CleanNames clean = CleanFeatureNames({"B", "a", "A", "B"});
  EXPECT_THAT(clean.names, ElementsAre("A", "B"));
  EXPECT_THAT(clean.dropped,
              ElementsAre("duplicate feature name \"B\"", HasSubstr("invalid feature name \"a\"")));
}

TEST(Registry, RejectsAFeatureWithoutAGate) {
  EXPECT_EQ(RegistrationError(ListOf(PlainFeature("X", {}))),
            "feature \"X\" must have at least one feature gate");
}

TEST(Registry, RejectsMalformedNamesAndAliases) {
  EXPECT_THAT(RegistrationError(ListOf(PlainFeature("x", {"G"}))), HasSubstr("\"x\""));
  EXPECT_THAT(RegistrationError(ListOf(PlainFeature("X", {"G"}, {"not-good"}))),
              HasSubstr("\"not-good\""));
  EXPECT_THAT(RegistrationError(ListOf(PlainFeature(std::string(254, 'X'), {"G"}))),
              HasSubstr("no more than 253 characters"));
}

TEST(Registry, RejectsADuplicateName) {
  EXPECT_EQ(RegistrationError(ListOf(PlainFeature("X", {"G"}), PlainFeature("X", {"H"}))),
            "feature \"X\" is registered twice");
  EXPECT_EQ(RegistrationError(ListOf(PlainFeature("X", {"G"}), PlainFeature("Y", {"H"}, {"X"}))),
            "feature \"X\" is registered twice");
}

TEST(Registry, RejectsMoreFeaturesThanTheLimit) {
  FeatureList list;
  for (std::size_t i = 0; i <= kMaxRegisteredFeatures; ++i) {
    list.push_back(
        std::make_unique<PlainFeature>("F" + std::to_string(i), std::vector<std::string>{"G"}));
  }
  EXPECT_EQ(RegistrationError(std::move(list)), "more than 1024 features");
  FeatureList most;
  for (std::size_t i = 0; i < kMaxRegisteredFeatures; ++i) {
    most.push_back(
        std::make_unique<PlainFeature>("F" + std::to_string(i), std::vector<std::string>{"G"}));
  }
  EXPECT_EQ(RegistrationError(std::move(most)), "");
}

TEST(Registry, BitsFollowTheOrderOfNamesNotOfRegistration) {
  const Framework framework =
      FrameworkOf(PlainFeature("C", {"G"}), PlainFeature("A", {"G"}), PlainFeature("B", {"G"}));
  EXPECT_EQ(framework.registry().Map({"A"}).value().ToString(), "100");
  EXPECT_EQ(framework.registry().Map({"C", "B"}).value().ToString(), "011");
  EXPECT_EQ(framework.registry().Map({"A", "Z"}).error().message, "unknown feature Z");
  EXPECT_EQ(framework.registry().MapKnown({"Z", "C", "A"}).ToString(), "101");
  EXPECT_THAT(framework.registry().Names(FeatureSet(2)).error().message,
              HasSubstr("feature size mismatch! s.size=2"));
}

TEST(Registry, AnAliasHasTheSameBit) {
  const Framework framework =
      FrameworkOf(PlainFeature("New", {"G"}, {"Old"}), PlainFeature("Other", {"G"}));
  const Registry& registry = framework.registry();
  EXPECT_EQ(registry.size(), 2u);
  EXPECT_EQ(registry.Map({"Old"}).value(), registry.Map({"New"}).value());
  EXPECT_THAT(registry.Names(registry.Map({"Old"}).value()).value(), ElementsAre("New"));
  EXPECT_THAT(registry.DeclaredNames(registry.Map({"New", "Other"}).value()),
              ElementsAre("New", "Old", "Other"));
}

TEST(Registry, EveryAliasHasTheSameBit) {
  const Framework framework = FrameworkOf(PlainFeature("New", {"G"}, {"Older", "Oldest"}));
  const Registry& registry = framework.registry();
  for (const char* name : {"Older", "Oldest"}) {
    EXPECT_EQ(registry.FindIndex(name), registry.FindIndex("New")) << name;
  }
  EXPECT_THAT(registry.DeclaredNames(registry.Map({"New"}).value()),
              ElementsAre("New", "Older", "Oldest"));
}

TEST(Framework, AStaticSettingIsRequiredInAdditionToTheGate) {
  const Framework framework = FrameworkOf(StaticCpuFeature());
  const auto declared = [&](const NodeConfiguration& configuration) {
    return framework.DiscoverNodeFeatures(configuration).names;
  };
  EXPECT_THAT(declared(With({{"TestStaticCpuGate", true}}, {{"CPUManagerPolicy", "static"}})),
              ElementsAre("TestStaticCpu", "TestStaticCpu/old"));
  EXPECT_THAT(declared(With({{"TestStaticCpuGate", true}}, {{"CPUManagerPolicy", "none"}})),
              IsEmpty());
  EXPECT_THAT(declared(With({{"TestStaticCpuGate", true}})), IsEmpty());
  EXPECT_THAT(declared(With({{"TestStaticCpuGate", false}}, {{"CPUManagerPolicy", "static"}})),
              IsEmpty());
  EXPECT_THAT(declared(NodeConfiguration{}), IsEmpty());
}

TEST(Framework, UnmetRequirementsAreNamed) {
  const FeatureRequirements needs = StaticCpuFeature().Requirements();
  EXPECT_EQ(FirstUnmet(needs, With({})).value_or(""), "feature gate TestStaticCpuGate is off");
  EXPECT_EQ(FirstUnmet(needs, With({{"TestStaticCpuGate", true}})).value_or(""),
            "CPUManagerPolicy is not set, but must be \"static\"");
  EXPECT_EQ(FirstUnmet(needs, With({{"TestStaticCpuGate", true}}, {{"CPUManagerPolicy", "none"}}))
                .value_or(""),
            "CPUManagerPolicy is \"none\", but must be \"static\"");
}

TEST(Framework, EveryRequirementMustBeMet) {
  const FeatureRequirements needs{
      .enabled_feature_gates = {"G", "H"},
      .static_configuration = {{"A", "1"}, {"B", "2"}},
      .runtime_features = {.user_namespaces_host_network = true, .mount_options = true}};
  NodeConfiguration node = With({{"G", true}, {"H", true}}, {{"A", "1"}, {"B", "2"}});
  node.runtime_features = needs.runtime_features;
  EXPECT_EQ(FirstUnmet(needs, node), std::nullopt);
  const auto unmet = [&](const std::function<void(NodeConfiguration&)>& change) {
    NodeConfiguration changed = node;
    change(changed);
    return FirstUnmet(needs, changed).value_or("");
  };
  EXPECT_EQ(unmet([](NodeConfiguration& n) {
              n.gate_enabled = LookupIn(std::map<std::string, bool, std::less<>>{{"H", true}});
            }),
            "feature gate G is off");
  EXPECT_EQ(unmet([](NodeConfiguration& n) {
              n.gate_enabled = LookupIn(std::map<std::string, bool, std::less<>>{{"G", true}});
            }),
            "feature gate H is off");
  EXPECT_EQ(unmet([](NodeConfiguration& n) { n.static_configuration["A"] = "x"; }),
            "A is \"x\", but must be \"1\"");
  EXPECT_EQ(unmet([](NodeConfiguration& n) { n.static_configuration.erase("B"); }),
            "B is not set, but must be \"2\"");
  EXPECT_EQ(unmet([](NodeConfiguration& n) { n.runtime_features.mount_options = false; }),
            "the container runtime does not support MountOptions");
  EXPECT_EQ(
      unmet([](NodeConfiguration& n) { n.runtime_features.user_namespaces_host_network = false; }),
      "the container runtime does not support UserNamespacesHostNetwork");
}

TEST(Framework, NoFeatureIsDeclaredWithOneOfItsGatesOff) {
  const Framework framework = FrameworkOf(CarelessFeature());
  EXPECT_THAT(framework.DiscoverNodeFeatures(With({{"G", true}, {"H", true}})).names,
              ElementsAre("Careless"));
  EXPECT_THAT(framework.DiscoverNodeFeatures(With({{"G", true}})).names, IsEmpty());
  EXPECT_THAT(framework.DiscoverNodeFeatures(With({{"H", true}})).names, IsEmpty());
}

TEST(Framework, ADiscoveryErrorOmitsTheFeatureAndIsReported) {
  const Framework framework = FrameworkOf(BrokenFeature(), PlainFeature("Fine", {"G"}));
  const Discovery discovery = framework.DiscoverNodeFeatures(With({{"G", true}}));
  EXPECT_THAT(discovery.names, ElementsAre("Fine"));
  EXPECT_EQ(discovery.features.ToString(), "01");
  EXPECT_THAT(discovery.problems, ElementsAre("feature Broken: cannot tell"));
}

TEST(Framework, AGateMayBeGivenUnderItsOtherName) {
  const GateLookup other = LookupIn({{"DRAOptionalNodeOperations", true}});
  EXPECT_TRUE(other("DRAOptionalNodePreparation"));
  const GateLookup both =
      LookupIn({{"DRAOptionalNodeOperations", true}, {"DRAOptionalNodePreparation", false}});
  EXPECT_FALSE(both("DRAOptionalNodePreparation"));
  EXPECT_TRUE(both("DRAOptionalNodeOperations"));
  EXPECT_FALSE(both("Unheard"));
}

TEST(Framework, AboveItsLastVersionAFeatureIsNeitherRequiredNorDeclared) {
  const Framework framework = FrameworkOf(StaticCpuFeature(ParseVersion("1.38.0").value()));
  const api::TreePtr tree =
      api::ParseJson(R"({"spec":{"tolerations":[{"key":"exclusive-cpus"}]}})").value();
  const PodInfo pod = PodInfoOf(tree->root());
  for (const auto& [version, counts] :
       std::vector<std::pair<std::string, bool>>{{"1.36.0", true},
                                                 {"1.38.0", true},
                                                 {"1.38.0-rc.1", true},
                                                 {"1.38.1", false},
                                                 {"1.39.0-alpha.1", false}}) {
    const Version target = ParseVersion(version).value();
    EXPECT_EQ(framework.InferForPodScheduling(pod, target).value().Count(), counts ? 1u : 0u);
    EXPECT_EQ(framework.InferForPodUpdate(PodInfo{}, pod, target).value().Count(),
              counts ? 1u : 0u);
    NodeConfiguration node = With({{"TestStaticCpuGate", true}}, {{"CPUManagerPolicy", "static"}});
    node.version = target;
    EXPECT_EQ(framework.DiscoverNodeFeatures(node).names.empty(), !counts) << version;
  }
}

TEST(Framework, ATargetVersionIsRequired) {
  const Framework framework = FrameworkOf(StaticCpuFeature());
  EXPECT_EQ(framework.InferForPodScheduling({}, std::nullopt).error().message,
            "target version cannot be nil");
  EXPECT_EQ(framework.InferForPodUpdate({}, {}, std::nullopt).error().message,
            "target version cannot be nil");
}

TEST(Framework, AFeatureThatCannotInferFailsTheInference) {
  class Puzzled : public PlainFeature {
   public:
    Puzzled() : PlainFeature("Puzzled", {"G"}) {}
    NeededBecauseOf InferForScheduling(const PodInfo&) const override {
      return Internal("no idea");
    }
    NeededBecauseOf InferForUpdate(const PodInfo&, const PodInfo&) const override {
      return Internal("no idea either");
    }
  };
  const Framework framework = FrameworkOf(StaticCpuFeature(), Puzzled());
  EXPECT_EQ(framework.InferForPodScheduling({}, k137).error().message, "feature Puzzled: no idea");
  EXPECT_EQ(framework.ExplainPodScheduling({}, k137).error().message, "feature Puzzled: no idea");
  EXPECT_EQ(framework.InferForPodUpdate({}, {}, k137).error().message,
            "feature Puzzled: no idea either");
}

TEST(Framework, NamesTheFieldThatRequiresTheFeature) {
  const Framework framework = FrameworkOf(StaticCpuFeature(), PlainFeature("Never", {"G"}));
  const api::TreePtr tree =
      api::ParseJson(R"({"spec":{"tolerations":[{"key":"exclusive-cpus"}]}})").value();
  EXPECT_THAT(framework.ExplainPodScheduling(PodInfoOf(tree->root()), k137).value(),
              ElementsAre(Need{"TestStaticCpu", "spec.tolerations[0].key"}));
}

TEST(Framework, MatchesANodeByNameOrAliasInAnyOrder) {
  const Framework framework =
      FrameworkOf(PlainFeature("A", {"G"}, {"Old"}), PlainFeature("B", {"G"}));
  const FeatureSet both = framework.registry().Map({"A", "B"}).value();
  const auto match = [&](std::string_view node) {
    return framework.MatchNode(both, api::ParseJson(node).value()->root()).value();
  };
  EXPECT_TRUE(match(R"({"status":{"declaredFeatures":["A","B"]}})").is_match);
  EXPECT_TRUE(match(R"({"status":{"declaredFeatures":["Unknown","Old","B"]}})").is_match);
  EXPECT_TRUE(match(R"({"status":{"declaredFeatures":["B","A"]}})").is_match);
  EXPECT_THAT(match(R"({"status":{"declaredFeatures":["Old"]}})").unsatisfied, ElementsAre("B"));
  const MatchResult none = match(R"({"status":{}})");
  EXPECT_FALSE(none.is_match);
  EXPECT_THAT(none.unsatisfied, ElementsAre("A", "B"));
}

TEST(Framework, MatchingRejectsForeignSetsAndMissingNodes) {
  const Framework framework = FrameworkOf(PlainFeature("A", {"G"}));
  const FeatureSet required = framework.registry().Map({"A"}).value();
  EXPECT_EQ(framework.MatchNode(required, api::Value()).error().message, "node cannot be nil");
  EXPECT_EQ(framework.MatchNodeFeatureSet(required, FeatureSet(7)).error().message,
            "bitmap size mismatch; 1 != 7");
  // An empty requirement matches every node.
  EXPECT_TRUE(framework.MatchNodeFeatureSet(FeatureSet(1), FeatureSet(7)).value().is_match);
}

TEST(Framework, ReportsWhatAFeatureDependsOn) {
  const Framework framework = FrameworkOf(StaticCpuFeature());
  for (const char* name : {"TestStaticCpu", "TestStaticCpu/old"}) {
    const FeatureRequirements needs = framework.GetFeatureRequirements(name).value();
    EXPECT_THAT(needs.enabled_feature_gates, ElementsAre("TestStaticCpuGate"));
    EXPECT_THAT(needs.static_configuration,
                ElementsAre(testing::Pair("CPUManagerPolicy", "static")));
  }
  EXPECT_EQ(framework.GetFeatureRequirements("X").error().message, "feature 'X' not registered");
}

}  // namespace
}  // namespace drakkar::features
