#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "api/tree/value.h"
#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "client/client.h"
#include "rpc/health/health.h"
#include "rpc/registration/registration.h"
#include "rpc/transport/transport.h"
#include "sdk/driver/metadata/metadata_updater.h"
#include "sdk/driver/plugin.h"
#include "sdk/driver/slices/resources.h"
#include "sdk/driver/slices/slice_controller.h"
#include "sdk/driver/status/claim_status.h"

namespace drakkar {
class Metrics;
}  // namespace drakkar

namespace drakkar::driver {

class ClaimLeftovers;
class HealthHub;
class MetadataStore;
class NodeService;
class Registrar;

struct UnhealthyTaint {
  std::string key;  // "gpu.example.com/unhealthy"; if empty, devices are not tainted
  std::string effect = "NoSchedule";
};

struct DriverOptions {
  EventLoop& loop;
  Random& random;
  FileSystem& files;
  client::Client& client;
  // MakeGrpcTransport(loop), or an in-memory one in a simulation. Unused without services.
  rpc::Transport& transport;
  Plugin& plugin;

  std::string driver_name;  // a DNS subdomain of up to 63 bytes
  // Required to publish devices of a node. If empty, the driver runs without a node, and its pools
  // say which nodes can reach them.
  std::string node_name;
  std::string node_uid;  // looked up if empty
  // Only for drivers without a node, see SliceController.
  std::string pool_name;
  api::TreePtr owner;

  // Where the node looks for registration sockets, and the driver's own directory, which defaults
  // to plugins/<driver> next to the registry. Created if they do not exist.
  std::string registry_directory = "/var/lib/kubelet/plugins_registry";
  std::string plugin_directory;
  // Socket names; the defaults are those of Kubernetes.
  std::string registrar_socket;
  std::string plugin_socket;
  // UID of the driver's pod. If set, a new instance may start before the old one ends: socket names
  // contain the UID, and a lock file, which needs a real file system, serializes the calls of both
  // instances.
  std::string rolling_update_uid;

  bool registration_service = true;
  bool dra_service = true;
  bool health_service = false;  // required for ReportHealth
  bool dra_v1 = true;
  bool dra_v1beta1 = true;
  // If true, the plugin handles one call at a time. If false, only calls for the same claim are
  // serialized, so that a slow one does not delay other pods.
  bool serialize = false;

  // If the key is set, a device that is reported unhealthy gets this taint in its slice until it is
  // reported otherwise. Requires health_service.
  UnhealthyTaint unhealthy_taint;
  Metrics* metrics = nullptr;  // no metrics if null
  // The driver's flag --enable-device-metadata (KEP-5304). If off, no files and no CDI specs are
  // written; those written while it was on are removed when their claims are unprepared.
  bool device_metadata = false;
  std::string cdi_directory = "/var/run/cdi";
  // Versions of the format in each file, newest first, and which rules apply where the KEP and
  // Kubernetes differ.
  std::vector<std::string> metadata_versions = {std::string(metadata::kV1alpha1)};
  metadata::Dialect metadata_dialect = metadata::Dialect::kKep;
};

// A DRA driver: registers with the node, handles its calls through the plugin, publishes devices,
// and writes their metadata for containers.
//
// Works under any node that speaks the plugin registration and DRA protocols. Loop-bound, like the
// plugin's callbacks. Everything that the options refer to must outlive it.
class Driver final : public MetadataUpdater {
 public:
  // Opens the service socket, then the registration socket. On failure nothing is left open.
  static Result<std::unique_ptr<Driver>> Start(DriverOptions options);
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Makes `resources` the complete published state of this driver on this node. Returns once the
  // state is accepted; later failures reach HandleError. Calling it again replaces the state.
  Result<void> PublishResources(const DriverResources& resources);

  // Reports changes; devices that are not listed keep their state. The SDK repeats reports to the
  // node before they expire.
  Result<void> ReportHealth(rpc::HealthReport report);
  // Stops repeating the health of the device and removes its taint.
  void ForgetHealth(const std::string& pool_name, const std::string& device_name);

  // Sets data, conditions and network data of allocated devices in the claim's status, see
  // ClaimStatusWriter. `done` is not called after Stop.
  void ApplyClaimStatus(rpc::ClaimReference claim, std::vector<AllocatedDeviceStatus> devices,
                        ClaimStatusWriter::Done done);

  Result<void> UpdateRequestMetadata(const RequestReference& request,
                                     const std::vector<PreparedDevice>& devices) override;
  // The requests that have metadata files, written by this or an earlier run of the driver.
  Result<std::vector<PreparedRequest>> PreparedRequests();

  // For drivers that keep their own state for prepared claims; call it at start. Calls `remove` for
  // each of `claims` that is gone, replaced, deallocated or no longer reserved, between the node's
  // calls. Never calls it for a claim that is prepared in the meantime. If the server cannot be
  // reached, retries later. Requires the DRA service.
  using RemoveLeftover =
      std::function<void(const rpc::ClaimReference& claim, const std::string& why)>;
  void RemoveLeftovers(const std::vector<rpc::ClaimReference>& claims,
                       const RemoveLeftover& remove);

  // The node's last response; none before its first call.
  std::optional<rpc::RegistrationStatus> registration_status() const;
  const std::string& registrar_socket_path() const { return registrar_path_; }
  const std::string& plugin_socket_path() const { return plugin_path_; }
  // Ok once a node has registered the driver and its devices are published; otherwise the error
  // says what the driver is waiting for.
  Result<void> CheckReady() const;
  // Updates the gauges before metrics are read.
  void UpdateMetrics();
  // Null before the first PublishResources.
  const SliceController* slices() const { return slices_.get(); }

  // Closes the service, then the registration, then stops publishing; slices stay on the server.
  // Idempotent; the plugin is not called afterwards.
  void Stop();

 private:
  explicit Driver(DriverOptions options);
  Result<void> Open();
  Result<void> OpenMetadata();
  void CleanMetadata();
  std::vector<std::string> AdvertisedServices() const;
  void Report(const Error& error, bool recoverable);
  Result<void> PublishWithTaints();
  void PublishTaintsSoon();
  Result<void> SendResources(const DriverResources& resources);

  DriverOptions options_;
  std::string registrar_path_;
  std::string plugin_path_;
  std::unique_ptr<MetadataStore> metadata_;
  std::unique_ptr<NodeService> node_service_;
  std::unique_ptr<ClaimLeftovers> leftovers_;
  std::unique_ptr<HealthHub> health_;
  std::unique_ptr<Registrar> registrar_;
  // Destroyed before the services they expose.
  std::unique_ptr<rpc::Server> plugin_server_;
  std::unique_ptr<rpc::Server> registrar_server_;
  std::unique_ptr<SliceController> slices_;
  std::unique_ptr<ClaimStatusWriter> claim_status_;
  DriverResources published_;  // the resources without taints; only with unhealthy_taint
  bool taints_are_due_ = false;
  bool stopped_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::driver
