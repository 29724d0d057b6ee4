#include "sdk/driver/reference/reference_driver.h"

#include <utility>

#include "base/text/text.h"
#include "cdi/names.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("reference-driver");

ReferenceDriver::Options WithDefaults(ReferenceDriver::Options options) {
  if (options.driver_name.empty()) options.driver_name = options.devices.driver_name;
  if (options.plugin_directory.empty()) {
    options.plugin_directory = JoinPath(
        JoinPath(DirectoryName(options.registry_directory), "plugins"), options.driver_name);
  }
  return options;
}

UnhealthyTaint TaintOf(const ReferenceDriver::Options& options) {
  if (options.unhealthy_taint.empty()) return {};
  return {options.driver_name + "/unhealthy", options.unhealthy_taint};
}

ClaimFiles::Devices ByName(const DeviceConfig& config) {
  ClaimFiles::Devices devices;
  for (const SimulatedDevice& device : config.devices) {
    devices.emplace(device.device.name, device);
  }
  return devices;
}

}  // namespace

ReferenceDriver::ReferenceDriver(Options options)
    : options_(WithDefaults(std::move(options))),
      claims_({.files = options_.files,
               .driver_name = options_.driver_name,
               .directory = options_.plugin_directory,
               .cdi_directory = options_.cdi_directory}),
      devices_(ByName(options_.devices)) {}

ReferenceDriver::~ReferenceDriver() {
  Stop();
}

Result<void> ReferenceDriver::Start() {
  if (options_.node_name.empty()) return InvalidArgument("node_name must be set");
  if (auto vendor = cdi::ValidateVendor(options_.driver_name); !vendor.ok()) {
    return std::move(vendor).error().Prefixed("driver name as a CDI vendor");
  }
  ASSIGN_OR_RETURN(driver_, Driver::Start({.loop = options_.loop,
                                           .random = options_.random,
                                           .files = options_.files,
                                           .client = options_.client,
                                           .transport = options_.transport,
                                           .plugin = *this,
                                           .driver_name = options_.driver_name,
                                           .node_name = options_.node_name,
                                           .registry_directory = options_.registry_directory,
                                           .plugin_directory = options_.plugin_directory,
                                           .rolling_update_uid = options_.pod_uid,
                                           .health_service = true,
                                           .unhealthy_taint = TaintOf(options_),
                                           .metrics = options_.metrics,
                                           .device_metadata = options_.device_metadata,
                                           .cdi_directory = options_.cdi_directory,
                                           .metadata_versions = options_.metadata_versions,
                                           .metadata_dialect = options_.metadata_dialect}));
  if (auto published = Publish(); !published.ok()) {
    Stop();
    return published;
  }
  RemoveLeftovers();
  kLog.Info("started", {{"driver", options_.driver_name},
                        {"node", options_.node_name},
                        {"devices", devices_.size()},
                        {"socket", driver_->plugin_socket_path()}});
  return Ok();
}

void ReferenceDriver::Stop() {
  driver_.reset();
}

Result<void> ReferenceDriver::SetDevices(DeviceConfig devices) {
  const ClaimFiles::Devices before = std::exchange(devices_, ByName(devices));
  const bool was_deferred = options_.devices.defer_metadata;
  options_.devices = std::move(devices);
  if (driver_ == nullptr) return Ok();
  for (const auto& [name, device] : before) {
    if (!devices_.contains(name)) driver_->ForgetHealth(options_.node_name, name);
  }
  RETURN_IF_ERROR(Publish());
  return UpdateMetadata(before, was_deferred);
}

DeviceMetadata ReferenceDriver::Describe(const std::string& device_name) const {
  DeviceMetadata metadata;
  const auto found = devices_.find(device_name);
  if (found != devices_.end()) metadata.attributes = found->second.device.attributes;
  return metadata;
}

