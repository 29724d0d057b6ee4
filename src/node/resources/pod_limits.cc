#include "node/resources/pod_limits.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "node/resources/pod_amounts.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMaxShares = 262'144;
constexpr std::int64_t kMinCpuQuotaUs = 1000;
// The kernel rejects quotas above 2^44 microseconds.
constexpr std::int64_t kMaxCpuQuotaUs = std::int64_t{1} << 43;
constexpr int kGuaranteedScore = -997;
constexpr int kBestEffortScore = 1000;

void LimitCpu(const LimitRules& rules, std::int64_t milli, CgroupResources& resources) {
  if (!rules.cpu_quota || milli <= 0) return;
  resources.cpu_period_us = rules.cpu_period_us;
  resources.cpu_quota_us = std::clamp(api::SaturatedMultiply(milli, rules.cpu_period_us) / 1000,
                                      kMinCpuQuotaUs, kMaxCpuQuotaUs);
}

// The kernel's name for pages of "2Mi": "2MB".
std::string KernelPageSize(std::string_view size) {
  std::string name(size);
  std::erase(name, 'i');
  return name + "B";
}

template <typename Visit>
void ForEachContainer(Value pod, Visit&& visit) {
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : pod["spec"][list].elements()) visit(container);
  }
}

// The part of the pod's requests that exceeds its containers', for each of them.
std::int64_t MemoryLeftPerContainer(Value pod) {
  std::int64_t own = 0, count = 0;
  for (Value container : pod["spec"]["containers"].elements()) {
    own = api::SaturatedAdd(own, MemoryBytes(container["resources"]["requests"]));
    ++count;
  }
  for (Value container : pod["spec"]["initContainers"].elements()) {
    if (!IsSidecar(container)) continue;
    own = api::SaturatedAdd(own, MemoryBytes(container["resources"]["requests"]));
    ++count;
  }
  const std::int64_t whole = MemoryBytes(pod["spec"]["resources"]["requests"]);
  return count == 0 ? 0 : std::max<std::int64_t>(whole - own, 0) / count;
}

void LimitSwap(const LimitRules& rules, Value pod, Value container, CgroupResources& resources) {
  if (!rules.counts_swap) return;
  if (!rules.is_unified) {
    // No swap beyond the memory limit; without a memory limit, no swap limit applies.
    resources.memory_swap_limit_bytes = resources.memory_limit_bytes;
    return;
  }
  std::int64_t swap = 0;
  const std::int64_t request = MemoryBytes(container["resources"]["requests"]);
  const std::int64_t limit = MemoryBytes(container["resources"]["limits"]);
  if (rules.limited_swap && !IsCritical(pod) && QosOf(pod) == QosClass::kBurstable && request > 0 &&
      request != limit && rules.machine_memory_bytes > 0) {
    const double share =
        static_cast<double>(request) / static_cast<double>(rules.machine_memory_bytes);
    swap = static_cast<std::int64_t>(share * static_cast<double>(rules.machine_swap_bytes));
  }
  resources.unified["memory.swap.max"] = std::to_string(swap);
}

}  // namespace

std::int64_t SharesOf(std::int64_t milli) {
  return std::clamp(api::SaturatedMultiply(milli, 1024) / 1000, kMinShares, kMaxShares);
}

