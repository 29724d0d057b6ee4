#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "node/stats/usage_collector.h"

namespace drakkar::node {

// The signals of an eviction, with a kubelet's names.
enum class Signal {
  kMemoryAvailable,
  kAllocatableMemoryAvailable,
  kNodeFsAvailable,
  kNodeFsInodesFree,
  kImageFsAvailable,
  kImageFsInodesFree,
  kContainerFsAvailable,
  kContainerFsInodesFree,
  kPidAvailable,
};
std::string_view SignalName(Signal signal);  // "memory.available"
// The reclaimed resource, as events name it: memory, ephemeral-storage, inodes, pids.
std::string_view ResourceOf(Signal signal);
std::string_view ConditionOf(Signal signal);  // "MemoryPressure"

// An amount, or a fraction of the capacity.
struct Amount {
  std::optional<std::uint64_t> quantity;
  double fraction = 0;  // if there is no quantity
  std::uint64_t Of(std::uint64_t capacity) const {
    return quantity ? *quantity
                    : static_cast<std::uint64_t>(static_cast<double>(capacity) * fraction);
  }
};

struct Threshold {
  Signal signal = Signal::kMemoryAvailable;
  Amount least;  // below this the threshold is met
  std::optional<Amount> reclaim;
  Duration grace{};  // how long it must be met; zero for hard thresholds
  bool is_hard = true;
};

// The settings of a KubeletConfiguration.
struct EvictionSettings {
  std::map<std::string, std::string> hard;
  std::map<std::string, std::string> soft;
  std::map<std::string, std::string> soft_grace_period;
  std::map<std::string, std::string> minimum_reclaim;
  Duration transition_period = std::chrono::minutes(5);
  std::int64_t max_pod_grace_seconds = 0;
  // All pods together are limited to what is allocatable; the memory threshold then applies to that
  // limit too.
  bool enforce_allocatable = false;

  // A kubelet's defaults.
  static std::map<std::string, std::string> DefaultHard();
};

// "100Mi" or "10%". Thresholds of 0 % and 100 % are left out: that is how they are disabled.
Result<std::vector<Threshold>> ParseThresholds(const EvictionSettings& settings);

struct Observation {
  std::uint64_t available = 0;
  std::uint64_t capacity = 0;
};
using Observations = std::map<Signal, Observation>;
// Signals that the node does not measure are missing.
Observations Observe(const NodeUsage& usage);

// `with_reclaim`: whether the threshold would still be met if its minimum reclaim were added.
bool IsMet(const Threshold& threshold, const Observation& observation, bool with_reclaim);

// The part of a resource that the hard thresholds reserve, for status.allocatable.
std::uint64_t HardReservation(const std::vector<Threshold>& thresholds, Signal signal,
                              std::uint64_t capacity);

}  // namespace drakkar::node
