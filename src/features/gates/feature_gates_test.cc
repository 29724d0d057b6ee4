#include "features/gates/feature_gates.h"

#include <gtest/gtest.h>

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
  EXPECT_FALSE(Make("DRAResourceClaimDeviceStatus=false").ok());
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

TEST(ReleaseVersion, ParsesTheUsualForms) {
  EXPECT_EQ(ParseReleaseVersion("v1.36.2"), (ReleaseVersion{1, 36}));
  EXPECT_FALSE(ParseReleaseVersion("1").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.x").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.36.x").has_value());
  EXPECT_FALSE(ParseReleaseVersion("1.36.-2").has_value());
  EXPECT_FALSE(ParseReleaseVersion("4294967297.36").has_value());
}

}  // namespace
}  // namespace drakkar
