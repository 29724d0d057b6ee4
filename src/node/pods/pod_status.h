#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/tree/draft.h"
#include "node/pods/pod_facts.h"

namespace drakkar::node {

// Why a container does not run yet.
struct WaitingReason {
  std::string reason;
  std::string message;
};

// A pod that was refused, or stopped for a reason of the node's own.
struct PodVerdict {
  std::string reason;
  std::string message;
};

// What becomes of a change of the pod's resources; no reason: it goes well.
struct ResizeState {
  bool pending = false;  // else it is in progress
  std::string reason;    // "Infeasible", "Deferred", "Error"
  std::string message;
};

struct StatusInput {
  api::Value pod;  // as last seen from the API, its status included
  const PodFacts& facts;
  std::map<std::string, WaitingReason> waiting;             // by container
  std::map<std::string, std::string> termination_messages;  // by container id
  std::optional<PodVerdict> verdict;
  std::optional<ResizeState> resize;
  RestartSettings restart;
  bool terminated = false;  // containers stopped, claims unprepared: the phase becomes final
  bool initialized = false;
  std::string host_ip;
  std::string pod_ip;
  std::string runtime_name;
  WallTime now{};
  // status.containerStatuses[].allocatedResourcesStatus; absent: none.
  std::function<api::Draft(const ContainerFacts&)> resource_health;
  // Whether a running container is ready and started (probes); empty: as soon as it runs.
  std::function<bool(const ContainerFacts&)> is_ready;
  std::function<bool(const ContainerFacts&)> is_started;
};

// The new status: what the node owns is computed, everything else (resourceClaimStatuses, qosClass,
// conditions of others) is kept. Times of conditions that did not change are kept too, so equal
// facts give an equal status.
api::Draft MakePodStatus(const StatusInput& input);

// "Pending", "Running", "Succeeded" or "Failed".
std::string_view PodPhase(const PodFacts& facts, const RestartSettings& settings, bool terminated,
                          bool initialized);

}  // namespace drakkar::node
