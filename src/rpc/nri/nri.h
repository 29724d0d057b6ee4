#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::rpc {

// The Node Resource Interface (v1alpha1) in plain types: a container runtime notifies plugins of
// its sandboxes and containers and waits for their answers.

// Logical connections over the socket.
constexpr std::uint32_t kNriPluginConnection = 1;   // the plugin serves
constexpr std::uint32_t kNriRuntimeConnection = 2;  // the runtime serves

// The timeouts other runtimes use for a plugin's registration and for its answers.
constexpr Duration kNriRegistrationTimeout = std::chrono::seconds(5);
constexpr Duration kNriRequestTimeout = std::chrono::seconds(2);

enum class NriEvent {
  kRunPodSandbox = 1,
  kStopPodSandbox = 2,
  kRemovePodSandbox = 3,
  kCreateContainer = 4,
  kPostCreateContainer = 5,
  kStartContainer = 6,
  kPostStartContainer = 7,
  kUpdateContainer = 8,
  kPostUpdateContainer = 9,
  kStopContainer = 10,
  kRemoveContainer = 11,
  kUpdatePodSandbox = 12,
  kPostUpdatePodSandbox = 13,
  kValidateContainerAdjustment = 14,
};
constexpr int kLastNriEvent = 14;
constexpr std::int32_t NriEventBit(NriEvent event) {
  return 1 << (static_cast<int>(event) - 1);
}
constexpr bool IsPodEvent(NriEvent event) {
  return event <= NriEvent::kRemovePodSandbox || event == NriEvent::kUpdatePodSandbox ||
         event == NriEvent::kPostUpdatePodSandbox;
}
// "RunPodSandbox": the method, and the name in texts.
std::string_view NriEventName(NriEvent event);

struct NriDeviceRule {
  bool allow = false;
  std::string type;
  std::optional<std::int64_t> major;  // not set: all
  std::optional<std::int64_t> minor;
  std::string access;

  bool operator==(const NriDeviceRule&) const = default;
};

// Cgroup settings. What is not set or empty is not asked for.
struct NriResources {
  using Number = std::optional<std::int64_t>;

  Number memory_limit;
  Number memory_reservation;
  Number memory_swap;
  Number memory_kernel;
  Number memory_kernel_tcp;
  Number memory_swappiness;
  std::optional<bool> disable_oom_killer;
  std::optional<bool> use_hierarchy;
  Number cpu_shares;
  Number cpu_quota;
  Number cpu_period;
  Number realtime_runtime;
  Number realtime_period;
  std::string cpus;
  std::string mems;
  std::map<std::string, std::uint64_t> hugepage_limits;  // "2MB" -> bytes
  std::optional<std::string> blockio_class;
  std::optional<std::string> rdt_class;
  std::map<std::string, std::string> unified;
  std::vector<NriDeviceRule> devices;
  Number pids;

  bool empty() const { return *this == NriResources(); }
  bool operator==(const NriResources&) const = default;
};

// A type without a path stands for a new namespace.
struct NriNamespace {
  std::string type;
  std::string path;

  bool operator==(const NriNamespace&) const = default;
};

struct NriPodSandbox {
  std::string id;
  std::string name;
  std::string uid;
  std::string namespace_name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string runtime_handler;
  std::uint32_t pid = 0;
  std::vector<std::string> ips;
  std::map<std::string, std::string> linux_namespaces;  // "network" -> path
  std::string cgroup_parent;
  std::string cgroups_path;
  NriResources resources;      // of the sandbox's own process
  NriResources pod_resources;  // of all containers together
  NriResources pod_overhead;

  bool operator==(const NriPodSandbox&) const = default;
};

struct NriMount {
  std::string destination;
  std::string type;
  std::string source;
  std::vector<std::string> options;

  bool operator==(const NriMount&) const = default;
};

// `kind` as in the OCI specification: prestart, createRuntime, createContainer, startContainer,
// poststart, poststop.
struct NriHook {
  std::string kind;
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<std::int64_t> timeout_seconds;

  bool operator==(const NriHook&) const = default;
};
inline constexpr std::string_view kNriHookKinds[] = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

struct NriRlimit {
  std::string type;
  std::uint64_t hard = 0;
  std::uint64_t soft = 0;

  bool operator==(const NriRlimit&) const = default;
};

struct NriDevice {
  std::string path;
  std::string type;
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;

  bool operator==(const NriDevice&) const = default;
};

struct NriSeccompArgument {
  std::uint32_t index = 0;
  std::uint64_t value = 0;
  std::uint64_t value_two = 0;
  std::string op;

  bool operator==(const NriSeccompArgument&) const = default;
};
struct NriSyscalls {
  std::vector<std::string> names;
  std::string action;
  std::optional<std::uint32_t> errno_ret;
  std::vector<NriSeccompArgument> args;

  bool operator==(const NriSyscalls&) const = default;
};
struct NriSeccomp {
  std::string default_action;
  std::optional<std::uint32_t> default_errno;
  std::vector<std::string> architectures;
  std::vector<std::string> flags;
  std::string listener_path;
  std::string listener_metadata;
  std::vector<NriSyscalls> syscalls;

  bool operator==(const NriSeccomp&) const = default;
};

