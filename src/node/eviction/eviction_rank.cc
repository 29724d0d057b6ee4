#include "node/eviction/eviction_rank.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::string_view kEphemeralStorage = "ephemeral-storage";

const PodUsage* UsageOf(const NodeUsage& usage, std::string_view uid) {
  for (const PodUsage& pod : usage.pods) {
    if (pod.uid == uid) return &pod;
  }
  return nullptr;
}

struct Rank {
  bool exceeds = false;
  std::int64_t priority = 0;
  std::int64_t excess = 0;
};

std::int64_t DiskOf(const PodUsage& pod, const NodeUsage& usage, Signal signal) {
  const bool inodes = ResourceOf(signal) == "inodes";
  std::uint64_t sum = 0;
  for (const ContainerUsage& each : pod.containers) {
    sum += (inodes ? each.root_fs.inodes_used : each.root_fs.used_bytes).value_or(0);
    sum += (inodes ? each.log.inodes_used : each.log.used_bytes).value_or(0);
  }
  if (const auto volumes = usage.volumes.find(pod.uid); volumes != usage.volumes.end()) {
    for (const VolumeUsage& each : volumes->second) {
      if (!each.is_ephemeral()) continue;
      sum += (inodes ? each.files.inodes_used : each.files.used_bytes).value_or(0);
    }
  }
  return static_cast<std::int64_t>(sum);
}

Rank RankOf(Value pod, const NodeUsage& usage, Signal signal) {
  Rank rank;
  rank.priority = pod["spec"]["priority"].integer();
  const PodUsage* used = UsageOf(usage, pod["metadata"]["uid"].str());
  const std::string_view resource = ResourceOf(signal);
  if (resource == "pids") {
    rank.excess = used == nullptr ? 0 : static_cast<std::int64_t>(used->processes.value_or(0));
    return rank;
  }
  std::int64_t amount = 0;
  if (used != nullptr) {
    amount = resource == "memory"
                 ? static_cast<std::int64_t>(used->memory.working_set_bytes.value_or(0))
                 : DiskOf(*used, usage, signal);
  }
  const std::int64_t request = resource == "inodes" ? 0 : RequestOf(pod, resource);
  rank.excess = amount - request;
  // A pod that was not measured is ranked after those that were.
  rank.exceeds = used != nullptr && rank.excess > 0;
  return rank;
}

std::string Bytes(std::uint64_t amount, bool binary) {
  return api::Quantity(static_cast<std::int64_t>(amount), binary
                                                              ? api::Quantity::Format::kBinarySI
                                                              : api::Quantity::Format::kDecimalSI)
      .ToString();
}

}  // namespace

std::vector<api::ObjectPtr> RankForEviction(std::vector<api::ObjectPtr> pods,
                                            const NodeUsage& usage, Signal signal) {
  std::vector<std::pair<Rank, api::ObjectPtr>> ranked;
  for (api::ObjectPtr& pod : pods) {
    Rank rank = RankOf(pod->root(), usage, signal);
    ranked.emplace_back(rank, std::move(pod));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    if (a.first.exceeds != b.first.exceeds) return a.first.exceeds;
    if (a.first.priority != b.first.priority) return a.first.priority < b.first.priority;
    return a.first.excess > b.first.excess;
  });
  pods.clear();
  for (auto& [rank, pod] : ranked) pods.push_back(std::move(pod));
  return pods;
}

std::string EvictionMessage(Value pod, const NodeUsage& usage, const Threshold& threshold,
                            const Observation& observation) {
  const std::string_view resource = ResourceOf(threshold.signal);
  const bool binary = resource == "memory" || resource == kEphemeralStorage;
  std::string message =
      StrCat("The node was low on resource: ", resource,
             ". Threshold quantity: ", Bytes(threshold.least.Of(observation.capacity), binary),
             ", available: ", Bytes(observation.available, binary), ". ");
  const PodUsage* used = UsageOf(usage, pod["metadata"]["uid"].str());
  if (used == nullptr || !binary) return message;
  for (const ContainerUsage& each : used->containers) {
    Count amount = each.memory.working_set_bytes;
    if (resource == kEphemeralStorage) {
      amount = each.root_fs.used_bytes;
      if (amount) *amount += each.log.used_bytes.value_or(0);
    }
    if (!amount) continue;
    for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
      for (Value container : pod["spec"][list].elements()) {
        if (container["name"].str() != each.name) continue;
        const Value request = container["resources"]["requests"].Entry(resource);
        const auto asked = api::Quantity::Parse(request.str());
        if (asked.ok() && api::SaturatedValue(*asked) >= static_cast<std::int64_t>(*amount))
          continue;
        message += StrCat("Container ", each.name, " was using ", Bytes(*amount, true),
                          ", request is ", asked.ok() ? asked->ToString() : std::string("0"),
                          ", has larger consumption of ", resource, ". ");
      }
    }
  }
  return message;
}

}  // namespace drakkar::node
