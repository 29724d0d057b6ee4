#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  return event <= NriEvent::kRemovePodSandbox;
}
// "RunPodSandbox": the method, and the name in texts.
std::string_view NriEventName(NriEvent event);

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

  bool operator==(const NriPodSandbox&) const = default;
};

struct NriMount {
  std::string destination;
  std::string type;
  std::string source;
  std::vector<std::string> options;

  bool operator==(const NriMount&) const = default;
};

enum class NriContainerState {
  kUnknown = 0,
  kCreated = 1,
  kPaused = 2,
  kRunning = 3,
  kStopped = 4
};

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
  std::uint32_t pid = 0;
  std::int64_t created_at = 0;  // nanoseconds since 1970
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::int32_t exit_code = 0;

  bool operator==(const NriContainer&) const = default;
};

// A plugin's changes to a container that is about to be created. A name, key or destination that
// begins with '-' removes the existing entry.
struct NriContainerAdjustment {
  std::map<std::string, std::string> annotations;
  std::vector<NriMount> mounts;
  std::vector<std::pair<std::string, std::string>> env;
  // Other fields it changes, by name: "hooks", "linux"...
  std::vector<std::string> unsupported;

  bool empty() const {
    return annotations.empty() && mounts.empty() && env.empty() && unsupported.empty();
  }
  bool operator==(const NriContainerAdjustment&) const = default;
};

using NriAdjusted = absl::AnyInvocable<void(Result<NriContainerAdjustment>)>;

using NriDone = absl::AnyInvocable<void(Result<void>)>;

// A plugin's name has letters, digits and _ . + -; its index is two digits and orders the plugins.
Result<void> CheckNriPluginName(std::string_view name);
Result<void> CheckNriPluginIndex(std::string_view index);

}  // namespace drakkar::rpc
