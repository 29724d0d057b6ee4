#include "answers/counts/counts.h"

#include "answers/cluster/device_table.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"

namespace drakkar::answers {
namespace {

std::string_view AgeOf(Duration age) {
  for (const auto& [name, limit] : kClaimAges) {
    if (age <= limit) return name;
  }
  return kClaimAges.back().first;
}

void Count(ClusterCounts& counts, std::string_view state, Duration age) {
  ClusterCounts::Claims& claims = counts.claims[state];
  ++claims.by_age[AgeOf(age)];
  claims.oldest = std::max(claims.oldest, age);
}

}  // namespace

ClusterCounts CountCluster(const Snapshot& snapshot, device::ExpressionCompiler& compiler) {
  ClusterCounts counts;
  const DeviceTable table(snapshot, {.compiler = &compiler});
  for (const std::string& name : table.classes()) {
    for (const std::string_view state : kDeviceStates) counts.devices[{name, std::string(state)}];
  }
  for (const DeviceEntry& entry : table.devices()) {
    const std::string state = ToLower(entry.State());
    if (entry.classes.empty()) ++counts.devices[{"", state}];
    for (const std::uint32_t index : entry.classes) {
      ++counts.devices[{table.classes()[index], state}];
    }
  }
  for (const std::string_view state : kClaimStates) {
    for (const auto& [age, limit] : kClaimAges) counts.claims[state].by_age[age];
  }
  std::map<const api::Object*, bool> waiting;
  for (const auto& use : table.claims()) waiting[use->claim.get()] = use->waiting;
  for (const api::ObjectPtr& claim : snapshot.claims) {
    const Result<WallTime> created =
        api::ParseTime((*claim)["metadata"]["creationTimestamp"].str());
    const Duration age =
        created.ok() ? std::max(snapshot.now - *created, Duration::zero()) : Duration::zero();
    const auto found = waiting.find(claim.get());
    const bool is_waiting = found != waiting.end() && found->second;
    Count(counts,
          claim->is_being_deleted()                   ? "deleting"
          : !claims::IsAllocated(claim->root())       ? "pending"
          : is_waiting                                ? "waiting"
          : (*claim)["status"]["reservedFor"].empty() ? "unused"
                                                      : "used",
          age);
  }
  return counts;
}

}  // namespace drakkar::answers
