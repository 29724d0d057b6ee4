#include "features/gates/feature_gates.h"

#include <map>

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar {
namespace {

Result<FeatureGates> Make(std::string overrides, int minor = 37) {
  return FeatureGates::Create({.emulated = {1, minor}, .overrides = std::move(overrides)});
}

TEST(FeatureGates, EveryGateHasALineInEnumOrder) {
  for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
    const Gate gate = static_cast<Gate>(i);
    EXPECT_EQ(FindGate(GateName(gate)), gate);
  }
}

TEST(FeatureGates, DefaultsFollowTheEmulatedRelease) {
  EXPECT_FALSE(Make("", 34)->Known(Gate::kNodeDeclaredFeatures));
  EXPECT_FALSE(Make("", 35)->Enabled(Gate::kNodeDeclaredFeatures));
  EXPECT_TRUE(Make("", 36)->Enabled(Gate::kNodeDeclaredFeatures));
  EXPECT_FALSE(Make("", 36)->Known(Gate::kDRAOptionalNodePreparation));
  EXPECT_TRUE(FeatureGates().Known(Gate::kDRAOptionalNodePreparation));
  EXPECT_FALSE(FeatureGates().Enabled(Gate::kDRAOptionalNodePreparation));
  EXPECT_TRUE(FeatureGates().BindingConditions());
}

// The states of a gate in 1.34 to 1.37, one letter each: '.' unknown, '0' off, '1' on, 'L' on and
// locked.
std::string StatesOf(Gate gate) {
  std::string states;
  for (int minor = 34; minor <= 37; ++minor) {
    const GateFacts facts = FactsOf(gate, {1, minor});
    const FeatureGates gates = Make("", minor).value();
    EXPECT_EQ(gates.Known(gate), facts.is_known) << facts.name << " in 1." << minor;
    EXPECT_EQ(gates.Enabled(gate), facts.is_on) << facts.name << " in 1." << minor;
    states += !facts.is_known ? '.' : facts.is_locked ? 'L' : facts.is_on ? '1' : '0';
  }
  return states;
}

// As registered in Kubernetes, whose published registry the interop tests read.
TEST(FeatureGates, EveryGateHasTheStateOfEachRelease) {
  const std::map<std::string_view, std::string_view> expected = {
      {"ContainerRestartRules", "0111"},
      {"DRAAdminAccess", "11LL"},
      {"DRAConsumableCapacity", "0011"},
      {"DRADerivedAttributes", "...0"},
      {"DRADeviceBindingConditions", "0011"},
      {"DRADeviceCompatibilityGroups", "...0"},
      {"DRADeviceTaintRules", ".001"},
      {"DRADeviceTaints", "0011"},
      {"DRAExtendedResource", "001L"},
      {"DRAFractionalCapacityRange", "...0"},
      {"DRAListTypeAttributes", "..00"},
      {"DRANodeAllocatableResources", "..00"},
      {"DRAOptionalNodePreparation", "...0"},
      {"DRAPartitionableDevices", "0011"},
      {"DRAPartitionableDevicesType", "...0"},
      {"DRAPrioritizedList", "111L"},
      {"DRAResourceClaimDeviceStatus", "1111"},
      {"DRAResourceClaimGranularStatusAuthorization", "..11"},
      {"DRAResourcePoolStatus", "..00"},
      {"DRASchedulerFilterTimeout", "1111"},
      {"DRAWorkloadResourceClaims", "..00"},
      {"DeclarativeValidationBeta", "..11"},
      {"DynamicResourceAllocation", "1LLL"},
      {"ExtendWebSocketsToKubelet", "..11"},
      {"GenericWorkload", ".000"},
      {"InPlacePodLevelResourcesVerticalScaling", ".011"},
      {"InPlacePodVerticalScaling", "1LLL"},
      {"InPlacePodVerticalScalingInitContainers", "..1L"},
      {"InPlacePodVerticalScalingMemoryBackedVolumes", "...0"},
      {"NodeDeclaredFeatures", ".011"},
      {"PodLevelResources", "1111"},
      {"ResourceHealthStatus", "0011"},
      {"ResourceHealthStatusMessage", "..11"},
      {"RestartAllContainersOnContainerExits", ".011"},
      {"TaintTolerationComparisonOperators", ".000"},
      {"UserNamespacesHostNetworkSupport", ".000"},
      {"UserNamespacesSupport", "11LL"},
      {"VolumeBindMountOptions", "...0"},
  };
  EXPECT_EQ(expected.size(), static_cast<std::size_t>(Gate::kCount));
  for (const auto& [name, states] : expected) {
    const std::optional<Gate> gate = FindGate(name);
    ASSERT_TRUE(gate) << name;
    EXPECT_EQ(StatesOf(*gate), states) << name;
  }
}

// As registered in Kubernetes too, except for what the table says about NodeDeclaredFeatures. Gates
// that are not listed depend on none.
TEST(FeatureGates, EveryGateHasItsDependencies) {
  const std::map<std::string_view, std::string_view> expected = {
      {"DRAAdminAccess", "DynamicResourceAllocation"},
      {"DRAConsumableCapacity", "DynamicResourceAllocation"},
      {"DRADerivedAttributes", "DynamicResourceAllocation"},
      {"DRADeviceBindingConditions", "DynamicResourceAllocation DRAResourceClaimDeviceStatus"},
      {"DRADeviceCompatibilityGroups", "DynamicResourceAllocation DRAPartitionableDevices"},
      {"DRADeviceTaintRules", "DRADeviceTaints"},
      {"DRADeviceTaints", "DynamicResourceAllocation"},
      {"DRAExtendedResource", "DynamicResourceAllocation"},
      {"DRAFractionalCapacityRange", "DRAConsumableCapacity"},
      {"DRAListTypeAttributes", "DynamicResourceAllocation"},
      {"DRANodeAllocatableResources", "DynamicResourceAllocation"},
      {"DRAOptionalNodePreparation", "DynamicResourceAllocation NodeDeclaredFeatures"},
      {"DRAPartitionableDevices", "DynamicResourceAllocation"},
      {"DRAPartitionableDevicesType",
       "DynamicResourceAllocation DRAPartitionableDevices DRAResourcePoolStatus"},
      {"DRAPrioritizedList", "DynamicResourceAllocation"},
      {"DRAResourceClaimGranularStatusAuthorization",
       "DynamicResourceAllocation DRAResourceClaimDeviceStatus"},
      {"DRAResourcePoolStatus", "DynamicResourceAllocation"},
      {"DRASchedulerFilterTimeout", "DynamicResourceAllocation"},
      {"DRAWorkloadResourceClaims", "DynamicResourceAllocation GenericWorkload"},
      {"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScaling PodLevelResources"},
      {"InPlacePodVerticalScalingInitContainers", "InPlacePodVerticalScaling"},
      {"InPlacePodVerticalScalingMemoryBackedVolumes", "InPlacePodVerticalScaling"},
      {"ResourceHealthStatus", "DynamicResourceAllocation"},
      {"ResourceHealthStatusMessage", "ResourceHealthStatus"},
      {"RestartAllContainersOnContainerExits", "ContainerRestartRules"},
      {"UserNamespacesHostNetworkSupport", "UserNamespacesSupport"},
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const GateFacts facts = FactsOf(static_cast<Gate>(i), kOurVersion);
    std::string needs;
    for (const std::string_view needed : facts.needs) {
      needs += StrCat(needs.empty() ? "" : " ", needed);
    }
    const auto found = expected.find(facts.name);
    EXPECT_EQ(needs, found == expected.end() ? std::string_view() : found->second) << facts.name;
  }
}

TEST(FeatureGates, ALockedGateAcceptsOnlyItsDefault) {
  EXPECT_TRUE(Make("DRAAdminAccess=true").ok());
  EXPECT_EQ(Make("DRAAdminAccess=false").error().message,
            "feature gate DRAAdminAccess is locked to true in version 1.37");
  EXPECT_FALSE(Make("DRAAdminAccess=false", 35)->Enabled(Gate::kDRAAdminAccess));
}

TEST(FeatureGates, ValuesAreSpelledAsInGo) {
  for (const char* yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    EXPECT_TRUE(Make(std::string("VolumeBindMountOptions = ") + yes)
                    ->Enabled(Gate::kVolumeBindMountOptions))
        << yes;
  }
  for (const char* no : {"0", "f", "F", "FALSE", "false", "False"}) {
    EXPECT_FALSE(Make(std::string("ExtendWebSocketsToKubelet=") + no + " ,")
                     ->Enabled(Gate::kExtendWebSocketsToKubelet))
        << no;
  }
  EXPECT_EQ(Make("NodeDeclaredFeatures= yes").error().message,
            "feature gate NodeDeclaredFeatures must be true or false, not \"yes\"");
}

TEST(FeatureGates, FlagsOverrideTheFileUnderAnyName) {
  const auto enabled = [](std::string file, std::string flag) {
    return FeatureGates::Create({.emulated = kOurVersion,
                                 .overrides = std::move(flag),
                                 .file_overrides = std::move(file),
                                 .turned_on = {}})
        ->Enabled(Gate::kDRAOptionalNodePreparation);
  };
  EXPECT_TRUE(enabled("DRAOptionalNodePreparation=true", ""));
  EXPECT_FALSE(enabled("DRAOptionalNodePreparation=true", "DRAOptionalNodeOperations=false"));
  EXPECT_TRUE(enabled("DRAOptionalNodeOperations=false", "DRAOptionalNodePreparation=true"));
}

TEST(FeatureGates, OneGateHasTwoNames) {
  EXPECT_TRUE(Make("DRAOptionalNodeOperations=true")->Enabled("DRAOptionalNodePreparation"));
  EXPECT_TRUE(Make("DRAOptionalNodePreparation=true")->Enabled("DRAOptionalNodeOperations"));
}

TEST(FeatureGates, TheTwoNamesOfAGateMustAgree) {
  EXPECT_EQ(Make("DRAOptionalNodeOperations=true,DRAOptionalNodePreparation=false").error().message,
            "feature gates DRAOptionalNodeOperations and DRAOptionalNodePreparation are two names "
            "of one gate and must not have different values; set only one of them");
  EXPECT_FALSE(Make("DRAOptionalNodePreparation=false,DRAOptionalNodeOperations=true").ok());
  EXPECT_TRUE(Make("DRAOptionalNodePreparation=true,DRAOptionalNodeOperations=true").ok());
  EXPECT_TRUE(Make("DRAOptionalNodePreparation=false,DRAOptionalNodePreparation=true")
                  ->Enabled("DRAOptionalNodeOperations"))
      << "a later entry with the same name wins";
}

TEST(FeatureGates, AGateRequiresItsDependencies) {
  auto gates = Make("DRAOptionalNodePreparation=true,NodeDeclaredFeatures=false");
  ASSERT_FALSE(gates.ok());
  EXPECT_NE(gates.error().message.find("NodeDeclaredFeatures"), std::string::npos);
  EXPECT_EQ(Make("DRAResourceClaimDeviceStatus=false,"
                 "DRAResourceClaimGranularStatusAuthorization=false")
                .error()
                .message,
            "feature gate DRADeviceBindingConditions is on, but depends on "
            "DRAResourceClaimDeviceStatus, which is off; turn DRADeviceBindingConditions off too, "
            "or DRAResourceClaimDeviceStatus on");
  EXPECT_TRUE(Make("DRAResourceClaimDeviceStatus=false,DRADeviceBindingConditions=false,"
                   "DRAResourceClaimGranularStatusAuthorization=false")
                  .ok());
}

TEST(FeatureGates, OnlyItsOwnGateTurnsDeclaringFeaturesOff) {
  const auto gates = Make("NodeDeclaredFeatures=false,RestartAllContainersOnContainerExits=true");
  ASSERT_TRUE(gates.ok()) << gates.error().message;
  EXPECT_TRUE(gates->Enabled(Gate::kRestartAllContainersOnContainerExits));
  EXPECT_TRUE(Make("NodeDeclaredFeatures=true,RestartAllContainersOnContainerExits=true", 35).ok());
  EXPECT_FALSE(Make("RestartAllContainersOnContainerExits=true", 34).ok()) << "unknown to 1.34";
}

TEST(FeatureGates, BadInputGetsAClearError) {
  EXPECT_EQ(Make("Nonsense=true").error().message,
            "feature gate \"Nonsense\" is not known in version 1.37");
  EXPECT_EQ(Make("NodeDeclaredFeatures").error().message,
            "feature gate \"NodeDeclaredFeatures\" has no value; use NAME=true or "
            "NAME=false");
  EXPECT_FALSE(Make("NodeDeclaredFeatures=maybe").ok());
  EXPECT_FALSE(Make("DRAAdminAccess=false").ok()) << "locked";
  EXPECT_FALSE(Make("DRAOptionalNodePreparation=true", 36).ok()) << "unknown to 1.36";
  EXPECT_FALSE(Make("", 38).ok()) << "newer than this binary";
}

TEST(FeatureGates, GatesTurnedOnByDefaultYieldToExplicitOnes) {
  const auto up = [](std::string overrides) {
    return FeatureGates::Create(
        {.emulated = kOurVersion,
         .overrides = std::move(overrides),
         .turned_on = {Gate::kDRAOptionalNodePreparation, Gate::kNodeDeclaredFeatures,
                       Gate::kResourceHealthStatusMessage}});
  };
  const Result<FeatureGates> without = up("NodeDeclaredFeatures=false");
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_FALSE(without->Enabled(Gate::kNodeDeclaredFeatures));
  EXPECT_FALSE(without->Enabled(Gate::kDRAOptionalNodePreparation)) << "depends on the other";
  EXPECT_TRUE(without->Enabled(Gate::kResourceHealthStatusMessage));
  EXPECT_TRUE(up("")->Enabled(Gate::kDRAOptionalNodePreparation));
  EXPECT_FALSE(up("NodeDeclaredFeatures=false,DRAOptionalNodePreparation=true").ok())
      << "both were set explicitly";
}

TEST(FeatureGates, FactsDependOnTheRelease) {
  const GateFacts old = FactsOf(Gate::kInPlacePodVerticalScalingInitContainers, {1, 36});
  EXPECT_TRUE(old.is_known && old.is_on && !old.is_locked);
  const GateFacts now = FactsOf(Gate::kInPlacePodVerticalScalingInitContainers, {1, 37});
  EXPECT_TRUE(now.is_known && now.is_on && now.is_locked);
  EXPECT_EQ(now.needs, std::vector<std::string_view>{"InPlacePodVerticalScaling"});
  EXPECT_FALSE(FactsOf(Gate::kUserNamespacesHostNetworkSupport, {1, 34}).is_known);
  EXPECT_TRUE(FactsOf(Gate::kUserNamespacesHostNetworkSupport, {1, 35}).is_known);
  EXPECT_EQ(FactsOf(Gate::kDRAOptionalNodePreparation, {1, 37}).alias, "DRAOptionalNodeOperations");
}

TEST(FeatureGates, ReportFactsOnlyOfReleasesThatHaveTheGate) {
  const GateFacts unknown = FactsOf(Gate::kDRAOptionalNodePreparation, {1, 36});
  EXPECT_EQ(unknown.name, "DRAOptionalNodePreparation");
  EXPECT_TRUE(unknown.needs.empty());
  const GateFacts known = FactsOf(Gate::kDRAOptionalNodePreparation, {1, 37});
  EXPECT_EQ(known.needs,
            (std::vector<std::string_view>{"DynamicResourceAllocation", "NodeDeclaredFeatures"}));
}

TEST(FeatureGates, GatesTurnedOnByDefaultStayOffInReleasesWithoutThem) {
  const auto gates = FeatureGates::Create(
      {.emulated = {1, 36}, .overrides = {}, .turned_on = {Gate::kDRAOptionalNodePreparation}});
  EXPECT_FALSE(gates->Enabled(Gate::kDRAOptionalNodePreparation));
}

TEST(FeatureGates, OnlyGatesWithADependencyThatIsOffYield) {
  const auto gates = FeatureGates::Create(
      {.emulated = kOurVersion,
       .overrides = "DRADeviceTaints=false,DRAPartitionableDevices=false",
       .turned_on = {Gate::kDRAPartitionableDevicesType, Gate::kDRADeviceTaintRules,
                     Gate::kDRAResourcePoolStatus}});
  ASSERT_TRUE(gates.ok()) << gates.error().message;
  EXPECT_FALSE(gates->Enabled(Gate::kDRAPartitionableDevicesType)) << "one of three is off";
  EXPECT_FALSE(gates->Enabled(Gate::kDRADeviceTaintRules));
  EXPECT_TRUE(gates->Enabled(Gate::kDRAResourcePoolStatus));
}

TEST(FeatureGates, BindingConditionsRequireBothGates) {
  const FeatureGates gates;
  EXPECT_FALSE(gates.With(Gate::kDRADeviceBindingConditions, false).BindingConditions());
  EXPECT_FALSE(gates.With(Gate::kDRAResourceClaimDeviceStatus, false).BindingConditions());
  EXPECT_FALSE(gates.Enabled("Nonsense"));
  EXPECT_FALSE(FindGate("")) << "most gates have no alias";
}

TEST(ReleaseVersion, ParsesTheUsualForms) {
  EXPECT_EQ(ParseReleaseVersion("v1.36.2"), (ReleaseVersion{1, 36}));
  EXPECT_EQ(ParseReleaseVersion("1.10000"), (ReleaseVersion{1, 10'000}));
  EXPECT_FALSE(ParseReleaseVersion("1.10001").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.36.2.1").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.").has_value());
  EXPECT_FALSE(ParseReleaseVersion("").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.x").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.36.x").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.36.-2").has_value());
  EXPECT_FALSE(ParseReleaseVersion("4294967297.36").has_value());
}

}  // namespace
}  // namespace drakkar
