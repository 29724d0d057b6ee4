#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "claims/pod_claims.h"
#include "scheduler/cache/resources.h"

namespace drakkar::scheduler {

struct HostPort {
  std::string ip;        // "" and "0.0.0.0" mean every address
  std::string protocol;  // TCP, UDP, SCTP
  std::int64_t port = 0;

  bool ConflictsWith(const HostPort& other) const;
};

using claims::PodClaim;

// What the scheduler needs of a pod, computed once per version.
struct PodInfo {
  api::ObjectPtr pod;
  std::string key;  // namespace/name
  std::string uid;
  std::int64_t priority = 0;
  std::string node_name;       // spec.nodeName; set if the pod is bound
  std::string nominated_node;  // status.nominatedNodeName
  ResourceAmounts requests;
  ResourceAmounts scoring_requests;
  std::vector<HostPort> host_ports;
  std::vector<PodClaim> claims;
  bool has_pod_affinity = false;  // it has terms of podAffinity or podAntiAffinity

  std::string_view ns() const { return pod->namespace_(); }
  std::string_view name() const { return pod->name(); }
  api::Value labels() const { return pod->root()["metadata"]["labels"]; }
  api::Value spec() const { return pod->root()["spec"]; }
  api::Value status() const { return pod->root()["status"]; }
  std::string ClaimKey(const PodClaim& claim) const;  // namespace/name
  // The pod has Succeeded or Failed, so it uses nothing.
  bool HasEnded() const;
};
using PodInfoPtr = std::shared_ptr<const PodInfo>;

PodInfoPtr MakePodInfo(api::ObjectPtr pod);

}  // namespace drakkar::scheduler