enum class NriContainerState {
  kUnknown = 0,
  kCreated = 1,
  kPaused = 2,
  kRunning = 3,
  kStopped = 4
};
enum class NriSeccompProfile { kRuntimeDefault = 0, kUnconfined = 1, kLocalhost = 2 };

struct NriContainer {
  std::string id;
  std::string pod_sandbox_id;
  std::string name;
  NriContainerState state = NriContainerState::kUnknown;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> args;
  std::vector<std::string> env;  // "NAME=value"
  std::vector<NriMount> mounts;
  std::vector<NriHook> hooks;
  std::vector<NriRlimit> rlimits;
  std::vector<std::string> cdi_devices;
  std::vector<NriNamespace> namespaces;
  std::vector<NriDevice> devices;
  NriResources resources;
  std::optional<std::int64_t> oom_score_adj;
  std::string cgroups_path;
  std::optional<NriSeccompProfile> seccomp_profile;
  std::string seccomp_file;  // of kLocalhost
  std::map<std::string, std::string> sysctl;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> additional_gids;
  std::string image;
  std::string image_digest;
  std::uint32_t pid = 0;
  std::int64_t created_at = 0;  // nanoseconds since 1970
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::int32_t exit_code = 0;
  std::string status_reason;
  std::string status_message;

  bool operator==(const NriContainer&) const = default;
};

// A plugin's changes to a container that is about to be created. A name, key, path, type or
// destination that begins with '-' removes the existing entry.
struct NriContainerAdjustment {
  std::map<std::string, std::string> annotations;
  std::vector<NriMount> mounts;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<NriHook> hooks;
  std::vector<NriRlimit> rlimits;
  std::vector<std::string> cdi_devices;
  std::vector<std::string> args;  // a first empty one replaces those of another plugin
  std::vector<NriDevice> devices;
  NriResources resources;
  std::string cgroups_path;
  std::optional<std::int64_t> oom_score_adj;
  std::optional<NriSeccomp> seccomp;
  std::vector<NriNamespace> namespaces;
  std::map<std::string, std::string> sysctl;
  // Other fields that it changes, by name: "io_priority", "scheduler"...
  std::vector<std::string> unsupported;

  bool empty() const { return *this == NriContainerAdjustment(); }
  bool operator==(const NriContainerAdjustment&) const = default;
};

// A plugin's change to the cgroup of an existing container.
struct NriContainerUpdate {
  std::string container_id;
  NriResources resources;
  bool ignore_failure = false;

  bool operator==(const NriContainerUpdate&) const = default;
};

struct NriEviction {
  std::string container_id;
  std::string reason;

  bool operator==(const NriEviction&) const = default;
};

// A plugin's answer to a container event. Only kCreateContainer has an adjustment; evictions are
// possible for it and for kUpdateContainer, updates for kStopContainer too.
struct NriAnswer {
  NriContainerAdjustment adjustment;
  std::vector<NriContainerUpdate> updates;
  std::vector<NriEviction> evictions;

  bool operator==(const NriAnswer&) const = default;
};

// The fields that plugins own, with the protocol's numbers.
enum class NriField {
  kAnnotations = 1,
  kMounts = 2,
  kOciHooks = 3,
  kDevices = 4,
  kCdiDevices = 5,
  kEnv = 6,
  kArgs = 7,
  kMemLimit = 8,
  kMemReservation = 9,
  kMemSwapLimit = 10,
  kMemKernelLimit = 11,
  kMemTcpLimit = 12,
  kMemSwappiness = 13,
  kMemDisableOomKiller = 14,
  kMemUseHierarchy = 15,
  kCpuShares = 16,
  kCpuQuota = 17,
  kCpuPeriod = 18,
  kCpuRealtimeRuntime = 19,
  kCpuRealtimePeriod = 20,
  kCpusetCpus = 21,
  kCpusetMems = 22,
  kPidsLimit = 23,
  kHugepageLimits = 24,
  kBlockioClass = 25,
  kRdtClass = 26,
  kCgroupsUnified = 27,
  kCgroupsPath = 28,
  kOomScoreAdj = 29,
  kRlimits = 30,
  kSeccompPolicy = 32,
  kNamespace = 33,
  kSysctl = 34,
};

// Which plugin has set which field of a container. Fields with entries ("env") are compound: each
// entry has its own owner.
struct NriFieldOwners {
  std::map<NriField, std::string> simple;
  std::map<NriField, std::map<std::string, std::string>> compound;

  bool operator==(const NriFieldOwners&) const = default;
};

struct NriPluginInstance {
  std::string name;
  std::string index;

  bool operator==(const NriPluginInstance&) const = default;
};

// All changes of a container's creation, for plugins that may reject them.
struct NriValidation {
  NriPodSandbox pod;
  NriContainer container;  // before the changes
  NriContainerAdjustment adjustment;
  std::vector<NriContainerUpdate> updates;
  std::map<std::string, NriFieldOwners> owners;  // by container
  std::vector<NriPluginInstance> plugins;

  bool operator==(const NriValidation&) const = default;
};

using NriAnswered = absl::AnyInvocable<void(Result<NriAnswer>)>;

using NriDone = absl::AnyInvocable<void(Result<void>)>;

// A plugin's name has letters, digits and _ . + -; its index is two digits and orders the plugins.
Result<void> CheckNriPluginName(std::string_view name);
Result<void> CheckNriPluginIndex(std::string_view index);

}  // namespace drakkar::rpc
