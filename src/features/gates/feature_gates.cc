#include "features/gates/feature_gates.h"

#include <algorithm>
#include <map>

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar {
namespace {

// The gate's default from release `since` on.
struct Stage {
  int since_minor;
  bool on;
  bool locked = false;
};

struct GateEntry {
  Gate gate;
  std::string_view name;
  std::string_view alias;
  std::vector<Stage> stages;  // sorted; the gate does not exist before the first
  std::vector<Gate> needs;
};

// One line per gate, in enum order. The gates of the five proposals are never locked. Declared
// features do not depend on NodeDeclaredFeatures, except KEP-5945's: KEP-5328 turns that gate off
// while such features stay on, which only stops declaring them.
const std::vector<GateEntry>& Table() {
  using enum Gate;
  static const std::vector<GateEntry> table = {
      {kDynamicResourceAllocation,
       "DynamicResourceAllocation",
       "",
       {{26, false}, {34, true}, {35, true, true}},
       {}},
      {kDRAAdminAccess,
       "DRAAdminAccess",
       "",
       {{32, false}, {34, true}, {36, true, true}},
       {kDynamicResourceAllocation}},
      {kDRAPrioritizedList,
       "DRAPrioritizedList",
       "",
       {{33, false}, {34, true}, {37, true, true}},
       {kDynamicResourceAllocation}},
      {kDRAResourceClaimDeviceStatus,
       "DRAResourceClaimDeviceStatus",
       "",
       {{32, false}, {33, true}},
       {}},
      {kDRAExtendedResource,
       "DRAExtendedResource",
       "",
       {{34, false}, {36, true}, {37, true, true}},
       {kDynamicResourceAllocation}},
      {kDRADeviceTaints,
       "DRADeviceTaints",
       "",
       {{33, false}, {36, true}},
       {kDynamicResourceAllocation}},
      {kDRADeviceTaintRules,
       "DRADeviceTaintRules",
       "",
       {{35, false}, {37, true}},
       {kDRADeviceTaints}},
      {kDRAPartitionableDevices,
       "DRAPartitionableDevices",
       "",
       {{33, false}, {36, true}},
       {kDynamicResourceAllocation}},
      {kDRAConsumableCapacity,
       "DRAConsumableCapacity",
       "",
       {{34, false}, {36, true}},
       {kDynamicResourceAllocation}},
      {kDRAFractionalCapacityRange,
       "DRAFractionalCapacityRange",
       "",
       {{37, false}},
       {kDRAConsumableCapacity}},
      {kDRADeviceBindingConditions,
       "DRADeviceBindingConditions",
       "",
       {{34, false}, {36, true}},
       {kDynamicResourceAllocation, kDRAResourceClaimDeviceStatus}},
      {kDRAResourceClaimGranularStatusAuthorization,
       "DRAResourceClaimGranularStatusAuthorization",
       "",
       {{36, true}},
       {kDynamicResourceAllocation, kDRAResourceClaimDeviceStatus}},
      {kDRASchedulerFilterTimeout,
       "DRASchedulerFilterTimeout",
       "",
       {{34, true}},
       {kDynamicResourceAllocation}},
      {kDRAWorkloadResourceClaims,
       "DRAWorkloadResourceClaims",
       "",
       {{36, false}},
       {kDynamicResourceAllocation, kGenericWorkload}},
      {kDRAOptionalNodePreparation,
       "DRAOptionalNodePreparation",
       "DRAOptionalNodeOperations",
       {{37, false}},
       {kDynamicResourceAllocation, kNodeDeclaredFeatures}},
      {kDRAListTypeAttributes,
       "DRAListTypeAttributes",
       "",
       {{36, false}},
       {kDynamicResourceAllocation}},
      {kDRADerivedAttributes,
       "DRADerivedAttributes",
       "",
       {{37, false}},
       {kDynamicResourceAllocation}},
      {kDRADeviceCompatibilityGroups,
       "DRADeviceCompatibilityGroups",
       "",
       {{37, false}},
       {kDynamicResourceAllocation, kDRAPartitionableDevices}},
      {kDRANodeAllocatableResources,
       "DRANodeAllocatableResources",
       "",
       {{36, false}},
       {kDynamicResourceAllocation}},
      {kDRAPartitionableDevicesType,
       "DRAPartitionableDevicesType",
       "",
       {{37, false}},
       {kDynamicResourceAllocation, kDRAPartitionableDevices, kDRAResourcePoolStatus}},
      {kDRAResourcePoolStatus,
       "DRAResourcePoolStatus",
       "",
       {{36, false}},
       {kDynamicResourceAllocation}},
      {kNodeDeclaredFeatures, "NodeDeclaredFeatures", "", {{35, false}, {36, true}}, {}},
      {kResourceHealthStatus,
       "ResourceHealthStatus",
       "",
       {{31, false}, {36, true}},
       {kDynamicResourceAllocation}},
      {kResourceHealthStatusMessage,
       "ResourceHealthStatusMessage",
       "",
       {{36, true}},
       {kResourceHealthStatus}},
      {kDeclarativeValidationBeta, "DeclarativeValidationBeta", "", {{36, true}}, {}},
      {kRestartAllContainersOnContainerExits,
       "RestartAllContainersOnContainerExits",
       "",
       {{35, false}, {36, true}},
       {kContainerRestartRules}},
      {kContainerRestartRules, "ContainerRestartRules", "", {{34, false}, {35, true}}, {}},
      {kInPlacePodVerticalScaling,
       "InPlacePodVerticalScaling",
       "",
       {{27, false}, {33, true}, {35, true, true}},
       {}},
      {kInPlacePodLevelResourcesVerticalScaling,
       "InPlacePodLevelResourcesVerticalScaling",
       "",
       {{35, false}, {36, true}},
       {kInPlacePodVerticalScaling, kPodLevelResources}},
      {kInPlacePodVerticalScalingInitContainers,
       "InPlacePodVerticalScalingInitContainers",
       "",
       {{36, true}, {37, true, true}},
       {kInPlacePodVerticalScaling}},
      {kInPlacePodVerticalScalingMemoryBackedVolumes,
       "InPlacePodVerticalScalingMemoryBackedVolumes",
       "",
       {{37, false}},
       {kInPlacePodVerticalScaling}},
      {kUserNamespacesHostNetworkSupport,
       "UserNamespacesHostNetworkSupport",
       "",
       {{35, false}},
       {kUserNamespacesSupport}},
      {kVolumeBindMountOptions, "VolumeBindMountOptions", "", {{37, false}}, {}},
      {kExtendWebSocketsToKubelet, "ExtendWebSocketsToKubelet", "", {{36, true}}, {}},
      {kGenericWorkload, "GenericWorkload", "", {{35, false}}, {}},
      {kPodLevelResources, "PodLevelResources", "", {{32, false}, {34, true}}, {}},
      {kUserNamespacesSupport,
       "UserNamespacesSupport",
       "",
       {{25, false}, {33, true}, {36, true, true}},
       {}},
      {kTaintTolerationComparisonOperators,
       "TaintTolerationComparisonOperators",
       "",
       {{35, false}},
       {}},
  };
  return table;
}

const GateEntry& EntryOf(Gate gate) {
  const GateEntry& entry = Table()[static_cast<std::size_t>(gate)];
  CHECK(entry.gate == gate);
  return entry;
}

const Stage* StageAt(const GateEntry& entry, ReleaseVersion version) {
  const Stage* found = nullptr;
  for (const Stage& stage : entry.stages) {
    if (ReleaseVersion{1, stage.since_minor} <= version) found = &stage;
  }
  return found;
}

std::optional<bool> ParseBool(std::string_view text) {
  for (std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace

std::string ReleaseVersion::ToString() const {
  return StrCat(major, ".", minor);
}

std::optional<ReleaseVersion> ParseReleaseVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  int numbers[3] = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_digits = parts[i].find_first_not_of("0123456789") == parts[i].npos;
    const std::optional<std::int64_t> number = ParseInt64(parts[i]);
    if (!is_digits || !number || *number > 10'000) return std::nullopt;
    numbers[i] = static_cast<int>(*number);
  }
  return ReleaseVersion{numbers[0], numbers[1]};
}

FeatureGates::FeatureGates() : FeatureGates(kOurVersion) {}

FeatureGates::FeatureGates(ReleaseVersion emulated) : emulated_(emulated) {
  for (const GateEntry& entry : Table()) {
    const Stage* stage = StageAt(entry, emulated);
    enabled_[static_cast<std::size_t>(entry.gate)] = stage != nullptr && stage->on;
  }
}

Result<FeatureGates> FeatureGates::Create(const Options& options) {
  if (options.emulated > kOurVersion) {
    return InvalidArgument(StrCat("emulated version ", options.emulated.ToString(),
                                  " is newer than this binary, which is ", kOurVersion.ToString()));
  }
  FeatureGates gates(options.emulated);
  for (Gate gate : options.turned_on) {
    if (gates.Known(gate)) gates.enabled_[static_cast<std::size_t>(gate)] = true;
  }
  std::array<bool, static_cast<std::size_t>(Gate::kCount)> named{};
  std::map<Gate, std::string_view> names;  // the name under which this source set each gate
  std::vector<std::string_view> entries = Split(options.file_overrides, ',');
  const std::size_t from_file = entries.size();
  for (std::string_view entry : Split(options.overrides, ',')) entries.push_back(entry);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i == from_file) names.clear();
    const std::string_view part = Trim(entries[i]);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(
          StrCat("feature gate ", Quote(part), " has no value; use NAME=true or NAME=false"));
    }
    const std::string_view name = Trim(part.substr(0, equals));
    const std::optional<bool> value = ParseBool(Trim(part.substr(equals + 1)));
    if (!value) {
      return InvalidArgument(StrCat("feature gate ", name, " must be true or false, not ",
                                    Quote(Trim(part.substr(equals + 1)))));
    }
    const std::optional<Gate> gate = FindGate(name);
    const Stage* stage = gate ? StageAt(EntryOf(*gate), options.emulated) : nullptr;
    if (stage == nullptr) {
      return InvalidArgument(StrCat("feature gate ", Quote(name), " is not known in version ",
                                    options.emulated.ToString()));
    }
    if (stage->locked && stage->on != *value) {
      return InvalidArgument(StrCat("feature gate ", name, " is locked to ",
                                    stage->on ? "true" : "false", " in version ",
                                    options.emulated.ToString()));
    }
    const auto given = names.emplace(*gate, name).first;
    if (given->second != name && gates.Enabled(*gate) != *value) {
      return InvalidArgument(StrCat("feature gates ", given->second, " and ", name,
                                    " are two names of one gate and must not have different "
                                    "values; set only one of them"));
    }
    gates.enabled_[static_cast<std::size_t>(*gate)] = *value;
    named[static_cast<std::size_t>(*gate)] = true;
  }
  // These were not set explicitly, so they yield to gates that were. Each round turns off at least
  // one.
  for (bool changed = true; changed;) {
    changed = false;
    for (Gate gate : options.turned_on) {
      const auto is_off = [&](Gate needed) { return !gates.Enabled(needed); };
      if (!gates.Enabled(gate) || named[static_cast<std::size_t>(gate)]) continue;
      if (std::ranges::none_of(EntryOf(gate).needs, is_off)) continue;
      gates.enabled_[static_cast<std::size_t>(gate)] = false;
      changed = true;
    }
  }
  for (const GateEntry& entry : Table()) {
    if (!gates.Enabled(entry.gate)) continue;
    for (Gate needed : entry.needs) {
      if (gates.Enabled(needed)) continue;
      return InvalidArgument(StrCat("feature gate ", entry.name, " is on, but depends on ",
                                    GateName(needed), ", which is off; turn ", entry.name,
                                    " off too, or ", GateName(needed), " on"));
    }
  }
  return gates;
}

