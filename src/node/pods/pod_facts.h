#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "node/runtime/pod_labels.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Container annotation: how often all containers of the pod had been restarted before this one was
// created.
inline constexpr char kPodRunAnnotation[] = "drakkar.io/pod-run";

// Container annotation: the requests and limits in effect, as JSON (see ResourcesText).
inline constexpr char kResourcesAnnotation[] = "drakkar.io/resources";

// Container annotation: the image as the spec named it.
inline constexpr char kImageAnnotation[] = "drakkar.io/image";

// What the runtime reports about one container of a pod.
struct ContainerFacts {
  std::string name;
  bool init = false;
  bool sidecar = false;    // an init container with restartPolicy Always
  bool ephemeral = false;  // added to the running pod; started once
  api::Value spec;
  std::optional<ContainerStatus> current;   // the newest attempt
  std::optional<ContainerStatus> previous;  // the one before
  std::vector<std::string> stale;           // ids of older attempts
  // Belongs to a previous run of the pod: all containers are being restarted.
  bool superseded = false;

  // Stopped to start again with other resources or another image, whatever the restart policy says.
  bool restarts_for_change = false;

  bool running() const { return current && current->state == ContainerState::kRunning; }
  bool ended() const {
    return current && (current->state == ContainerState::kExited ||
                       current->state == ContainerState::kUnknown);
  }
  bool succeeded() const {
    return current && current->state == ContainerState::kExited && current->exit_code == 0;
  }
};

// What the runtime reports about one pod, in spec order.
struct PodFacts {
  std::vector<ContainerFacts> init;  // including sidecars
  std::vector<ContainerFacts> regular;
  std::vector<ContainerFacts> ephemeral;
  std::vector<PodSandbox> sandboxes;   // oldest first
  std::vector<std::string> strangers;  // ids of running containers the spec does not name
  // Keeps the specs above alive: the facts may outlive the pod version they were collected for.
  std::shared_ptr<const void> pod;

  const PodSandbox* ready_sandbox() const;
  // How often all containers have been restarted, counting a restart in progress (see MarkRuns),
  // and whether none of the new containers has been created yet.
  std::uint32_t run = 0;
  bool restart_begins = false;

  bool any_running() const;
  bool any_superseded_running() const;
  std::uint32_t next_sandbox_attempt() const;
};

// `pod` may be absent (an orphan): then every running container is a stranger.
PodFacts CollectFacts(api::Value pod, const std::string& uid, const Runtime& runtime);

enum class RestartPolicy { kAlways, kOnFailure, kNever };

// Decides whether an exited container is restarted. The container's rules come first (the first one
// that matches the exit code), then the container's policy, then the pod's.
struct RestartSettings {
  RestartPolicy policy = RestartPolicy::kAlways;
  bool container_rules = false;         // gate ContainerRestartRules
  bool restart_all_containers = false;  // gate RestartAllContainersOnContainerExits
};
RestartSettings ReadRestartSettings(api::Value pod, bool container_rules,
                                    bool restart_all_containers);

// Whether an exited container must be started again.
bool ShouldRestart(const ContainerFacts& container, const RestartSettings& settings);

// Whether this exit restarts the whole pod (action RestartAllContainers, KEP-5532).
bool RestartsAll(const ContainerFacts& container, const RestartSettings& settings);

// Whether the pod has a rule that may restart all of its containers.
bool MayRestartAll(api::Value pod);

// Marks the containers that belong to a previous run of the pod. A run ends when one of its
// containers exits with a code that restarts all. This is derived from what the runtime reports, so
// an agent that starts in the middle continues.
void MarkRuns(PodFacts& facts, const RestartSettings& settings);

// What the pod needs next.
struct PodPlan {
  // The pod has run to completion.
  bool finished = false;
  // Containers to start, in order, now or after their backoff.
  std::vector<const ContainerFacts*> start;
  // All init containers have completed, and all sidecars run.
  bool initialized = false;
};
PodPlan PlanPod(const PodFacts& facts, const RestartSettings& settings);

}  // namespace drakkar::node
