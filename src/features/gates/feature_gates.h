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

// A Kubernetes release as gates see it: major and minor.
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
  kCount,
};

// Which features are on in one component: the defaults of the release it emulates, changed by
// `--feature-gates`. Immutable once made.
class FeatureGates {
 public:
  // The defaults of our own version.
  FeatureGates();

  struct Options {
    ReleaseVersion emulated = kOurVersion;
    // "A=true,B=false"; names of aliases are fine. Later entries win over earlier ones of the same
    // name; two names of one gate must agree.
    std::string overrides;
    // The same from a configuration file; `overrides` win over them.
    std::string file_overrides = {};
    // Turned on before `overrides` are applied (what `drakkar up` does for the five proposals); off
    // if `overrides` turn off what one needs and do not name it.
    std::vector<Gate> turned_on;
  };
  // Refuses unknown names, values that are no booleans, gates the emulated release does not know,
  // locked gates set against their default, and gates whose dependencies are off.
  static Result<FeatureGates> Create(const Options& options);

  bool Enabled(Gate gate) const { return enabled_[static_cast<std::size_t>(gate)]; }
  // By any of its names; false for names that are not known.
  bool Enabled(std::string_view name) const;
  // Whether the emulated release knows the gate at all.
  bool Known(Gate gate) const;
  ReleaseVersion emulated() const { return emulated_; }
  // Binding conditions need both of their gates.
  bool BindingConditions() const {
    return Enabled(Gate::kDRADeviceBindingConditions) &&
           Enabled(Gate::kDRAResourceClaimDeviceStatus);
  }

  // For tests: a copy with one gate set, dependencies not checked.
  FeatureGates With(Gate gate, bool on) const;

 private:
  explicit FeatureGates(ReleaseVersion emulated);

  std::array<bool, static_cast<std::size_t>(Gate::kCount)> enabled_{};
  ReleaseVersion emulated_ = kOurVersion;
};

std::string_view GateName(Gate gate);
// What a release says about a gate.
struct GateFacts {
  std::string_view name;
  std::string_view alias;  // empty: none
  bool is_known = false;   // the rest says nothing if it is not
  bool is_on = false;      // by default
  bool is_locked = false;  // to its default
  std::vector<std::string_view> needs;
};
GateFacts FactsOf(Gate gate, ReleaseVersion release);
// By name or alias.
std::optional<Gate> FindGate(std::string_view name);

}  // namespace drakkar