Result<void> ReferenceDriver::UpdateMetadata(const ClaimFiles::Devices& before, bool was_deferred) {
  if (!options_.device_metadata || options_.devices.defer_metadata) return Ok();
  ASSIGN_OR_RETURN(std::vector<PreparedRequest> requests, driver_->PreparedRequests());
  for (PreparedRequest& prepared : requests) {
    bool changed = was_deferred;
    for (PreparedDevice& device : prepared.devices) {
      device.metadata = Describe(device.device_name);
      const auto known = before.find(device.device_name);
      changed = changed || known == before.end() ||
                known->second.device.attributes != device.metadata->attributes;
    }
    if (!changed) continue;
    RETURN_IF_ERROR(driver_->UpdateRequestMetadata(prepared.request, prepared.devices));
  }
  return Ok();
}

Result<void> ReferenceDriver::Publish() {
  Slice slice;
  slice.skip_node_operations = options_.devices.skip_node_operations;
  rpc::HealthReport health;
  for (const SimulatedDevice& simulated : options_.devices.devices) {
    Device device = simulated.device;
    health.push_back({.pool_name = options_.node_name,
                      .device_name = device.name,
                      .health = rpc::ParseDeviceHealthState(simulated.health),
                      .message = simulated.health_message});
    slice.devices.push_back(std::move(device));
  }
  DriverResources resources;
  resources.pools[options_.node_name].slices.push_back(std::move(slice));
  // Report health first, so that unhealthy devices are published with their taint from the start.
  RETURN_IF_ERROR(driver_->ReportHealth(std::move(health)));
  return driver_->PublishResources(resources);
}

void ReferenceDriver::RemoveLeftovers() {
  if (auto removed = claims_.RemoveOldDevices(devices_); !removed.ok()) {
    HandleError(removed.error().Prefixed("remove directories of removed devices"), true);
  }
  auto prepared = claims_.Prepared();
  if (!prepared.ok()) return HandleError(prepared.error().Prefixed("list prepared claims"), true);
  const auto remove = [this](const rpc::ClaimReference& claim, const std::string& why) {
    kLog.Info("removing leftovers of a claim",
              {{"claim", StrCat(claim.namespace_name, "/", claim.name)},
               {"uid", claim.uid},
               {"reason", why}});
    if (auto removed = claims_.Unprepare(claim.uid); !removed.ok()) {
      HandleError(removed.error().Prefixed("remove leftovers of claim " + claim.uid), true);
    }
  };
  std::vector<rpc::ClaimReference> known;
  for (const rpc::ClaimReference& claim : *prepared) {
    if (claim.name.empty()) {
      remove(claim, "no record");
    } else {
      known.push_back(claim);
    }
  }
  driver_->RemoveLeftovers(known, remove);
}

Result<std::vector<PreparedDevice>> ReferenceDriver::PrepareResourceClaim(
    const api::Object& claim) {
  auto devices = claims_.Prepare(claim, options_.node_name, devices_);
  if (devices.ok()) {
    if (!options_.devices.defer_metadata) {
      for (PreparedDevice& device : *devices) device.metadata = Describe(device.device_name);
    }
    kLog.Info("prepared", {{"claim", claim.qualified_name()}, {"devices", devices->size()}});
  } else {
    kLog.Warning("prepare failed",
                 {{"claim", claim.qualified_name()}, {"error", devices.error().message}});
  }
  return devices;
}

Result<void> ReferenceDriver::UnprepareResourceClaim(const rpc::ClaimReference& claim) {
  RETURN_IF_ERROR(claims_.Unprepare(claim.uid));
  kLog.Info("unprepared", {{"claim", StrCat(claim.namespace_name, "/", claim.name)}});
  return Ok();
}

void ReferenceDriver::HandleError(const Error& error, bool recoverable) {
  kLog.Error("background error", {{"error", error.message}, {"recoverable", recoverable}});
  if (!recoverable && options_.on_fatal) options_.on_fatal(error);
}

}  // namespace drakkar::driver
