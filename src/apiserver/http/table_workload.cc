#include <algorithm>

#include "api/meta/label_selector.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

Value PodSpecOf(const Cells& cells) {
  return cells["spec"]["template"]["spec"];
}

// spec.replicas defaults to one.
std::int64_t Desired(const Cells& cells) {
  return cells["spec"]["replicas"].integer(1);
}

void WriteDeployment(Cells& cells) {
  const Value status = cells["status"];
  cells.AddName();
  cells.Add(StrCat(status["readyReplicas"].integer(), "/", Desired(cells)));
  cells.Add(status["updatedReplicas"].integer());
  cells.Add(status["availableReplicas"].integer());
  cells.AddAge();
  AddContainersAndImages(cells, PodSpecOf(cells));
  cells.Add(api::FormatLabelSelector(cells["spec"]["selector"]));
}

void WriteReplicas(Cells& cells) {
  const Value status = cells["status"];
  cells.AddName();
  cells.Add(Desired(cells));
  cells.Add(status["replicas"].integer());
  cells.Add(status["readyReplicas"].integer());
  cells.AddAge();
  AddContainersAndImages(cells, PodSpecOf(cells));
}

void WriteReplicaSet(Cells& cells) {
  WriteReplicas(cells);
  cells.Add(api::FormatLabelSelector(cells["spec"]["selector"]));
}

void WriteReplicationController(Cells& cells) {
  WriteReplicas(cells);
  cells.Add(MapText(cells["spec"]["selector"]));
}

void WriteStatefulSet(Cells& cells) {
  cells.AddName();
  cells.Add(StrCat(cells["status"]["readyReplicas"].integer(), "/", Desired(cells)));
  cells.AddAge();
  AddContainersAndImages(cells, PodSpecOf(cells));
}

void WriteDaemonSet(Cells& cells) {
  const Value status = cells["status"];
  cells.AddName();
  cells.Add(status["desiredNumberScheduled"].integer());
  cells.Add(status["currentNumberScheduled"].integer());
  cells.Add(status["numberReady"].integer());
  cells.Add(status["updatedNumberScheduled"].integer());
  cells.Add(status["numberAvailable"].integer());
  cells.Add(MapText(PodSpecOf(cells)["nodeSelector"]));
  cells.AddAge();
  AddContainersAndImages(cells, PodSpecOf(cells));
  cells.Add(api::FormatLabelSelector(cells["spec"]["selector"]));
}

void WriteControllerRevision(Cells& cells) {
  std::string controller = "<none>";
  for (Value owner : cells["metadata"]["ownerReferences"].elements()) {
    if (!owner["controller"].boolean()) continue;
    const std::string_view api_version = owner["apiVersion"].str();
    const std::size_t slash = api_version.find('/');
    controller = ToLower(owner["kind"].str());
    if (slash != std::string_view::npos) controller += StrCat(".", api_version.substr(0, slash));
    controller += StrCat("/", owner["name"].str());
  }
  cells.AddName();
  cells.Add(std::move(controller));
  cells.Add(cells["revision"].integer());
  cells.AddAge();
}

std::string ServiceExternalIp(Value service) {
  const Value spec = service["spec"];
  const std::string_view type = spec["type"].str();
  if (type == "ExternalName") return std::string(spec["externalName"].str());
  std::vector<std::string_view> addresses;
  if (type == "LoadBalancer") {
    for (Value each : service["status"]["loadBalancer"]["ingress"].elements()) {
      const std::string_view ip = each["ip"].str();
      addresses.push_back(ip.empty() ? each["hostname"].str() : ip);
    }
  }
  for (Value each : spec["externalIPs"].elements()) addresses.push_back(each.str());
  if (!addresses.empty()) return Join(addresses, ",");
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

void WriteService(Cells& cells) {
  const Value spec = cells["spec"];
  std::vector<std::string> ports;
  for (Value each : spec["ports"].elements()) {
    std::string port = std::to_string(each["port"].integer());
    if (each["nodePort"].integer() > 0) port += StrCat(":", each["nodePort"].integer());
    ports.push_back(StrCat(port, "/", each["protocol"].str("TCP")));
  }
  cells.AddName();
  cells.AddText(spec["type"].str());
  cells.AddText(spec["clusterIP"].str(), "<none>");
  cells.Add(ServiceExternalIp(cells.object().root()));
  cells.AddText(Join(ports, ","), "<none>");
  cells.AddAge();
  cells.Add(MapText(spec["selector"]));
}

void WriteEndpoints(Cells& cells) {
  // More than three are counted only: a subset stands for all pairs of its addresses and ports.
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  std::size_t count = 0;
  for (Value subset : cells["subsets"].elements()) {
    const Value ports = subset["ports"];
    count += subset["addresses"].size() * std::max<std::size_t>(1, ports.size());
    for (Value address : subset["addresses"].elements()) {
      if (shown.size() == kShown) break;
      const std::string_view ip = address["ip"].str();
      if (ports.empty()) shown.emplace_back(ip);
      for (Value port : ports.elements()) {
        if (shown.size() == kShown) break;
        const bool v6 = ip.find(':') != std::string_view::npos;
        shown.push_back(StrCat(v6 ? "[" : "", ip, v6 ? "]:" : ":", port["port"].integer()));
      }
    }
  }
  std::string text = shown.empty() ? "<none>" : Join(shown, ",");
  if (count > kShown) text += StrCat(" + ", count - kShown, " more...");
  cells.AddName();
  cells.Add(std::move(text));
  cells.AddAge();
}

std::string IntOrString(Value value) {
  if (value.is_string()) return std::string(value.str());
  const std::optional<std::int64_t> number = value.optional_integer();
  return number ? std::to_string(*number) : "N/A";
}

void WriteDisruptionBudget(Cells& cells) {
  cells.AddName();
  cells.Add(IntOrString(cells["spec"]["minAvailable"]));
  cells.Add(IntOrString(cells["spec"]["maxUnavailable"]));
  cells.Add(cells["status"]["disruptionsAllowed"].integer());
  cells.AddAge();
}

}  // namespace

std::vector<CellWriterEntry> WorkloadCellWriters() {
  return {
      {"apps", "Deployment", WriteDeployment},
      {"apps", "ReplicaSet", WriteReplicaSet},
      {"apps", "StatefulSet", WriteStatefulSet},
      {"apps", "DaemonSet", WriteDaemonSet},
      {"apps", "ControllerRevision", WriteControllerRevision},
      {"", "ReplicationController", WriteReplicationController},
      {"", "Service", WriteService},
      {"", "Endpoints", WriteEndpoints},
      {"policy", "PodDisruptionBudget", WriteDisruptionBudget},
  };
}

}  // namespace drakkar::apiserver
