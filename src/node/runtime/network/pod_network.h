#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/runtime/runtime.h"

namespace drakkar::node {

// The network of pods that do not use the host's.
enum class PodNetworkMode {
  kOwn,       // each pod has a network namespace of its own
  kHost,      // pods share the host's network
  kNotReady,  // such pods cannot start
};

struct PodNetworkState {
  PodNetworkMode mode = PodNetworkMode::kNotReady;
  std::string message;  // why, unless pods have their own

  bool operator==(const PodNetworkState&) const = default;
};

// Worded as by a kubelet, for conditions and events.
inline std::string DescribeNotReady(const PodNetworkState& state) {
  return "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
         "message:Network plugin returns error: " +
         state.message;
}

struct PodNetworkRequest {
  std::string sandbox_id;
  std::string namespace_path;  // of the pod's network namespace
  std::string pod_name;
  std::string pod_namespace;
  std::string pod_uid;
  std::vector<PortMapping> ports;
  Bandwidth bandwidth;
  std::optional<DnsConfig> dns;
  std::map<std::string, std::string> annotations;
};

// A sandbox that has a network namespace.
struct PodNetworkUser {
  std::string sandbox_id;
  std::string namespace_path;
};

// Connects the network namespaces of pods. Loop-bound; callbacks run once on the loop, never inside
// the call, and not at all after the network is destroyed.
class PodNetwork {
 public:
  virtual ~PodNetwork() = default;

  virtual PodNetworkState State() const = 0;
  // Sets the only listener; it runs after each change of State.
  virtual void OnStateChanged(std::function<void()> listener) = 0;

  // Returns the pod's addresses, at least one. After a failure nothing is left, or TearDown removes
  // the rest.
  virtual void SetUp(PodNetworkRequest request, RuntimeCallback<std::vector<std::string>> done) = 0;
  // May be called for a sandbox without a network, or whose namespace no longer exists.
  virtual void TearDown(const PodNetworkUser& user, RuntimeCallback<void> done) = 0;
  // After a restart: `users` are all existing sandboxes. Verifies their networks and tears down all
  // others. Errors are logged. Later calls of SetUp wait for it.
  virtual void Adopt(std::vector<PodNetworkUser> users) = 0;
};

}  // namespace drakkar::node
