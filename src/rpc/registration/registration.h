#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::rpc {

class Transport;

// Plugin registration v1: the plugin serves, the node calls.

inline constexpr char kDraPluginType[] = "DRAPlugin";

struct PluginInfo {
  std::string type;      // "DRAPlugin", "DevicePlugin" or "CSIPlugin"
  std::string name;      // the driver
  std::string endpoint;  // socket of the service; empty: the registration socket itself
  std::vector<std::string> supported_versions;  // services, such as "v1.DRAPlugin"

  bool operator==(const PluginInfo&) const = default;
};

struct RegistrationStatus {
  bool plugin_registered = false;
  std::string error;

  bool operator==(const RegistrationStatus&) const = default;
};

// The node's side. Each call opens a connection of its own and closes it afterwards. Callbacks run
// on the loop, once, never inside the call; none runs after the client is destroyed.
class RegistrationClient {
 public:
  virtual ~RegistrationClient() = default;
  virtual void GetInfo(const std::string& socket_path, Duration timeout,
                       absl::AnyInvocable<void(Result<PluginInfo>)> done) = 0;
  virtual void NotifyRegistrationStatus(const std::string& socket_path,
                                        const RegistrationStatus& status, Duration timeout,
                                        absl::AnyInvocable<void(Result<void>)> done) = 0;
};

std::unique_ptr<RegistrationClient> MakeRegistrationClient(Transport& transport);

// The plugin's side. Runs on the server's loop.
class RegistrationHandler {
 public:
  virtual ~RegistrationHandler() = default;
  virtual Result<PluginInfo> GetInfo() = 0;
  // An error is passed to the node. Otherwise the server answers a status with plugin_registered
  // false with `failed registration process: <error>`.
  virtual Result<void> NotifyRegistrationStatus(const RegistrationStatus& status) = 0;
};

// What the service answers to a notification; shared by every server of the handler.
Result<void> AnswerNotification(RegistrationHandler& handler, const RegistrationStatus& status);

}  // namespace drakkar::rpc
