#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sdk/driver/driver.h"
#include "sdk/driver/reference/claim_files.h"
#include "sdk/driver/reference/device_config.h"

namespace drakkar::driver {

// A complete driver for accelerators that do not exist (`drakkar driver`): publishes them as one
// pool named after the node, and gives them to containers through CDI (see ClaimFiles). Health
// that is not "Healthy" is reported to the node and, as an option, taints the device. With device
// metadata on, containers are told the attributes of their devices; SetDevices tells those that run
// what changed.
//
// State survives a restart; files of claims that are gone meanwhile are removed at start, and kept
// where the server cannot be reached. Loop-bound.
class ReferenceDriver final : private SynchronousPlugin {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    FileSystem& files;
    client::Client& client;
    rpc::Transport& transport;
    std::string node_name;
    std::string driver_name;  // empty: the one of `devices`
    std::string registry_directory = "/var/lib/kubelet/plugins_registry";
    std::string plugin_directory;  // empty: plugins/<driver> beside the registry
    std::string cdi_directory = "/var/run/cdi";
    std::string pod_uid;  // not empty: rolling updates
    // The effect of the taint <driver>/unhealthy; empty: unhealthy devices are not tainted.
    std::string unhealthy_taint = "NoSchedule";
    bool device_metadata = false;  // --enable-device-metadata
    std::vector<std::string> metadata_versions = {std::string(metadata::kV1alpha1)};
    metadata::Dialect metadata_dialect = metadata::Dialect::kKep;
    DeviceConfig devices;
    Metrics* metrics = nullptr;
    // The driver does not work any more; the process should end. May be empty.
    std::function<void(const Error& error)> on_fatal;
  };

  explicit ReferenceDriver(Options options);
  ~ReferenceDriver() override;

  // Registers and publishes. On failure nothing is left open.
  Result<void> Start();
  // Idempotent. Slices and prepared claims stay.
  void Stop();

  // Publishes other devices instead. The name of the driver stays.
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