int OomScoreAdjust(Value pod, Value container, std::int64_t machine_memory_bytes) {
  if (IsCritical(pod) && pod["spec"]["priorityClassName"].str() == "system-node-critical") {
    return kGuaranteedScore;
  }
  const QosClass qos = QosOf(pod);
  if (qos == QosClass::kGuaranteed) return kGuaranteedScore;
  if (qos == QosClass::kBestEffort || machine_memory_bytes <= 0) return kBestEffortScore;
  std::int64_t extra = 0;
  if (pod["spec"]["resources"]["requests"].size() > 0) extra = MemoryLeftPerContainer(pod);
  const auto score = [&](std::int64_t request) {
    return 1000 -
           api::SaturatedMultiply(1000, api::SaturatedAdd(request, extra)) / machine_memory_bytes;
  };
  std::int64_t adjust = score(MemoryBytes(container["resources"]["requests"]));
  // A sidecar must not be killed before the containers that need it.
  bool is_sidecar = false;
  for (Value init : pod["spec"]["initContainers"].elements()) {
    is_sidecar = is_sidecar || (init["name"].str() == container["name"].str() && IsSidecar(init));
  }
  if (is_sidecar) {
    std::optional<std::int64_t> least;
    for (Value regular : pod["spec"]["containers"].elements()) {
      const std::int64_t request = MemoryBytes(regular["resources"]["requests"]);
      least = least ? std::min(*least, request) : request;
    }
    adjust = std::min(adjust, score(least.value_or(0)));
  }
  return static_cast<int>(
      std::clamp<std::int64_t>(adjust, 1000 + kGuaranteedScore, kBestEffortScore - 1));
}

CgroupResources ContainerLimits(const LimitRules& rules, Value pod, Value container,
                                bool exclusive_cpus) {
  CgroupResources resources;
  const Value requests = container["resources"]["requests"];
  const Value limits = container["resources"]["limits"];
  const Value of_pod = pod["spec"]["resources"]["limits"];
  std::int64_t cpu = CpuMilli(limits);
  if (cpu == 0) cpu = CpuMilli(of_pod);
  resources.cpu_shares = SharesOf(requests.Entry("cpu").exists() ? CpuMilli(requests) : cpu);
  if (!exclusive_cpus) LimitCpu(rules, cpu, resources);
  resources.memory_limit_bytes = MemoryBytes(limits);
  if (resources.memory_limit_bytes == 0) resources.memory_limit_bytes = MemoryBytes(of_pod);
  for (const std::string& size : rules.page_sizes) {
    resources.hugepage_limits_bytes[KernelPageSize(size)] = 0;
  }
  // Without a limit of its own, a container shares the pod's.
  for (const Value list : {of_pod, limits}) {
    for (const api::MemberView limit : list.members()) {
      if (!limit.name.starts_with(kHugePages)) continue;
      auto amount = api::Quantity::Parse(limit.value.str());
      if (!amount.ok()) continue;
      resources.hugepage_limits_bytes[KernelPageSize(limit.name.substr(kHugePages.size()))] =
          api::SaturatedValue(*amount);
    }
  }
  resources.oom_score_adjust = OomScoreAdjust(pod, container, rules.machine_memory_bytes);
  LimitSwap(rules, pod, container, resources);
  if (rules.is_unified && rules.kill_all_on_oom) resources.unified["memory.oom.group"] = "1";
  return resources;
}

CgroupResources PodLimits(const LimitRules& rules, Value pod, bool exclusive_cpus) {
  CgroupResources resources;
  resources.pids_limit = rules.pids_per_pod;
  for (const std::string& size : rules.page_sizes) {
    resources.hugepage_limits_bytes[KernelPageSize(size)] = LimitOf(pod, StrCat(kHugePages, size));
  }
  const QosClass qos = QosOf(pod);
  if (qos == QosClass::kBestEffort) {
    resources.cpu_shares = kMinShares;
    return resources;
  }
  resources.cpu_shares = SharesOf(RequestOf(pod, "cpu"));
  // The pod has no limit if one of its containers has none.
  bool cpu = true, memory = true;
  ForEachContainer(pod, [&](Value container) {
    const Value limits = container["resources"]["limits"];
    cpu = cpu && CpuMilli(limits) > 0;
    memory = memory && MemoryBytes(limits) > 0;
  });
  const Value own = pod["spec"]["resources"]["limits"];
  cpu = cpu || CpuMilli(own) > 0 || qos == QosClass::kGuaranteed;
  memory = memory || MemoryBytes(own) > 0 || qos == QosClass::kGuaranteed;
  if (cpu && !exclusive_cpus) LimitCpu(rules, LimitOf(pod, "cpu"), resources);
  if (memory) resources.memory_limit_bytes = LimitOf(pod, "memory");
  return resources;
}

}  // namespace drakkar::node