bool FeatureGates::Enabled(std::string_view name) const {
  const std::optional<Gate> gate = FindGate(name);
  return gate && Enabled(*gate);
}

bool FeatureGates::Known(Gate gate) const {
  return StageAt(EntryOf(gate), emulated_) != nullptr;
}

FeatureGates FeatureGates::With(Gate gate, bool on) const {
  FeatureGates changed = *this;
  changed.enabled_[static_cast<std::size_t>(gate)] = on;
  return changed;
}

std::string_view GateName(Gate gate) {
  return EntryOf(gate).name;
}

GateFacts FactsOf(Gate gate, ReleaseVersion release) {
  const GateEntry& entry = EntryOf(gate);
  const Stage* stage = StageAt(entry, release);
  GateFacts facts{.name = entry.name, .alias = entry.alias, .is_known = stage != nullptr};
  if (stage == nullptr) return facts;
  facts.is_on = stage->on;
  facts.is_locked = stage->locked;
  for (Gate needed : entry.needs) facts.needs.push_back(GateName(needed));
  return facts;
}

std::optional<Gate> FindGate(std::string_view name) {
  for (const GateEntry& entry : Table()) {
    if (entry.name == name || (!entry.alias.empty() && entry.alias == name)) return entry.gate;
  }
  return std::nullopt;
}

}  // namespace drakkar
