#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar {

// A Kubernetes release: major and minor version.
struct ReleaseVersion {
  int major = 1;
  int minor = 37;
  auto operator<=>(const ReleaseVersion&) const = default;
  std::string ToString() const;
};
// "1.37", "v1.37" or "1.37.2".
std::optional<ReleaseVersion> ParseReleaseVersion(std::string_view text);
constexpr ReleaseVersion kOurVersion{1, 37};

enum class Gate : std::uint8_t {
  kDynamicResourceAllocation,
  kDRAAdminAccess,
  kDRAPrioritizedList,
  kDRAResourceClaimDeviceStatus,
  kDRAExtendedResource,
  kDRADeviceTaints,
  kDRADeviceTaintRules,
  kDRAPartitionableDevices,
  kDRAConsumableCapacity,
  kDRAFractionalCapacityRange,
  kDRADeviceBindingConditions,
  kDRAResourceClaimGranularStatusAuthorization,
  kDRASchedulerFilterTimeout,
  kDRAWorkloadResourceClaims,
  kDRAOptionalNodePreparation,  // also DRAOptionalNodeOperations
  kDRAListTypeAttributes,
  kDRADerivedAttributes,
  kDRADeviceCompatibilityGroups,
  kDRANodeAllocatableResources,
  kDRAPartitionableDevicesType,
  kDRAResourcePoolStatus,
  kNodeDeclaredFeatures,
  kResourceHealthStatus,
  kResourceHealthStatusMessage,
  kDeclarativeValidationBeta,
  kRestartAllContainersOnContainerExits,
  kContainerRestartRules,
  kInPlacePodVerticalScaling,
  kInPlacePodLevelResourcesVerticalScaling,
  kInPlacePodVerticalScalingInitContainers,
  kInPlacePodVerticalScalingMemoryBackedVolumes,
  kUserNamespacesHostNetworkSupport,
  kVolumeBindMountOptions,
  kExtendWebSocketsToKubelet,
  kGenericWorkload,
  kPodLevelResources,
  kUserNamespacesSupport,
  kTaintTolerationComparisonOperators,
  kCount,
};

// The gates of one component: the defaults of the release it emulates, overridden by
// `--feature-gates`. Immutable.
class FeatureGates {
 public:
  // The defaults of our own version.
  FeatureGates();

  struct Options {
    ReleaseVersion emulated = kOurVersion;
    // "A=true,B=false"; aliases are allowed. Later entries override earlier ones with the same
    // name; the two names of a gate must agree.
    std::string overrides;
    // The same from a configuration file; `overrides` take precedence.
    std::string file_overrides = {};
    // Turned on before `overrides` are applied (`drakkar up` does this for the five proposals).
    // Stays off if `overrides` turn off a dependency without setting the gate itself.
    std::vector<Gate> turned_on;
  };
  // Rejects unknown names, values that are not booleans, gates that the emulated release lacks,
  // locked gates set against their default, and gates whose dependencies are off.
  static Result<FeatureGates> Create(const Options& options);

  bool Enabled(Gate gate) const { return enabled_[static_cast<std::size_t>(gate)]; }
  // By any of its names; false for unknown names.
  bool Enabled(std::string_view name) const;
  // Whether the gate exists in the emulated release.
  bool Known(Gate gate) const;
  ReleaseVersion emulated() const { return emulated_; }
  // Binding conditions require both of their gates.
  bool BindingConditions() const {
    return Enabled(Gate::kDRADeviceBindingConditions) &&
           Enabled(Gate::kDRAResourceClaimDeviceStatus);
  }

  // For tests: a copy with one gate set, without checking dependencies.
  FeatureGates With(Gate gate, bool on) const;

 private:
  explicit FeatureGates(ReleaseVersion emulated);

  std::array<bool, static_cast<std::size_t>(Gate::kCount)> enabled_{};
  ReleaseVersion emulated_ = kOurVersion;
};

std::string_view GateName(Gate gate);
// A gate in a release.
struct GateFacts {
  std::string_view name;
  std::string_view alias;  // empty if there is none
  bool is_known = false;   // if false, the rest is meaningless
  bool is_on = false;      // by default
  bool is_locked = false;  // to its default
  std::vector<std::string_view> needs;
};
GateFacts FactsOf(Gate gate, ReleaseVersion release);
// By name or alias.
std::optional<Gate> FindGate(std::string_view name);

}  // namespace drakkar
