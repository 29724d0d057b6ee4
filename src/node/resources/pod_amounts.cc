#include "node/resources/pod_amounts.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"

namespace drakkar::node {
namespace {

using api::Value;

std::int64_t AmountIn(Value list, std::string_view resource) {
  const auto quantity = api::Quantity::Parse(list.Entry(resource).str());
  if (!quantity.ok()) return 0;
  return api::SaturatedValue(*quantity, resource == "cpu" ? api::Quantity::kMilli : 0);
}

std::int64_t Together(Value pod, api::FieldName part, std::string_view resource) {
  const Value spec = pod["spec"];
  if (spec["resources"][part].Entry(resource).exists()) {
    return AmountIn(spec["resources"][part], resource);
  }
  std::int64_t sum = 0, sidecars = 0, most = 0;
  for (Value container : spec["containers"].elements()) {
    sum = api::SaturatedAdd(sum, AmountIn(container["resources"][part], resource));
  }
  for (Value container : spec["initContainers"].elements()) {
    const std::int64_t with =
        api::SaturatedAdd(sidecars, AmountIn(container["resources"][part], resource));
    if (IsSidecar(container)) sidecars = with;
    most = std::max(most, with);
  }
  return std::max(api::SaturatedAdd(sum, sidecars), most);
}

}  // namespace

QosClass QosOf(Value pod) {
  const std::string_view name = pod["status"]["qosClass"].str();
  if (name == "Guaranteed") return QosClass::kGuaranteed;
  return name == "BestEffort" ? QosClass::kBestEffort : QosClass::kBurstable;
}

bool IsCritical(Value pod) {
  const Value annotations = pod["metadata"]["annotations"];
  if (annotations.Entry("kubernetes.io/config.source").str() == "file" ||
      annotations.Entry("kubernetes.io/config.mirror").has_value()) {
    return true;
  }
  return pod["spec"]["priority"].integer() >= kSystemCriticalPriority;
}

bool IsSidecar(Value init_container) {
  return init_container["restartPolicy"].str() == "Always";
}

std::int64_t CpuMilli(Value list) {
  return AmountIn(list, "cpu");
}

std::int64_t MemoryBytes(Value list) {
  return AmountIn(list, "memory");
}

std::set<std::string> PageSizesOf(Value pod) {
  std::set<std::string> sizes;
  const auto add = [&](Value resources) {
    for (const api::FieldName part : api::FieldNames{"requests", "limits"}) {
      for (const api::MemberView each : resources[part].members()) {
        if (each.name.starts_with(kHugePages)) sizes.emplace(each.name.substr(kHugePages.size()));
      }
    }
  };
  add(pod["spec"]["resources"]);
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : pod["spec"][list].elements()) add(container["resources"]);
  }
  return sizes;
}

std::int64_t RequestOf(Value pod, std::string_view resource) {
  return api::SaturatedAdd(Together(pod, "requests", resource),
                           AmountIn(pod["spec"]["overhead"], resource));
}

std::int64_t LimitOf(Value pod, std::string_view resource) {
  const std::int64_t limit = Together(pod, "limits", resource);
  return limit <= 0 ? limit : api::SaturatedAdd(limit, AmountIn(pod["spec"]["overhead"], resource));
}

PodRequests RequestsOf(Value pod) {
  return {RequestOf(pod, "cpu"), RequestOf(pod, "memory")};
}

}  // namespace drakkar::node
