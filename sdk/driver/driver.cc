#include "sdk/driver/driver.h"

#include <utility>

#include "api/meta/names.h"
#include "base/text/text.h"
#include "cdi/names.h"
#include "rpc/server/service_set.h"
#include "sdk/driver/health/health_hub.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "sdk/driver/prepare/claim_leftovers.h"
#include "sdk/driver/prepare/node_service.h"
#include "sdk/driver/registration/registrar.h"
#include "sdk/driver/registration/socket_names.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");
constexpr std::size_t kMaxDriverNameBytes = 63;

Result<void> CheckOptions(const DriverOptions& options) {
  if (options.driver_name.empty()) return InvalidArgument("driver name must be set");
  if (options.driver_name.size() > kMaxDriverNameBytes) {
    return InvalidArgument(StrCat("driver name ", Quote(options.driver_name), " must not exceed ",
                                  kMaxDriverNameBytes, " bytes"));
  }
  if (const auto problems = api::CheckDnsSubdomain(options.driver_name); !problems.empty()) {
    return InvalidArgument(
        StrCat("driver name ", Quote(options.driver_name), ": ", problems.front()));
  }
  if (!options.rolling_update_uid.empty()) {
    if (!options.registrar_socket.empty()) {
      return InvalidArgument(
          "rolling updates and explicit registration socket filename are mutually exclusive");
    }
    // The UID becomes part of file names.
    if (!api::CheckDnsSubdomain(options.rolling_update_uid).empty()) {
      return InvalidArgument("pod UID " + Quote(options.rolling_update_uid) + " is not a UID");
    }
  }
  if (options.dra_service && !options.dra_v1 && !options.dra_v1beta1) {
    return InvalidArgument("no supported DRA gRPC API is implemented and enabled");
  }
  if (options.device_metadata) {
    if (auto vendor = cdi::ValidateVendor(options.driver_name); !vendor.ok()) {
      return std::move(vendor).error().Prefixed("device metadata: driver name as a CDI vendor");
    }
  }
  if (!options.node_name.empty() && (!options.pool_name.empty() || options.owner != nullptr)) {
    return InvalidArgument("pool_name and owner are only for drivers that run without a node");
  }
  const UnhealthyTaint& taint = options.unhealthy_taint;
  if (!taint.key.empty() && !options.health_service) {
    return InvalidArgument("unhealthy_taint requires health_service");
  }
  return Ok();
}

