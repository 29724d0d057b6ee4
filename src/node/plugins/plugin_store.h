#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/lifetime.h"
#include "rpc/dra/dra_client.h"
#include "rpc/registration/registration.h"

namespace drakkar::node {

// One registered instance of a driver, with a persistent connection. A call in flight holds the
// pointer, so deregistration does not lose its answer.
struct PluginInstance {
  std::string driver;
  std::string endpoint;
  rpc::DraVersion version = rpc::DraVersion::kV1;
  // Health services to try, in order: advertised ones newest first, then NodeHealth, which a plugin
  // may serve without advertising it.
  std::vector<rpc::HealthService> health_services;
  bool takes_announcements = false;  // accepts announcements of claims
  std::unique_ptr<rpc::DraPluginClient> client;
};
using PluginInstancePtr = std::shared_ptr<PluginInstance>;

// The registered drivers. Several instances of one driver may be registered during a rolling
// update; calls go to the newest connected one. Loop-bound.
class PluginStore {
 public:
  struct Callbacks {
    // An instance registered or deregistered. May be empty.
    std::function<void(const PluginInstancePtr&)> on_added;
    std::function<void(const PluginInstancePtr&)> on_removed;
    // A registered instance connected or reconnected; called before on_usable. May be empty.
    std::function<void(const PluginInstancePtr&)> on_connected;
    // A driver got its first connected instance, lost its last one, or registered without a
    // connection.
    std::function<void(const std::string& driver, bool usable)> on_usable;
  };
  static constexpr std::size_t kMaxInstances = 1'024;
  // A driver's service may restart while its registration socket stays (two processes), and only a
  // connection attempt notices. On a unix socket an attempt is cheap.
  static constexpr Duration kMaxReconnectBackoff = std::chrono::seconds(1);

  PluginStore(rpc::Transport& transport, Callbacks callbacks);
  ~PluginStore();

  // What NotifyRegistrationStatus reports on failure.
  static Result<void> Validate(const rpc::PluginInfo& info, const std::string& endpoint);
  Result<void> Register(const rpc::PluginInfo& info, const std::string& endpoint);
  void Deregister(const std::string& driver, const std::string& endpoint);

  // The newest connected instance, or else the newest one.
  Result<PluginInstancePtr> GetPlugin(const std::string& driver) const;
  bool IsUsable(const std::string& driver) const;
  std::vector<std::string> Drivers() const;
  const std::map<std::string, std::vector<PluginInstancePtr>>& instances() const {
    return drivers_;
  }

 private:
  rpc::Transport& transport_;
  Callbacks callbacks_;
  std::map<std::string, std::vector<PluginInstancePtr>> drivers_;  // in order of registration
  // Instances may outlive the store: a call in flight keeps them alive.
  Lifetime lifetime_;
};

}  // namespace drakkar::node
