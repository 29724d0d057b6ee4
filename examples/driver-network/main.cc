// A network driver that knows the addresses of its interfaces only after the pod's network is set
// up (KEP-5304, deferred metadata): prepare returns devices without metadata, and the NRI hook for
// RunPodSandbox writes it before the first init container starts. Pods that started while the
// driver was not running are handled when it is back.
//
//   driver-network --enable-device-metadata --nri-socket=... --kubeconfig=... --node-name=n1 ...
#include <algorithm>
#include <cstdio>

#include "base/env/random.h"
#include "base/text/text.h"
#include "sdk/driver/attributes/pci.h"
#include "sdk/driver/host/driver_host.h"
#include "sdk/driver/nri/nri_hook.h"
#include "telemetry/log/log.h"

using namespace drakkar;

namespace {

constexpr Logger kLog("driver-network");
constexpr char kDriver[] = "net.example.com";
constexpr int kInterfaces = 4;

class NetworkDriver final : public driver::SynchronousPlugin {
 public:
  Result<std::vector<driver::PreparedDevice>> PrepareResourceClaim(
      const api::Object& claim) override {
    std::vector<driver::PreparedDevice> prepared;
    for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != kDriver) continue;
      prepared.push_back({.request_names = {std::string(result["request"].str())},
                          .pool_name = std::string(result["pool"].str()),
                          .device_name = std::string(result["device"].str())});
    }
    if (prepared.empty()) return FailedPrecondition("the claim has no device of this driver");
    return prepared;
  }

  // The SDK knows what was prepared for which pod, also after a restart, so nothing is kept here.
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference&) override { return Ok(); }

  // The pod's network is set up: writes the metadata. No container starts before this returns.
  static Result<void> OnRunPodSandbox(driver::Driver& driver, const rpc::NriPodSandbox& pod) {
    return Tell(driver, pod, /*only_missing=*/false);
  }

  // A pod that started before this process may still lack its metadata.
  static void OnRunningPod(driver::Driver& driver, const rpc::NriPodSandbox& pod) {
    if (auto told = Tell(driver, pod, /*only_missing=*/true); !told.ok()) {
      kLog.Warning("could not update metadata of a running pod",
                   {{"pod", pod.name}, {"error", told.error().message}});
    }
  }

 private:
  // All requests of all claims of the pod that have devices of this driver.
  static Result<void> Tell(driver::Driver& driver, const rpc::NriPodSandbox& pod,
                           bool only_missing) {
    ASSIGN_OR_RETURN(std::vector<driver::PreparedRequest> requests, driver.PreparedRequests());
    for (driver::PreparedRequest& prepared : requests) {
      if (std::ranges::find(prepared.pod_uids, pod.uid) == prepared.pod_uids.end()) continue;
      if (only_missing && prepared.has_metadata) continue;
      std::vector<driver::AllocatedDeviceStatus> status;
      for (driver::PreparedDevice& device : prepared.devices) {
        const metadata::NetworkDeviceData network = Configure(device.device_name);
        device.metadata = driver::DeviceMetadata{
            .attributes = {{driver::kPciBusIdAttribute, BusId(device.device_name)},
                           {"mtu", std::int64_t{9000}}},
            .network_data = network};
        status.push_back(
            {.pool_name = device.pool_name,
             .device_name = device.device_name,
             .conditions = {{"Ready", "True", "NetworkReady", "the interface is configured"}},
             .network = network});
      }
      const driver::RequestReference& request = prepared.request;
      RETURN_IF_ERROR(driver.UpdateRequestMetadata(request, prepared.devices));
      // Also publish it in the claim's status. Containers do not wait for that.
      driver.ApplyClaimStatus(
          {request.claim_namespace, request.claim_uid, request.claim_name}, std::move(status),
          [](Result<void> applied) {
            if (!applied.ok())
              kLog.Warning("could not update claim status", {{"error", applied.error().message}});
          });
      kLog.Info("wrote interface metadata", {{"pod", pod.name}, {"request", request.request}});
    }
    return Ok();
  }

  // A real driver reads it from sysfs: sdk/driver/attributes/pci.h.
  static std::string BusId(const std::string& device) {
    return StrCat("0000:3b:00.", device.substr(device.size() - 1));
  }

  // A real driver would move the interface into the pod's network namespace and request an address.
  static metadata::NetworkDeviceData Configure(const std::string& device) {
    const char index = device.back();
    return {.interface_name = StrCat("net", index),
            .ips = {StrCat("192.0.2.1", index, "/24")},
            .hardware_address = StrCat("02:00:00:00:00:0", index)};
  }
};

driver::DriverResources Offer(const std::string& node_name) {
  driver::Slice slice;
  for (int i = 0; i < kInterfaces; ++i) {
    slice.devices.push_back(
        {.name = StrCat("net-", i), .attributes = {{"speedGbps", std::int64_t{25}}}});
  }
  driver::DriverResources resources;
  resources.pools[node_name].slices = {slice};
  return resources;
}

}  // namespace

int main(int argc, char** argv) {
  driver::DriverFlags flags{.driver_name = kDriver};
  if (!flags.ParseCommandLine(argc, argv)) return 2;
  auto host = driver::DriverHost::Create(flags);
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", host.error().message.c_str());
    return 1;
  }
  NetworkDriver plugin;
  std::unique_ptr<driver::NriHook> hook;
  const int code =
      (*host)->Run([&](driver::DriverHost& running) -> Result<std::unique_ptr<driver::Driver>> {
        ASSIGN_OR_RETURN(std::unique_ptr<driver::Driver> driver,
                         driver::Driver::Start(running.Options(plugin)));
        RETURN_IF_ERROR(driver->PublishResources(Offer(flags.node_name)));
        rpc::NriPluginSession::Callbacks callbacks;
        callbacks.on_run_pod_sandbox = [&running](const rpc::NriPodSandbox& pod,
                                                  rpc::NriDone done) {
          if (running.driver() == nullptr) return done(Unavailable("the driver is starting"));
          done(NetworkDriver::OnRunPodSandbox(*running.driver(), pod));
        };
        callbacks.on_pods = [&running](const std::vector<rpc::NriPodSandbox>& pods) {
          if (running.driver() == nullptr) return;
          for (const rpc::NriPodSandbox& pod : pods)
            NetworkDriver::OnRunningPod(*running.driver(), pod);
        };
        hook = std::make_unique<driver::NriHook>(
            driver::NriHook::Options{.loop = running.loop(),
                                     .random = RealRandom(),
                                     .socket_path = flags.nri_socket,
                                     .name = kDriver,
                                     .callbacks = std::move(callbacks)});
        hook->Start();
        return driver;
      });
  hook.reset();
  return code;
}
