#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "node/runtime/runtime.h"

namespace drakkar::node::cri {

// The messages of CRI v1, converted between the types of the runtime interface and bytes. No I/O. A
// runtime's answers are checked, not trusted: strings that are ids or paths stay strings, and JSON
// in `info` is optional.

inline constexpr char kVersion[] = "/runtime.v1.RuntimeService/Version";
inline constexpr char kStatus[] = "/runtime.v1.RuntimeService/Status";
inline constexpr char kRuntimeConfig[] = "/runtime.v1.RuntimeService/RuntimeConfig";
inline constexpr char kRunPodSandbox[] = "/runtime.v1.RuntimeService/RunPodSandbox";
inline constexpr char kStopPodSandbox[] = "/runtime.v1.RuntimeService/StopPodSandbox";
inline constexpr char kRemovePodSandbox[] = "/runtime.v1.RuntimeService/RemovePodSandbox";
inline constexpr char kPodSandboxStatus[] = "/runtime.v1.RuntimeService/PodSandboxStatus";
inline constexpr char kListPodSandbox[] = "/runtime.v1.RuntimeService/ListPodSandbox";
inline constexpr char kCreateContainer[] = "/runtime.v1.RuntimeService/CreateContainer";
inline constexpr char kStartContainer[] = "/runtime.v1.RuntimeService/StartContainer";
inline constexpr char kStopContainer[] = "/runtime.v1.RuntimeService/StopContainer";
inline constexpr char kRemoveContainer[] = "/runtime.v1.RuntimeService/RemoveContainer";
inline constexpr char kListContainers[] = "/runtime.v1.RuntimeService/ListContainers";
inline constexpr char kContainerStatus[] = "/runtime.v1.RuntimeService/ContainerStatus";
inline constexpr char kUpdateResources[] = "/runtime.v1.RuntimeService/UpdateContainerResources";
inline constexpr char kReopenLog[] = "/runtime.v1.RuntimeService/ReopenContainerLog";
inline constexpr char kExecSync[] = "/runtime.v1.RuntimeService/ExecSync";
inline constexpr char kExec[] = "/runtime.v1.RuntimeService/Exec";
inline constexpr char kAttach[] = "/runtime.v1.RuntimeService/Attach";
inline constexpr char kPortForward[] = "/runtime.v1.RuntimeService/PortForward";
inline constexpr char kEvents[] = "/runtime.v1.RuntimeService/GetContainerEvents";
inline constexpr char kListImages[] = "/runtime.v1.ImageService/ListImages";
inline constexpr char kPullImage[] = "/runtime.v1.ImageService/PullImage";
inline constexpr char kRemoveImage[] = "/runtime.v1.ImageService/RemoveImage";

// Sandboxes without this label belong to somebody else.
inline constexpr char kPodUidLabel[] = "io.kubernetes.pod.uid";

struct Version {
  std::string runtime_name;     // "containerd"
  std::string runtime_version;  // "v2.1.5"
};
std::string EncodeVersionRequest();
Result<Version> DecodeVersion(const std::string& bytes);

// What the runtime reports about itself.
struct RuntimeStatus {
  std::string not_ready;  // why the runtime or its network is not ready; empty: it is
  std::vector<std::string> cdi_directories;  // where it looks for CDI specs; empty: no CDI
  std::optional<bool> systemd_cgroups;       // as its configuration says, if it shows one
  features::RuntimeFeatures features;
  bool has_groups_policy = false;
  std::optional<std::vector<RuntimeHandler>> handlers;  // not set: it does not say
};
std::string EncodeStatusRequest();
Result<RuntimeStatus> DecodeStatus(const std::string& bytes, const Version& version);
Result<bool> DecodeUsesSystemdCgroups(const std::string& bytes);  // of RuntimeConfig

// A sandbox and what is needed to create containers in it, as opaque bytes. These travel in an
// annotation, so that an agent finds them after its restart.
struct Sandbox {
  PodSandbox sandbox;
  std::string config;  // empty: created by another agent
};
struct SandboxRequest {
  std::string message;  // RunPodSandboxRequest
  std::string config;
};
SandboxRequest EncodeRunPodSandbox(const PodSandboxConfig& config);
// The cgroup that the containers of such a sandbox are in.
std::string CgroupParentOf(const std::string& config);
std::string LogDirectoryOf(const std::string& config);
Result<std::string> DecodeRunPodSandbox(const std::string& bytes);
std::string EncodeSandboxId(const std::string& id);  // of Stop and Remove
std::string EncodePodSandboxStatusRequest(const std::string& id);
Result<Sandbox> DecodePodSandboxStatus(const std::string& bytes);
// Without addresses and namespaces.
Result<std::vector<Sandbox>> DecodeListPodSandbox(const std::string& bytes);

struct CreateInput {
  const std::string& sandbox_id;
  const std::string& sandbox_config;
  const ContainerConfig& config;
  const std::string& image_id;
  const std::string& process_namespace_of;  // a container's id; empty: its own
};
// Fails if the configuration contains something that CRI cannot express, and names it.
Result<std::string> EncodeCreateContainer(const CreateInput& input);
Result<std::string> DecodeCreateContainer(const std::string& bytes);
std::string EncodeContainerId(const std::string& id);  // of Start, Remove and ReopenLog
std::string EncodeStopContainer(const std::string& id, std::int64_t timeout_seconds);
std::string EncodeContainerStatusRequest(const std::string& id);
Result<ContainerStatus> DecodeContainerStatus(const std::string& bytes);
// Only id, sandbox, name, attempt, state, labels and annotations.
Result<std::vector<ContainerStatus>> DecodeListContainers(const std::string& bytes);
std::string EncodeUpdateResources(const std::string& id, const ResourceUpdate& update);

std::string EncodeExecSync(const std::string& id, const std::vector<std::string>& command,
                           std::int64_t timeout_seconds);
Result<ExecResult> DecodeExecSync(const std::string& bytes, std::size_t max_output);
std::string EncodeExec(const std::string& id, const std::vector<std::string>& command,
                       const StreamOptions& options);
std::string EncodeAttach(const std::string& id, const StreamOptions& options);
std::string EncodePortForward(const std::string& sandbox_id, std::uint16_t port);
Result<std::string> DecodeStreamUrl(const std::string& bytes);  // of Exec, Attach, PortForward

struct ContainerEvent {
  std::string container_id;
  std::string sandbox_id;  // empty: not said
  bool deleted = false;
};
Result<ContainerEvent> DecodeEvent(const std::string& bytes);

struct CriImage {
  Image image;
  bool pulled = false;  // a registry's digest is known
};
Result<std::vector<CriImage>> DecodeListImages(const std::string& bytes);
std::string EncodePullImage(const std::string& image, const RegistryCredential* credential);
std::string EncodeRemoveImage(const std::string& id);
Result<std::string> DecodePullImage(const std::string& bytes);  // the image's reference

}  // namespace drakkar::node::cri
