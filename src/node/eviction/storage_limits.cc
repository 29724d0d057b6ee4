#include "node/eviction/storage_limits.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "node/resources/pod_amounts.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::string_view kStorage = "ephemeral-storage";

Value OwnLimit(Value container) {
  return container["resources"]["limits"].Entry(kStorage);
}

bool IsInMemory(Value pod, std::string_view volume) {
  for (Value each : pod["spec"]["volumes"].elements()) {
    if (each["name"].str() == volume) return each["emptyDir"]["medium"].str() == "Memory";
  }
  return false;
}

PodVerdict Verdict(std::string message) {
  return {.reason = "Evicted", .message = std::move(message), .is_disruption = true};
}

}  // namespace

bool LimitsEphemeralStorage(Value pod) {
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    for (Value container : pod["spec"][list].elements()) {
      if (OwnLimit(container).exists()) return true;
    }
  }
  return false;
}

std::optional<PodVerdict> ExceedsStorageLimit(Value pod, const NodeUsage& usage) {
  const std::string uid(pod["metadata"]["uid"].str());
  const auto used = std::ranges::find(usage.pods, uid, &PodUsage::uid);
  if (used == usage.pods.end() || !LimitsEphemeralStorage(pod)) return std::nullopt;
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> by_container;
  for (const ContainerUsage& each : used->containers) {
    by_container[each.name] = each.root_fs.used_bytes.value_or(0) + each.log.used_bytes.value_or(0);
    total += by_container[each.name];
  }
  if (const auto volumes = usage.volumes.find(uid); volumes != usage.volumes.end()) {
    for (const VolumeUsage& each : volumes->second) {
      if (each.is_ephemeral() && !IsInMemory(pod, each.name))
        total += each.files.used_bytes.value_or(0);
    }
  }
  if (const std::int64_t limit = LimitOf(pod, kStorage);
      limit > 0 && total > static_cast<std::uint64_t>(limit)) {
    return Verdict(
        StrCat("Pod ephemeral local storage usage exceeds the total limit of containers ",
               api::Quantity(limit, api::Quantity::Format::kBinarySI).ToString(), ". "));
  }
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    for (Value container : pod["spec"][list].elements()) {
      const auto limit = api::Quantity::Parse(OwnLimit(container).str());
      const auto found = by_container.find(std::string(container["name"].str()));
      if (!limit.ok() || found == by_container.end()) continue;
      if (found->second <=
          static_cast<std::uint64_t>(std::max<std::int64_t>(api::SaturatedValue(*limit), 0))) {
        continue;
      }
      return Verdict(StrCat("Container ", found->first,
                            " exceeded its local ephemeral storage limit ",
                            Quote(limit->ToString()), ". "));
    }
  }
  return std::nullopt;
}

}  // namespace drakkar::node
