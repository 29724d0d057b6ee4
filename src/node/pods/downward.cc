#include "node/pods/downward.h"

#include <map>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

std::string FormatMap(Value map) {
  std::map<std::string, std::string> sorted;
  for (const api::MemberView entry : map.members()) {
    sorted[std::string(entry.name)] = std::string(entry.value.str());
  }
  std::string text;
  for (const auto& [name, value] : sorted) text += StrCat(name, "=", Quote(value), "\n");
  return text;
}

}  // namespace

Result<std::string> ReadFieldRef(const DownwardInput& input, std::string_view path) {
  const Value metadata = input.pod["metadata"];
  for (std::string_view map : {"metadata.labels", "metadata.annotations"}) {
    if (!path.starts_with(map)) continue;
    const Value entries = metadata.Entry(map.substr(9));
    std::string_view rest = path.substr(map.size());
    if (rest.empty()) return FormatMap(entries);
    if (rest.size() > 4 && rest.starts_with("['") && rest.ends_with("']")) {
      return std::string(entries.Entry(rest.substr(2, rest.size() - 4)).str());
    }
  }
  if (path == "metadata.name") return std::string(metadata["name"].str());
  if (path == "metadata.namespace") return std::string(metadata["namespace"].str());
  if (path == "metadata.uid") return std::string(metadata["uid"].str());
  if (path == "spec.nodeName") return input.node_name;
  if (path == "spec.serviceAccountName") {
    return std::string(input.pod["spec"]["serviceAccountName"].str());
  }
  if (path == "status.hostIP" || path == "status.hostIPs") return input.host_ip;
  if (path == "status.podIP") return input.pod_ips.empty() ? "" : input.pod_ips.front();
  if (path == "status.podIPs") return Join(input.pod_ips, ",");
  return InvalidArgument(StrCat("unsupported fieldPath: ", path));
}

Result<std::string> ReadResourceFieldRef(const DownwardInput& input, Value container,
                                         std::string_view resource, std::string_view divisor_text) {
  const std::size_t dot = resource.find('.');
  const std::string_view list = resource.substr(0, dot);
  if (dot == std::string_view::npos || (list != "limits" && list != "requests")) {
    return InvalidArgument(StrCat("unsupported container resource : ", resource));
  }
  const std::string_view name = resource.substr(dot + 1);
  std::string_view text = container["resources"].Entry(list).Entry(name).str();
  api::Quantity amount;
  if (!text.empty()) {
    ASSIGN_OR_RETURN(amount, api::Quantity::Parse(text));
  } else if (list == "limits" && name == "cpu") {
    amount = api::Quantity::FromMilli(input.allocatable_cpu_milli);
  } else if (list == "limits" && name == "memory") {
    amount = api::Quantity(input.allocatable_memory_bytes);
  } else if (list == "limits" && name == "ephemeral-storage") {
    amount = api::Quantity(input.allocatable_storage_bytes);
  }
  api::Quantity divisor(1);
  if (!divisor_text.empty() && divisor_text != "0") {
    ASSIGN_OR_RETURN(divisor, api::Quantity::Parse(divisor_text));
  }
  const bool milli = name == "cpu";
  const std::int32_t scale = milli ? api::Quantity::kMilli : 0;
  const std::int64_t by = api::SaturatedValue(divisor, scale);
  const std::int64_t value = api::SaturatedValue(amount, scale);
  if (by <= 0) return InvalidArgument(StrCat("divisor ", divisor_text, " is not positive"));
  return std::to_string(value / by + (value % by != 0 ? 1 : 0));
}

}  // namespace drakkar::node
