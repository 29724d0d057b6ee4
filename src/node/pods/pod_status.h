#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/tree/draft.h"
#include "node/admission/pod_verdict.h"
#include "node/pods/pod_facts.h"

namespace drakkar::node {

// Why a container is not running yet.
struct WaitingReason {
  std::string reason;
  std::string message;
};

// The progress of a change to the pod's resources.
struct ResizeState {
  enum class Stage {
    kInProgress,
    kFailed,      // applying it failed; retried
    kDeferred,    // other pods use the resources; retried
    kInfeasible,  // the node is too small
  };
  Stage stage = Stage::kInProgress;
  std::string message;

  // Whether the condition is PodResizePending rather than PodResizeInProgress.
  bool is_pending() const { return stage == Stage::kDeferred || stage == Stage::kInfeasible; }
  // The condition's reason; empty without a problem.
  std::string_view reason() const;
};

struct StatusInput {
  api::Value pod;  // as last seen from the API, its status included
  const PodFacts& facts;
  std::map<std::string, WaitingReason> waiting;             // by container
  std::map<std::string, std::string> termination_messages;  // by container id
  std::optional<PodVerdict> verdict;
  std::optional<ResizeState> resize;
  RestartSettings restart;
  bool terminated = false;  // containers stopped and claims unprepared: the phase is final
  bool initialized = false;
  std::string host_ip;
  std::vector<std::string> pod_ips;
  std::string runtime_name;
  WallTime now{};
  // status.containerStatuses[].allocatedResourcesStatus; absent: none.
  std::function<api::Draft(const ContainerFacts&)> resource_health;
  // Whether a running container is ready and started, according to its probes; empty: as soon as it
  // runs.
  std::function<bool(const ContainerFacts&)> is_ready;
  std::function<bool(const ContainerFacts&)> is_started;
};

// The new status: fields that the node owns are computed, all others (resourceClaimStatuses,
// qosClass, foreign conditions) are kept. Unchanged conditions keep their times, so equal facts
// give an equal status.
api::Draft MakePodStatus(const StatusInput& input);

// "Pending", "Running", "Succeeded" or "Failed".
std::string_view PodPhase(const PodFacts& facts, const RestartSettings& settings, bool terminated,
                          bool initialized);

}  // namespace drakkar::node
