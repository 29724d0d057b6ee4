#include "node/eviction/thresholds.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

struct SignalRow {
  Signal signal;
  std::string_view name;
  std::string_view resource;
  std::string_view condition;
};
constexpr std::array kSignals = {
    SignalRow{Signal::kMemoryAvailable, "memory.available", "memory", "MemoryPressure"},
    SignalRow{Signal::kAllocatableMemoryAvailable, "allocatableMemory.available", "memory",
              "MemoryPressure"},
    SignalRow{Signal::kNodeFsAvailable, "nodefs.available", "ephemeral-storage", "DiskPressure"},
    SignalRow{Signal::kNodeFsInodesFree, "nodefs.inodesFree", "inodes", "DiskPressure"},
    SignalRow{Signal::kImageFsAvailable, "imagefs.available", "ephemeral-storage", "DiskPressure"},
    SignalRow{Signal::kImageFsInodesFree, "imagefs.inodesFree", "inodes", "DiskPressure"},
    SignalRow{Signal::kContainerFsAvailable, "containerfs.available", "ephemeral-storage",
              "DiskPressure"},
    SignalRow{Signal::kContainerFsInodesFree, "containerfs.inodesFree", "inodes", "DiskPressure"},
    SignalRow{Signal::kPidAvailable, "pid.available", "pids", "PIDPressure"},
};

const SignalRow& RowOf(Signal signal) {
  for (const SignalRow& row : kSignals) {
    if (row.signal == signal) return row;
  }
  return kSignals.front();
}

Result<Signal> ParseSignal(std::string_view name) {
  for (const SignalRow& row : kSignals) {
    if (row.name == name) return row.signal;
  }
  return InvalidArgument(StrCat("unsupported eviction signal ", name));
}

// Nothing for a percentage that disables the threshold.
Result<std::optional<Amount>> ParseAmount(std::string_view name, std::string_view text) {
  if (text.ends_with('%')) {
    const std::string digits(text.substr(0, text.size() - 1));
    char* end = nullptr;
    const double percent = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0' || !(percent >= 0 && percent <= 100)) {
      return InvalidArgument(
          StrCat("eviction threshold ", name, ": ", Quote(text), " must be between 0% and 100%"));
    }
    if (percent == 0 || percent == 100) return std::optional<Amount>();
    return std::optional<Amount>(Amount{.quantity = {}, .fraction = percent / 100});
  }
  const auto quantity = api::Quantity::Parse(text);
  if (!quantity.ok()) {
    return quantity.error().Prefixed(StrCat("eviction threshold ", name));
  }
  if (quantity->Value() < 0) {
    return InvalidArgument(
        StrCat("eviction threshold ", name, ": ", Quote(text), " must not be negative"));
  }
  return std::optional<Amount>(
      Amount{.quantity = static_cast<std::uint64_t>(quantity->Value()), .fraction = 0});
}

}  // namespace

std::string_view SignalName(Signal signal) {
  return RowOf(signal).name;
}
std::string_view ResourceOf(Signal signal) {
  return RowOf(signal).resource;
}
std::string_view ConditionOf(Signal signal) {
  return RowOf(signal).condition;
}

std::map<std::string, std::string> EvictionSettings::DefaultHard() {
  return {{"memory.available", "100Mi"},
          {"nodefs.available", "10%"},
          {"nodefs.inodesFree", "5%"},
          {"imagefs.available", "15%"},
          {"imagefs.inodesFree", "5%"}};
}

