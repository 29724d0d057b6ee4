#include "apiserver/validation/pod_qos.h"

#include <set>

#include "api/meta/quantity.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

bool IsComputeResource(std::string_view name) {
  return name == "cpu" || name == "memory";
}

}  // namespace

std::string_view QosClass(Value spec) {
  bool any = false;
  bool guaranteed = true;
  const auto consider = [&](Value resources) {
    std::set<std::string_view> limited;
    for (const auto& [key, name, value] : resources["limits"].members()) {
      if (!IsComputeResource(name)) continue;
      auto quantity = api::Quantity::Parse(value.str());
      if (!quantity.ok() || quantity->Sign() <= 0) continue;
      any = true;
      limited.insert(name);
      auto request = api::Quantity::Parse(resources["requests"].Entry(name).str());
      if (!request.ok() || request->Compare(*quantity) != 0) guaranteed = false;
    }
    for (const auto& [key, name, value] : resources["requests"].members()) {
      if (!IsComputeResource(name)) continue;
      auto quantity = api::Quantity::Parse(value.str());
      if (quantity.ok() && quantity->Sign() > 0) any = true;
    }
    if (limited.size() != 2) guaranteed = false;
  };
  // Resources of the pod as a whole take precedence.
  const Value of_pod = spec["resources"];
  if (!of_pod["requests"].empty() || !of_pod["limits"].empty()) {
    consider(of_pod);
  } else {
    for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
      for (Value container : spec[list].elements()) consider(container["resources"]);
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace drakkar::apiserver
