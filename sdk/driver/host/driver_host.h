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

// Everything that a driver's process needs around a Driver, made from its flags: loop, client,
// transport, metrics. Created and used on the thread that runs the loop.
class DriverHost {
 public:
  // Reads the kubeconfig or the pod's service account, and sets up logging.
  static Result<std::unique_ptr<DriverHost>> Create(const DriverFlags& flags);
  ~DriverHost();
  DriverHost(const DriverHost&) = delete;
  DriverHost& operator=(const DriverHost&) = delete;

  UvLoop& loop() { return loop_; }
  client::Client& client() { return *client_; }
  rpc::Transport& transport() { return *transport_; }
  Metrics& metrics() { return metrics_; }
  const DriverFlags& flags() const { return flags_; }

  // Driver options according to the flags; adjust them as needed.
  DriverOptions Options(Plugin& plugin);

  // Runs until SIGINT, SIGTERM or End, and returns the exit code. Calls `start` on the loop, which
  // returns the driver, or null for a process without one; an error ends the process with 1. Serves
  // --http-endpoint meanwhile.
  using StartFunction = std::function<Result<std::unique_ptr<Driver>>(DriverHost& host)>;
  int Run(const StartFunction& start);
  // Ends Run, with exit code 1 if there is an error. Call it on the loop.
  void End(const Error* error = nullptr);

  // The running driver; null before `start` and after Run.
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

// The whole main function of a simple driver: runs `plugin` according to the flags. Calls
// `on_started` on the loop once the driver has started; it usually publishes the devices.
int RunDriver(const DriverFlags& flags, Plugin& plugin,
              std::function<Result<void>(Driver& driver)> on_started);

// Sets up logging according to the flags and finds the API server from the kubeconfig or the pod's
// service account. Every driver process starts with it.
Result<client::ClusterAccess> BeginDriverProcess(const DriverFlags& flags);

// The environment that a driver runs in.
struct DriverSurroundings {
  EventLoop& loop;
  client::Client& client;
  rpc::Transport& transport;
  Metrics& metrics;
};
// Driver options according to the flags.
DriverOptions MakeDriverOptions(const DriverFlags& flags, const DriverSurroundings& surroundings,
                                Plugin& plugin);

// Access to the API server from inside a pod: the service account's token and CA, and
// KUBERNETES_SERVICE_HOST and _PORT.
Result<client::ClusterAccess> LoadInClusterAccess(
    FileSystem& files, const std::function<const char*(const char*)>& environment,
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace drakkar::driver
