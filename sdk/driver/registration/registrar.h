#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rpc/registration/registration.h"

namespace drakkar::driver {

// Identifies the driver to a node and receives the result of the registration. Lives on the
// server's loop.
class Registrar final : public rpc::RegistrationHandler {
 public:
  struct Options {
    std::string driver_name;
    std::string endpoint;               // path of the service socket
    std::vector<std::string> services;  // in advertised order
    std::function<void()> on_registered;
    // Called when the node rejects the driver. The node retries by itself.
    std::function<void(const Error& error)> on_refused;
  };
  explicit Registrar(Options options) : options_(std::move(options)) {}

  Result<rpc::PluginInfo> GetInfo() override;
  Result<void> NotifyRegistrationStatus(const rpc::RegistrationStatus& status) override;

  // The node's last response; none before its first call.
  const std::optional<rpc::RegistrationStatus>& status() const { return status_; }

 private:
  const Options options_;
  std::optional<rpc::RegistrationStatus> status_;
};

}  // namespace drakkar::driver
