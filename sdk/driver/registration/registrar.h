#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rpc/registration/registration.h"

namespace drakkar::driver {

// Tells a node what the driver is, and hears whether the node took it. Lives on the server's loop.
class Registrar final : public rpc::RegistrationHandler {
 public:
  struct Options {
    std::string driver_name;
    std::string endpoint;               // path of the service socket
    std::vector<std::string> services;  // in the order in which they are advertised
    std::function<void()> on_registered;
    // The node refused the driver; it tries again by itself.
    std::function<void(const Error& error)> on_refused;
  };
  explicit Registrar(Options options) : options_(std::move(options)) {}

  Result<rpc::PluginInfo> GetInfo() override;
  Result<void> NotifyRegistrationStatus(const rpc::RegistrationStatus& status) override;

  // What the node said last; nothing if it has not called yet.
  const std::optional<rpc::RegistrationStatus>& status() const { return status_; }

 private:
  const Options options_;
  std::optional<rpc::RegistrationStatus> status_;
};

}  // namespace drakkar::driver
