#pragma once

#include <memory>
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
// Annotation of a container: how often all containers of its pod were restarted before it.
inline constexpr char kPodRunAnnotation[] = "drakkar.io/pod-run";

// Annotation of a container: the requests and limits it has, as JSON (see ResourcesText).
inline constexpr char kResourcesAnnotation[] = "drakkar.io/resources";

// What the runtime has of one container of a pod.
struct ContainerFacts {
  std::string name;
  bool init = false;
  bool sidecar = false;    // an init container that is restarted always
  bool ephemeral = false;  // added to the running pod; started once
  api::Value spec;
  std::optional<ContainerStatus> current;   // the newest attempt
  std::optional<ContainerStatus> previous;  // the one before
  std::vector<std::string> stale;           // ids of older attempts
  // Of a run of the pod that is over: all its containers are being restarted.
  bool superseded = false;

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
  std::vector<ContainerFacts> init;  // sidecars among them
  std::vector<ContainerFacts> regular;
  std::vector<ContainerFacts> ephemeral;
  std::vector<PodSandbox> sandboxes;   // oldest first
  std::vector<std::string> strangers;  // ids of running containers the spec does not name
  // Owns the specs above, where the facts may outlive the version of the pod they were collected
  // for.
  std::shared_ptr<const void> pod;

  const PodSandbox* ready_sandbox() const;
  // How often all containers have been, or are about to be, restarted (see MarkRuns); and whether
  // none of the new ones is there yet.
  std::uint32_t run = 0;
  bool restart_begins = false;

  bool any_running() const;
  bool any_superseded_running() const;
  std::uint32_t next_sandbox_attempt() const;
};

// `pod` may be absent (an orphan): then everything running is a stranger.
PodFacts CollectFacts(api::Value pod, const std::string& uid, const Runtime& runtime);

enum class RestartPolicy { kAlways, kOnFailure, kNever };

// What decides about the restart of containers that end. The rules of a container come first (the
// first that matches its exit code), then its own policy, then the pod's.
struct RestartSettings {
  RestartPolicy policy = RestartPolicy::kAlways;
  bool container_rules = false;         // gate ContainerRestartRules
  bool restart_all_containers = false;  // gate RestartAllContainersOnContainerExits
};
RestartSettings ReadRestartSettings(api::Value pod, bool container_rules,
                                    bool restart_all_containers);

// Whether a container that ended is to be started again.
bool ShouldRestart(const ContainerFacts& container, const RestartSettings& settings);

// Whether the end of the container restarts all of the pod (action RestartAllContainers, KEP-5532).
bool RestartsAll(const ContainerFacts& container, const RestartSettings& settings);

// Whether the pod has a rule that may restart all of its containers.
bool MayRestartAll(api::Value pod);

// Tells the containers of the present run of the pod from those of runs that are over. A run ends
// when a container of it ends by a rule that restarts all. That is found in what the runtime keeps,
// so that an agent that starts in the middle goes on with it.
void MarkRuns(PodFacts& facts, const RestartSettings& settings);

// What the pod needs next.
struct PodPlan {
  // Has run to its end, and how.
  bool finished = false;
  // Containers to start now or as soon as their backoff allows, in order.
  std::vector<const ContainerFacts*> start;
  // Initialization is over: every init container has done its part.
  bool initialized = false;
};
PodPlan PlanPod(const PodFacts& facts, const RestartSettings& settings);

}  // namespace drakkar::node
