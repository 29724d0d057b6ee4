#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sdk/driver/driver.h"
#include "sdk/driver/reference/claim_files.h"
#include "sdk/driver/reference/device_config.h"

namespace drakkar::driver {

// A complete driver for simulated accelerators (`drakkar driver`). It publishes them as one pool
// named after the node, and injects them into containers through CDI (see ClaimFiles). Health other
// than "Healthy" is reported to the node and optionally taints the device. With device metadata on,
// containers can read the attributes of their devices, and SetDevices updates running containers.
//
// State survives a restart. Files of claims that no longer exist are removed at start, and kept if
// the server cannot be reached. Loop-bound.
class ReferenceDriver final : private SynchronousPlugin {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    FileSystem& files;
    client::Client& client;
    rpc::Transport& transport;
    std::string node_name;
    std::string driver_name;  // if empty, the name in `devices`
    std::string registry_directory = "/var/lib/kubelet/plugins_registry";
    std::string plugin_directory;  // if empty, plugins/<driver> next to the registry
    std::string cdi_directory = "/var/run/cdi";
    std::string pod_uid;  // if not empty, enables rolling updates
    // Effect of the taint <driver>/unhealthy; if empty, unhealthy devices are not tainted.
    std::string unhealthy_taint = "NoSchedule";
    bool device_metadata = false;  // --enable-device-metadata
    std::vector<std::string> metadata_versions = {std::string(metadata::kV1alpha1)};
    metadata::Dialect metadata_dialect = metadata::Dialect::kKep;
    DeviceConfig devices;
    Metrics* metrics = nullptr;
    // Called when the driver no longer works and the process should exit. May be empty.
    std::function<void(const Error& error)> on_fatal;
  };

  explicit ReferenceDriver(Options options);
  ~ReferenceDriver() override;

  // Registers and publishes. Leaves nothing open on failure.
  Result<void> Start();
  // Idempotent. Slices and prepared claims stay.
  void Stop();

  // Publishes other devices instead. The driver's name does not change.
  Result<void> SetDevices(DeviceConfig devices);

  const std::string& driver_name() const { return options_.driver_name; }
  // Null before Start and after Stop.
  Driver* driver() { return driver_.get(); }

 private:
  Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object& claim) override;
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) override;
  void HandleError(const Error& error, bool recoverable) override;

  Result<void> Publish();
  DeviceMetadata Describe(const std::string& device_name) const;
  Result<void> UpdateMetadata(const ClaimFiles::Devices& before, bool was_deferred);
  void RemoveLeftovers();

  Options options_;
  ClaimFiles claims_;
  ClaimFiles::Devices devices_;  // by name
  std::unique_ptr<Driver> driver_;
};

}  // namespace drakkar::driver
