#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Labels that tie sandboxes and containers to their pod, as kubelets set them.
inline constexpr char kPodNameLabel[] = "io.kubernetes.pod.name";
inline constexpr char kPodNamespaceLabel[] = "io.kubernetes.pod.namespace";
inline constexpr char kPodUidLabel[] = "io.kubernetes.pod.uid";
inline constexpr char kContainerNameLabel[] = "io.kubernetes.container.name";

// What the runtime has of one container of a pod.
struct ContainerFacts {
  std::string name;
  bool init = false;
  bool sidecar = false;  // an init container that is restarted always
  api::Value spec;
  std::optional<ContainerStatus> current;   // the newest attempt
  std::optional<ContainerStatus> previous;  // the one before
  std::vector<std::string> stale;           // ids of older attempts

  bool running() const { return current && current->state == ContainerState::kRunning; }
  bool ended() const {
    return current && (current->state == ContainerState::kExited ||
                       current->state == ContainerState::kUnknown);
  }
  bool succeeded() const {
    return current && current->state == ContainerState::kExited && current->exit_code == 0;
  }
};

// What the runtime has of one pod, in the order of its spec.
struct PodFacts {
  std::vector<ContainerFacts> init;     // sidecars among them
  std::vector<ContainerFacts> regular;
  std::vector<PodSandbox> sandboxes;    // oldest first
  std::vector<std::string> strangers;   // ids of running containers the spec does not name

  const PodSandbox* ready_sandbox() const;
  bool any_running() const;
  std::uint32_t next_sandbox_attempt() const;
};

// `pod` may be absent (an orphan): then everything running is a stranger.
PodFacts CollectFacts(api::Value pod, const std::string& uid, const Runtime& runtime);

enum class RestartPolicy { kAlways, kOnFailure, kNever };
RestartPolicy ReadRestartPolicy(api::Value pod);

// Whether a container that ended is to be started again.
bool ShouldRestart(const ContainerFacts& container, RestartPolicy policy);

// What the pod needs next.
struct PodPlan {
  // Has run to its end, and how.
  bool finished = false;
  // Containers to start now or as soon as their backoff allows, in order.
  std::vector<const ContainerFacts*> start;
  // Initialization is over: every init container has done its part.
  bool initialized = false;
};
PodPlan PlanPod(const PodFacts& facts, RestartPolicy policy);

}  // namespace drakkar::node
