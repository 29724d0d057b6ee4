#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/checkpoint/claim_checkpoint.h"
#include "node/dra/dra_stages.h"
#include "rpc/dra/dra.h"

namespace drakkar::node {

struct ClaimDriver {
  // The devices from the driver's answer. Devices that skip preparation are listed as allocated,
  // without CDI ids, because their driver may report health.
  std::vector<rpc::PreparedDevice> devices;
  bool answered = false;  // the driver has answered, in this process or an earlier one
  std::vector<std::string> skip_node_operations;  // aggregated
};

// What the node knows about a claim held by its pods.
struct ClaimInfo {
  std::string uid;
  std::string name;
  std::string namespace_name;
  std::set<std::string> pod_uids;
  std::map<std::string, ClaimDriver> drivers;  // one entry per driver of the allocation
  // Not in the checkpoint: a new process starts with kAttached.
  StateMachine<kClaimTable> phase{ClaimPhase::kAttached};

  rpc::ClaimReference reference() const { return {namespace_name, uid, name}; }
};

// Claims by "namespace/name", with conversion to and from the checkpoint.
class ClaimCache {
 public:
  using Claims = std::map<std::string, ClaimInfo>;
  static std::string Key(const std::string& namespace_name, const std::string& name) {
    return namespace_name + "/" + name;
  }

  void Load(const CheckpointState& state);
  CheckpointState Save() const;

  ClaimInfo* Find(const std::string& key);
  const ClaimInfo* Find(const std::string& key) const;
  ClaimInfo& Add(ClaimInfo info);
  void Erase(const std::string& key) { claims_.erase(key); }
  const Claims& claims() const { return claims_; }
  std::vector<std::string> KeysOfPod(const std::string& pod_uid) const;
  std::set<std::string> PodUids() const;

 private:
  Claims claims_;
};

}  // namespace drakkar::node
