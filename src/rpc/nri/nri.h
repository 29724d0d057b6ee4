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

// The Node Resource Interface (v1alpha1) in plain types, as far as pods go: a container runtime tells
// plugins of its sandboxes and waits for them.

// Logical connections over the socket.
constexpr std::uint32_t kNriPluginConnection = 1;   // the plugin serves
constexpr std::uint32_t kNriRuntimeConnection = 2;  // the runtime serves

// What other runtimes give a plugin to register, and to answer a call.
constexpr Duration kNriRegistrationTimeout = std::chrono::seconds(5);
constexpr Duration kNriRequestTimeout = std::chrono::seconds(2);

enum class NriEvent { kRunPodSandbox = 1, kStopPodSandbox = 2, kRemovePodSandbox = 3 };
constexpr std::int32_t NriEventBit(NriEvent event) {
  return 1 << (static_cast<int>(event) - 1);
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

using NriDone = absl::AnyInvocable<void(Result<void>)>;

// A plugin's name has letters, digits and _ . + -; its index is two digits and says whose turn it is.
Result<void> CheckNriPluginName(std::string_view name);
Result<void> CheckNriPluginIndex(std::string_view index);

}  // namespace drakkar::rpc