Result<std::vector<Threshold>> ParseThresholds(const EvictionSettings& settings) {
  std::vector<Threshold> thresholds;
  std::map<Signal, Amount> reclaim;
  for (const auto& [name, text] : settings.minimum_reclaim) {
    ASSIGN_OR_RETURN(const Signal signal, ParseSignal(name));
    ASSIGN_OR_RETURN(const std::optional<Amount> amount, ParseAmount(name, text));
    if (amount) reclaim[signal] = *amount;
  }
  auto add = [&](const std::string& name, const std::string& text, Duration grace,
                 bool is_hard) -> Result<void> {
    ASSIGN_OR_RETURN(const Signal signal, ParseSignal(name));
    ASSIGN_OR_RETURN(const std::optional<Amount> least, ParseAmount(name, text));
    if (!least) return Ok();
    Threshold threshold{
        .signal = signal, .least = *least, .reclaim = {}, .grace = grace, .is_hard = is_hard};
    if (const auto found = reclaim.find(signal); found != reclaim.end()) {
      threshold.reclaim = found->second;
    }
    thresholds.push_back(threshold);
    if (is_hard && signal == Signal::kMemoryAvailable && settings.enforce_allocatable) {
      threshold.signal = Signal::kAllocatableMemoryAvailable;
      thresholds.push_back(threshold);
    }
    return Ok();
  };
  for (const auto& [name, text] : settings.hard) {
    RETURN_IF_ERROR(add(name, text, Duration::zero(), true));
  }
  for (const auto& [name, text] : settings.soft_grace_period) {
    RETURN_IF_ERROR(ParseSignal(name));
    ASSIGN_OR_RETURN(const Duration grace, api::ParseDuration(text));
    if (grace < Duration::zero()) {
      return InvalidArgument(
          StrCat("evictionSoftGracePeriod ", name, ": ", Quote(text), " must not be negative"));
    }
  }
  for (const auto& [name, text] : settings.soft) {
    const auto period = settings.soft_grace_period.find(name);
    if (period == settings.soft_grace_period.end()) {
      return InvalidArgument(
          StrCat("grace period must be specified for the soft eviction threshold ", name));
    }
    ASSIGN_OR_RETURN(const Duration grace, api::ParseDuration(period->second));
    RETURN_IF_ERROR(add(name, text, grace, false));
  }
  return thresholds;
}

Observations Observe(const NodeUsage& usage) {
  Observations observations;
  auto put = [&](Signal signal, const Count& available, const Count& capacity) {
    if (available && capacity) observations[signal] = {*available, *capacity};
  };
  const MachineUsage& machine = usage.machine;
  if (usage.memory_capacity_bytes > 0) {
    put(Signal::kMemoryAvailable, machine.memory.available_bytes,
        Count(usage.memory_capacity_bytes));
  }
  if (usage.all_pods && usage.all_pods->memory.limit_bytes) {
    put(Signal::kAllocatableMemoryAvailable, usage.all_pods->memory.available_bytes,
        usage.all_pods->memory.limit_bytes);
  }
  put(Signal::kNodeFsAvailable, usage.node_fs.available_bytes, usage.node_fs.capacity_bytes);
  put(Signal::kImageFsAvailable, usage.image_fs.available_bytes, usage.image_fs.capacity_bytes);
  put(Signal::kContainerFsAvailable, usage.container_fs.available_bytes,
      usage.container_fs.capacity_bytes);
  // Some file systems have no fixed number of inodes and show zero.
  auto inodes = [&](Signal signal, const DiskSpace& space) {
    if (space.inodes.value_or(0) > 0) put(signal, space.inodes_free, space.inodes);
  };
  inodes(Signal::kNodeFsInodesFree, usage.node_fs);
  inodes(Signal::kImageFsInodesFree, usage.image_fs);
  inodes(Signal::kContainerFsInodesFree, usage.container_fs);
  if (machine.max_processes && machine.processes) {
    put(Signal::kPidAvailable,
        Count(*machine.max_processes - std::min(*machine.processes, *machine.max_processes)),
        machine.max_processes);
  }
  return observations;
}

bool IsMet(const Threshold& threshold, const Observation& observation, bool with_reclaim) {
  std::uint64_t least = threshold.least.Of(observation.capacity);
  if (with_reclaim && threshold.reclaim) least += threshold.reclaim->Of(observation.capacity);
  return observation.available < least;
}

std::uint64_t HardReservation(const std::vector<Threshold>& thresholds, Signal signal,
                              std::uint64_t capacity) {
  for (const Threshold& threshold : thresholds) {
    if (threshold.is_hard && threshold.signal == signal) return threshold.least.Of(capacity);
  }
  return 0;
}

}  // namespace drakkar::node
