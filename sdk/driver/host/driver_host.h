#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "rpc/transport/transport.h"
#include "sdk/driver/driver.h"
#include "sdk/driver/host/driver_flags.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {

// Everything a driver's process needs around a Driver, made from its flags: loop, client,
// transport, metrics. Made and used on the thread that runs the loop.
class DriverHost {
 public:
  // Reads the kubeconfig, or the pod's service account. Sets logging up.
  static Result<std::unique_ptr<DriverHost>> Create(const DriverFlags& flags);
  ~DriverHost();
  DriverHost(const DriverHost&) = delete;
  DriverHost& operator=(const DriverHost&) = delete;

  UvLoop& loop() { return loop_; }
  client::Client& client() { return *client_; }
  rpc::Transport& transport() { return *transport_; }
  Metrics& metrics() { return metrics_; }
  const DriverFlags& flags() const { return flags_; }

  // The options of a driver as the flags have them; change what the driver wants otherwise.
  DriverOptions Options(Plugin& plugin);

  // Runs until SIGINT, SIGTERM or End. `start` is called on the loop and gives the driver, or null
  // for a process without one; an error ends the process with 1. The port of --http-endpoint is
  // open meanwhile. Returns the process's exit code.
  using StartFunction = std::function<Result<std::unique_ptr<Driver>>(DriverHost& host)>;
  int Run(const StartFunction& start);
  // Ends Run, with exit code 1 if there is an error. From the loop.
  void End(const Error* error = nullptr);

  // The running driver; null before `start` and after the end.
  Driver* driver() { return driver_.get(); }

 private:
  explicit DriverHost(DriverFlags flags);
  Result<void> OpenEndpoint();

  const DriverFlags flags_;
  UvLoop loop_;
  Metrics metrics_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<class DriverEndpoint> endpoint_;
  Result<void> health_;  // the error that ended the run
};

// The whole main function of a simple driver: runs `plugin` as the flags say. `on_started` is
// called on the loop once the driver is open, and usually publishes its devices.
int RunDriver(const DriverFlags& flags, Plugin& plugin,
              std::function<Result<void>(Driver& driver)> on_started);

// What every process of a driver begins with: sets logging up as the flags say and finds the API
// server, by the kubeconfig or by the pod's service account.
Result<client::ClusterAccess> BeginDriverProcess(const DriverFlags& flags);

// What a driver runs on.
struct DriverSurroundings {
  EventLoop& loop;
  client::Client& client;
  rpc::Transport& transport;
  Metrics& metrics;
};
// The options of a driver as the flags have them.
DriverOptions MakeDriverOptions(const DriverFlags& flags, const DriverSurroundings& surroundings,
                                Plugin& plugin);

// How a pod reaches the API server of its cluster: the service account's token and authority, and
// KUBERNETES_SERVICE_HOST and _PORT.
Result<client::ClusterAccess> LoadInClusterAccess(
    FileSystem& files, const std::function<const char*(const char*)>& environment,
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace drakkar::driver
