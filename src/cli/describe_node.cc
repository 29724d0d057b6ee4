#include "base/text/text.h"
#include "cli/describe_kinds.h"
#include "cli/jsonpath.h"

namespace drakkar::cli {

using api::Value;

void DescribeNode(Description& out, Value node, const RelatedObjects& related) {
  const Value spec = node["spec"];
  const Value status = node["status"];
  const std::string_view name = node["metadata"]["name"].str();
  std::vector<std::string> lines;
  for (Value taint : spec["taints"].elements()) {
    const std::string_view value = taint["value"].str();
    lines.push_back(
        StrCat(taint["key"].str(), value.empty() ? "" : "=", value, ":", taint["effect"].str()));
  }
  out.Add("Taints", lines.empty() ? "<none>" : Join(lines, "\n"));
  out.Add("Unschedulable", spec["unschedulable"].boolean() ? "true" : "false");
  out.entries.push_back(ConditionsEntry(status["conditions"]));
  lines.clear();
  for (Value address : status["addresses"].elements()) {
    lines.push_back(StrCat(address["type"].str(), ": ", address["address"].str()));
  }
  out.Add("Addresses", lines.empty() ? "<none>" : Join(lines, "\n"));
  out.Add("Capacity", MapText(status["capacity"], ": "));
  out.Add("Allocatable", MapText(status["allocatable"], ": "));
  lines.clear();
  for (Value feature : status["declaredFeatures"].elements()) lines.push_back(PlainText(feature));
  out.Add("Declared Features", lines.empty() ? "<none>" : Join(lines, "\n"));
  DescribeAny(out, "systemInfo", status["nodeInfo"]);

  const Value slices = related.list("resourceslices", "", StrCat("spec.nodeName=", name));
  Entry& devices = out.Add("Devices");
  if (slices["items"].empty()) {
    devices.value = "<none>";
  } else {
    devices.table.push_back({"Driver", "Pool", "Slice", "Devices"});
    for (Value slice : slices["items"].elements()) {
      devices.table.push_back({std::string(slice["spec"]["driver"].str()),
                               std::string(slice["spec"]["pool"]["name"].str()),
                               std::string(slice["metadata"]["name"].str()),
                               StrCat(slice["spec"]["devices"].size())});
    }
  }

  const Value pods = related.list(
      "pods", "", StrCat("spec.nodeName=", name, ",status.phase!=Failed,status.phase!=Succeeded"));
  Entry& running = out.Add("Non-terminated Pods");
  if (pods["items"].empty()) {
    running.value = "<none>";
    return;
  }
  running.table.push_back({"Namespace", "Name", "Status", "Claims"});
  for (Value pod : pods["items"].elements()) {
    running.table.push_back({std::string(pod["metadata"]["namespace"].str()),
                             std::string(pod["metadata"]["name"].str()),
                             std::string(pod["status"]["phase"].str()),
                             StrCat(pod["spec"]["resourceClaims"].size())});
  }
}

}  // namespace drakkar::cli
