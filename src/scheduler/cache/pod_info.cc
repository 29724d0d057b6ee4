#include "scheduler/cache/pod_info.h"

#include "api/keys.h"
#include "base/text/text.h"

namespace drakkar::scheduler {

namespace key = api::key;
using api::Value;

namespace {

bool IsWildcard(const std::string& ip) {
  return ip.empty() || ip == "0.0.0.0";
}

void ReadHostPorts(Value containers, bool sidecars_only, bool host_network,
                   std::vector<HostPort>& ports) {
  for (Value container : containers.elements()) {
    if (sidecars_only && container[key::kRestartPolicy].str() != "Always") continue;
    for (Value port : container[key::kPorts].elements()) {
      std::int64_t number = port[key::kHostPort].integer();
      if (number == 0 && host_network) number = port[key::kContainerPort].integer();
      if (number <= 0) continue;
      ports.push_back({std::string(port[key::kHostIP].str()),
                       std::string(port[key::kProtocol].str("TCP")), number});
    }
  }
}

PodClaim ReadClaim(Value claim, Value status) {
  PodClaim read{.entry = std::string(claim[key::kName].str())};
  if (claim[key::kResourceClaimName].has_value()) {
    read.claim_name = std::string(claim[key::kResourceClaimName].str());
    return read;
  }
  read.from_template = claim[key::kResourceClaimTemplateName].has_value();
  read.unknown_source = !read.from_template;
  for (Value made : status[key::kResourceClaimStatuses].elements()) {
    if (made[key::kName].str() != read.entry) continue;
    read.claim_name = std::string(made[key::kResourceClaimName].str());
    read.not_needed = !made[key::kResourceClaimName].has_value();
  }
  return read;
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
  const std::string_view phase = status()[key::kPhase].str();
  return phase == "Succeeded" || phase == "Failed";
}

PodInfoPtr MakePodInfo(api::ObjectPtr pod) {
  auto info = std::make_shared<PodInfo>();
  const Value spec = pod->root()[key::kSpec];
  info->key = pod->qualified_name();
  info->uid = std::string(pod->uid());
  info->priority = spec[key::kPriority].integer();
  info->node_name = std::string(spec[key::kNodeName].str());
  info->nominated_node = std::string(pod->root()[key::kStatus][key::kNominatedNodeName].str());
  const Value status = info->node_name.empty() ? Value() : pod->root()[key::kStatus];
  info->requests = PodRequests(spec, status);
  info->scoring_requests = PodRequestsForScoring(spec, status);
  const bool host_network = spec[key::kHostNetwork].boolean();
  ReadHostPorts(spec[key::kContainers], false, host_network, info->host_ports);
  ReadHostPorts(spec[key::kInitContainers], true, host_network, info->host_ports);
  const Value claims = spec[key::kResourceClaims];
  info->claims.reserve(claims.size());
  for (Value claim : claims.elements()) {
    info->claims.push_back(ReadClaim(claim, pod->root()[key::kStatus]));
  }
  info->pod = std::move(pod);
  return info;
}

}  // namespace drakkar::scheduler
