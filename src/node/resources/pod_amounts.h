#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "api/tree/value.h"

namespace drakkar::node {

enum class QosClass { kGuaranteed, kBurstable, kBestEffort };
// As the API server wrote it to the pod's status.
QosClass QosOf(api::Value pod);

// Priority from which pods are part of the system and never evicted.
inline constexpr std::int64_t kSystemCriticalPriority = 2'000'000'000;
// Static pods, and pods of the priority classes system-*-critical.
bool IsCritical(api::Value pod);

// A container that starts before the others and stays.
bool IsSidecar(api::Value init_container);

// Quantities that are missing, or no quantities, count as 0; sums saturate.
std::int64_t CpuMilli(api::Value list);
std::int64_t MemoryBytes(api::Value list);

// Resources of this name and a page size, "hugepages-2Mi".
inline constexpr std::string_view kHugePages = "hugepages-";
// The sizes of huge pages that the pod asks for: "2Mi".
std::set<std::string> PageSizesOf(api::Value pod);

// What a pod takes of its node, as the scheduler computes it: its containers together, or its
// largest init container with the sidecars before it if that is more. A request of the pod itself
// takes precedence, and the pod's overhead is added. The CPU is counted in thousandths.
std::int64_t RequestOf(api::Value pod, std::string_view resource);
// The same of limits; a pod without a limit has none for its overhead either.
std::int64_t LimitOf(api::Value pod, std::string_view resource);

struct PodRequests {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
};
PodRequests RequestsOf(api::Value pod);

}  // namespace drakkar::node
