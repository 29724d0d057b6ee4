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

// One registered instance of a driver: a persistent connection. Calls keep it alive by the pointer,
// so that deregistration in the middle of one loses no answer.
struct PluginInstance {
  std::string driver;
  std::string endpoint;
  rpc::DraVersion version = rpc::DraVersion::kV1;
  // Services to try for health, in order: advertised ones newest first, then NodeHealth, which a
  // plugin may serve without advertising it.
  std::vector<rpc::HealthService> health_services;
  bool takes_announcements = false;  // of claims that are about to be prepared
  std::unique_ptr<rpc::DraPluginClient> client;
};
using PluginInstancePtr = std::shared_ptr<PluginInstance>;

// The table of live drivers. Several instances of one driver may be registered (a rolling update);
// calls go to the newest that is connected. Loop-bound.
class PluginStore {
 public:
  struct Callbacks {
    // An instance registered or went. May be empty.
    std::function<void(const PluginInstancePtr&)> on_added;
    std::function<void(const PluginInstancePtr&)> on_removed;
    // A registered instance is connected, for the first time or again; before on_usable. May be
    // empty.
    std::function<void(const PluginInstancePtr&)> on_connected;
    // A driver got its first connected instance, or lost its last one, or registered without.
    std::function<void(const std::string& driver, bool usable)> on_usable;
  };
  static constexpr std::size_t kMaxInstances = 1'024;
  // A service may come back behind a registration that stayed (two processes), so nothing but the
  // next attempt to connect finds it. An attempt costs next to nothing on a unix socket.
  static constexpr Duration kMaxReconnectBackoff = std::chrono::seconds(1);

  PluginStore(rpc::Transport& transport, Callbacks callbacks);
  ~PluginStore();

  // What NotifyRegistrationStatus reports on failure.
  static Result<void> Validate(const rpc::PluginInfo& info, const std::string& endpoint);
  Result<void> Register(const rpc::PluginInfo& info, const std::string& endpoint);
  void Deregister(const std::string& driver, const std::string& endpoint);

  // The newest connected instance, else the newest.
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
  // An instance may outlive the store: a call under way keeps it.
  Lifetime lifetime_;
};

}  // namespace drakkar::node