Result<void> CheckSocketPath(const std::string& path) {
  if (path.size() <= kMaxSocketPathBytes) return Ok();
  return InvalidArgument(StrCat("socket path ", path, " has ", path.size(),
                                " bytes, but the system allows at most ", kMaxSocketPathBytes,
                                "; use a shorter directory"));
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::Start(DriverOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Driver> driver(new Driver(std::move(options)));
  if (auto opened = driver->Open(); !opened.ok()) {
    driver->Stop();
    return std::move(opened).error();
  }
  return driver;
}

Driver::Driver(DriverOptions options) : options_(std::move(options)) {
  const std::string& uid = options_.rolling_update_uid;
  if (options_.plugin_directory.empty()) {
    options_.plugin_directory = JoinPath(
        JoinPath(DirectoryName(options_.registry_directory), "plugins"), options_.driver_name);
  }
  if (options_.registrar_socket.empty()) {
    options_.registrar_socket = uid.empty()
                                    ? RegistrarSocketName(options_.driver_name)
                                    : RollingUpdateRegistrarSocketName(options_.registry_directory,
                                                                       options_.driver_name, uid);
  }
  if (options_.plugin_socket.empty()) options_.plugin_socket = PluginSocketName(uid);
  registrar_path_ = JoinPath(options_.registry_directory, options_.registrar_socket);
  plugin_path_ = JoinPath(options_.plugin_directory, options_.plugin_socket);
}

Driver::~Driver() {
  Stop();
}

std::vector<std::string> Driver::AdvertisedServices() const {
  std::vector<std::string> services;
  const auto add = [&](std::string_view name) { services.emplace_back(name); };
  if (options_.dra_v1) add(rpc::DraServiceName(rpc::DraVersion::kV1));
  if (options_.dra_v1beta1) add(rpc::DraServiceName(rpc::DraVersion::kV1beta1));
  if (options_.dra_service) add(rpc::kAnnouncementService);
  if (options_.health_service) {
    add(rpc::HealthServiceName(rpc::HealthService::kV1));
    add(rpc::HealthServiceName(rpc::HealthService::kV1alpha1));
    add(rpc::HealthServiceName(rpc::HealthService::kNodeHealth));
  }
  return services;
}

Result<void> Driver::Open() {
  options_.loop.AssertInLoop();
  const bool serves = options_.dra_service || options_.health_service;
  rpc::ServiceSet plugin_services;
  if (serves) {
    RETURN_IF_ERROR(CheckSocketPath(plugin_path_));
    RETURN_IF_ERROR(options_.files.MakeDirectories(options_.plugin_directory, 0750));
  }
  if (options_.dra_service) {
    RETURN_IF_ERROR(OpenMetadata());
    const bool lock = !options_.rolling_update_uid.empty();
    node_service_ = std::make_unique<NodeService>(NodeService::Options{
        .loop = options_.loop,
        .client = options_.client,
        .plugin = options_.plugin,
        .serialize = options_.serialize,
        .lock_file = lock ? JoinPath(options_.plugin_directory, "serialize.lock") : std::string(),
        .metrics = options_.metrics,
        .on_error = [this](const Error& error) { Report(error, true); },
        .metadata = *metadata_,
        .write_metadata = options_.device_metadata,
        .on_prepare =
            [this](const api::Object& claim) {
              leftovers_->Keep(claim.namespace_(), claim.name(), claim.uid());
            }});
    leftovers_ = std::make_unique<ClaimLeftovers>(ClaimLeftovers::Options{
        .loop = options_.loop,
        .random = options_.random,
        .client = options_.client,
        .take_turn = [this](auto task) { node_service_->TakeTurn(std::move(task)); }});
    CleanMetadata();
    plugin_services.dra = node_service_.get();
    plugin_services.dra_versions.clear();
    if (options_.dra_v1) plugin_services.dra_versions.push_back(rpc::DraVersion::kV1);
    if (options_.dra_v1beta1) plugin_services.dra_versions.push_back(rpc::DraVersion::kV1beta1);
  }
  if (options_.health_service) {
    health_ = std::make_unique<HealthHub>(options_.loop);
    plugin_services.health = health_.get();
  }
  if (options_.registration_service) {
    RETURN_IF_ERROR(CheckSocketPath(registrar_path_));
    RETURN_IF_ERROR(options_.files.MakeDirectories(options_.registry_directory, 0750));
    registrar_ = std::make_unique<Registrar>(
        Registrar::Options{.driver_name = options_.driver_name,
                           .endpoint = plugin_path_,
                           .services = AdvertisedServices(),
                           .on_registered =
                               [this] {
                                 if (slices_ != nullptr) slices_->OnRegistered();
                               },
                           .on_refused = [this](const Error& error) { Report(error, true); }});
  }
  // Both services may share one socket: the node finds everything behind the registration.
  const bool common = serves && registrar_ != nullptr && registrar_path_ == plugin_path_;
  if (common) plugin_services.registration = registrar_.get();
  if (serves) {
    plugin_server_ = rpc::CreateServer(options_.transport, plugin_path_, plugin_services);
    RETURN_IF_ERROR(plugin_server_->Start());
  }
  if (registrar_ != nullptr && !common) {
    rpc::ServiceSet services;
    services.registration = registrar_.get();
    registrar_server_ = rpc::CreateServer(options_.transport, registrar_path_, services);
    RETURN_IF_ERROR(registrar_server_->Start());
  }
  return Ok();
}

Result<void> Driver::OpenMetadata() {
  // During a rolling update, serialize.lock serializes the calls of both instances. Metadata files
  // also change outside of calls, so they have their own lock, which is held only briefly.
  const bool lock = !options_.rolling_update_uid.empty();
  ASSIGN_OR_RETURN(
      metadata_,
      MetadataStore::Create(
          {.files = options_.files,
           .driver_name = options_.driver_name,
           .directory = options_.plugin_directory,
           .cdi_directory = options_.cdi_directory,
           .lock_file = lock ? JoinPath(options_.plugin_directory, "metadata.lock") : std::string(),
           .versions = options_.metadata_versions,
           .dialect = options_.metadata_dialect}));
  return Ok();
}

// Cleans up device metadata of earlier runs: completes updates interrupted by a crash, and removes
// files of claims that no longer need them.
void Driver::CleanMetadata() {
  if (auto replayed = metadata_->Replay(); !replayed.ok()) {
    Report(replayed.error().Prefixed("complete an interrupted device metadata update"), true);
  }
  if (auto removed = metadata_->RemoveStraySpecs(); !removed.ok()) {
    Report(removed.error().Prefixed("remove CDI specs of device metadata"), true);
  }
  const auto claims = metadata_->Claims();
  if (!claims.ok()) {
    return Report(claims.error().Prefixed("list device metadata"), true);
  }
  leftovers_->Look(*claims, [this](const rpc::ClaimReference& claim, const std::string& why) {
    const std::string name = StrCat(claim.namespace_name, "/", claim.name);
    kLog.Info("removing device metadata of a claim that no longer needs it",
              {{"claim", name}, {"uid", claim.uid}, {"reason", why}});
    if (auto removed = metadata_->Remove(claim); !removed.ok()) {
      Report(removed.error().Prefixed("remove device metadata of claim " + name), true);
    }
  });
}

void Driver::RemoveLeftovers(const std::vector<rpc::ClaimReference>& claims,
                             const RemoveLeftover& remove) {
  options_.loop.AssertInLoop();
  if (leftovers_ != nullptr) leftovers_->Look(claims, remove);
}

Result<void> Driver::UpdateRequestMetadata(const RequestReference& request,
                                           const std::vector<PreparedDevice>& devices) {
  options_.loop.AssertInLoop();
  if (!options_.device_metadata) return FailedPrecondition("device metadata is not enabled");
  if (stopped_ || metadata_ == nullptr) return FailedPrecondition("the driver is not serving");
  return metadata_->Update(request, devices);
}

Result<std::vector<PreparedRequest>> Driver::PreparedRequests() {
  options_.loop.AssertInLoop();
  if (stopped_ || metadata_ == nullptr) return FailedPrecondition("the driver is not serving");
  return metadata_->Requests();
}

Result<void> Driver::PublishResources(const DriverResources& resources) {
  options_.loop.AssertInLoop();
  if (stopped_) return FailedPrecondition("the driver was stopped");
  if (options_.unhealthy_taint.key.empty()) return SendResources(resources);
  DriverResources before = std::exchange(published_, resources);
  auto published = PublishWithTaints();
  if (!published.ok()) published_ = std::move(before);
  return published;
}

Result<void> Driver::PublishWithTaints() {
  const UnhealthyTaint& taint = options_.unhealthy_taint;
  DriverResources resources = published_;
  for (auto& [pool_name, pool] : resources.pools) {
    // Reserve room, so that a taint added later does not split the slices differently.
    pool.may_be_tainted = true;
    for (Slice& slice : pool.slices) {
      for (Device& device : slice.devices) {
        if (!health_->IsUnhealthy(pool_name, device.name)) continue;
        device.taints.push_back({.key = taint.key, .effect = taint.effect});
      }
    }
  }
  return SendResources(resources);
}

Result<void> Driver::SendResources(const DriverResources& resources) {
  if (slices_ == nullptr) {
    slices_ = std::make_unique<SliceController>(
        SliceController::Options{.loop = options_.loop,
                                 .random = options_.random,
                                 .client = options_.client,
                                 .driver_name = options_.driver_name,
                                 .node_name = options_.node_name,
                                 .node_uid = options_.node_uid,
                                 .pool_name = options_.pool_name,
                                 .owner = options_.owner,
                                 .on_error = [this](const Error& error) {
                                   Report(error.Prefixed("processing ResourceSlice objects"), true);
                                 }});
  }
  return slices_->Publish(resources);
}

Result<void> Driver::ReportHealth(rpc::HealthReport report) {
  if (health_ == nullptr || stopped_) {
    return FailedPrecondition("the health service of this driver is not running");
  }
  ASSIGN_OR_RETURN(const bool unhealthy_changed, health_->Report(std::move(report)));
  if (unhealthy_changed) PublishTaintsSoon();
  return Ok();
}

// Delayed, so that health reports, which are sent at the end of this loop iteration, go out first:
// building slices for thousands of devices takes milliseconds.
void Driver::PublishTaintsSoon() {
  if (taints_are_due_ || options_.unhealthy_taint.key.empty() || slices_ == nullptr) return;
  taints_are_due_ = true;
  options_.loop.Post(lifetime_.Guard([this] {
    taints_are_due_ = false;
    if (stopped_) return;
    if (auto published = PublishWithTaints(); !published.ok()) Report(published.error(), true);
  }));
}

void Driver::ForgetHealth(const std::string& pool_name, const std::string& device_name) {
  if (health_ == nullptr || stopped_) return;
  if (health_->Forget(pool_name, device_name)) PublishTaintsSoon();
}

void Driver::ApplyClaimStatus(rpc::ClaimReference claim, std::vector<AllocatedDeviceStatus> devices,
                              ClaimStatusWriter::Done done) {
  options_.loop.AssertInLoop();
  if (stopped_) return;
  if (claim_status_ == nullptr) {
    claim_status_ = std::make_unique<ClaimStatusWriter>(options_.client, options_.loop.clock(),
                                                        options_.driver_name);
  }
  claim_status_->Apply(std::move(claim), std::move(devices), std::move(done));
}

void Driver::Report(const Error& error, bool recoverable) {
  if (options_.metrics != nullptr) {
    options_.metrics
        ->GetCounter("dra_driver_background_errors_total", "Errors passed to HandleError.",
                     {{"recoverable", recoverable ? "true" : "false"}})
        .Add();
  }
  options_.plugin.HandleError(error, recoverable);
}

Result<void> Driver::CheckReady() const {
  if (stopped_) return Unavailable("the driver was stopped");
  if (registrar_ != nullptr) {
    const auto& status = registrar_->status();
    if (!status) return Unavailable("no node has registered the driver yet");
    if (!status->plugin_registered) {
      return FailedPrecondition("the node rejected the registration: " + status->error);
    }
  }
  if (slices_ != nullptr && !slices_->IsSettled()) {
    return Unavailable("devices are still being published");
  }
  return Ok();
}

void Driver::UpdateMetrics() {
  if (options_.metrics == nullptr) return;
  Metrics& metrics = *options_.metrics;
  const auto status = registration_status();
  metrics.GetGauge("dra_driver_registered", "1 while the driver is registered with a node.")
      .Set(status && status->plugin_registered ? 1 : 0);
  metrics.GetGauge("dra_driver_health_watchers", "Open health streams.")
      .Set(health_ == nullptr ? 0 : static_cast<double>(health_->watchers()));
  if (slices_ == nullptr) return;
  const auto writes = [&](const char* verb, std::uint64_t count) {
    metrics
        .GetGauge("dra_driver_slice_writes", "ResourceSlice writes since start.", {{"verb", verb}})
        .Set(static_cast<double>(count));
  };
  writes("create", slices_->counts().creations);
  writes("update", slices_->counts().updates);
  writes("delete", slices_->counts().deletions);
}

std::optional<rpc::RegistrationStatus> Driver::registration_status() const {
  return registrar_ == nullptr ? std::nullopt : registrar_->status();
}

void Driver::Stop() {
  if (stopped_) return;
  stopped_ = true;
  // Destroying a server stops it.
  plugin_server_.reset();
  if (health_ != nullptr) health_->Clear();
  registrar_server_.reset();
  slices_.reset();
  claim_status_.reset();
  leftovers_.reset();
  node_service_.reset();
}

}  // namespace drakkar::driver
