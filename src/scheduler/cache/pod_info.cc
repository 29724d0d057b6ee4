#include "scheduler/cache/pod_info.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

bool IsWildcard(const std::string& ip) {
  return ip.empty() || ip == "0.0.0.0";
}

void ReadHostPorts(Value containers, bool sidecars_only, bool host_network,
                   std::vector<HostPort>& ports) {
  for (Value container : containers.elements()) {
    if (sidecars_only && container["restartPolicy"].str() != "Always") continue;
    for (Value port : container["ports"].elements()) {
      std::int64_t number = port["hostPort"].integer();
      if (number == 0 && host_network) number = port["containerPort"].integer();
      if (number <= 0) continue;
      ports.push_back(
          {std::string(port["hostIP"].str()), std::string(port["protocol"].str("TCP")), number});
    }
  }
}

bool HasTerms(Value affinity) {
  return !affinity["requiredDuringSchedulingIgnoredDuringExecution"].empty() ||
         !affinity["preferredDuringSchedulingIgnoredDuringExecution"].empty();
}

}  // namespace

bool HostPort::ConflictsWith(const HostPort& other) const {
  if (port != other.port || protocol != other.protocol) return false;
  return IsWildcard(ip) || IsWildcard(other.ip) || ip == other.ip;
}

std::string PodInfo::ClaimKey(const PodClaim& claim) const {
  return StrCat(ns(), "/", claim.claim_name);
}

bool PodInfo::HasEnded() const {
  const std::string_view phase = status()["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

PodInfoPtr MakePodInfo(api::ObjectPtr pod) {
  auto info = std::make_shared<PodInfo>();
  const Value spec = pod->root()["spec"];
  info->key = pod->qualified_name();
  info->uid = std::string(pod->uid());
  info->priority = spec["priority"].integer();
  info->node_name = std::string(spec["nodeName"].str());
  info->nominated_node = std::string(pod->root()["status"]["nominatedNodeName"].str());
  const Value status = info->node_name.empty() ? Value() : pod->root()["status"];
  info->requests = PodRequests(spec, status);
  info->scoring_requests = PodRequestsForScoring(spec, status);
  const bool host_network = spec["hostNetwork"].boolean();
  ReadHostPorts(spec["containers"], false, host_network, info->host_ports);
  ReadHostPorts(spec["initContainers"], true, host_network, info->host_ports);
  info->claims = claims::ListPodClaims(pod->root());
  const Value affinity = spec["affinity"];
  info->has_pod_affinity =
      HasTerms(affinity["podAffinity"]) || HasTerms(affinity["podAntiAffinity"]);
  info->pod = std::move(pod);
  return info;
}

}  // namespace drakkar::scheduler
