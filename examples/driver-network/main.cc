// A network driver that knows the addresses of its interfaces only once the pod's network is there
// (KEP-5304, deferred metadata): prepare returns devices without metadata, and the NRI hook for
// RunPodSandbox writes it, before the first init container starts.
//
//   driver-network --enable-device-metadata --nri-socket=... --kubeconfig=... --node-name=n1 ...
#include <cstdio>
#include <map>

#include "base/env/random.h"
#include "base/text/text.h"
#include "sdk/driver/host/driver_host.h"
#include "sdk/driver/nri/nri_hook.h"
#include "telemetry/log/log.h"

using namespace drakkar;

namespace {

constexpr Logger kLog("driver-network");
constexpr char kDriver[] = "net.example.com";
constexpr int kInterfaces = 4;

// What a pod waits for: the devices of one request of one of its claims.
struct Pending {
  driver::RequestReference request;
  std::vector<driver::PreparedDevice> devices;
};

class NetworkDriver final : public driver::SynchronousPlugin {
 public:
  Result<std::vector<driver::PreparedDevice>> PrepareResourceClaim(const api::Object& claim) override {
    std::vector<driver::PreparedDevice> prepared;
    std::map<std::string, Pending> requests;
    for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != kDriver) continue;
      const std::string request(result["request"].str());
      prepared.push_back({.request_names = {request},
                          .pool_name = std::string(result["pool"].str()),
                          .device_name = std::string(result["device"].str())});
      Pending& pending = requests[request];
      pending.request = {std::string(claim.namespace_()), std::string(claim.name()),
                         std::string(claim.uid()), request};
      pending.devices.push_back(prepared.back());
    }
    if (prepared.empty()) return FailedPrecondition("no device of the claim is of this driver");
    for (const api::Value pod : claim["status"]["reservedFor"].elements()) {
      std::vector<Pending>& waiting = pods_[std::string(pod["uid"].str())];
      waiting.clear();
      for (const auto& [name, pending] : requests) waiting.push_back(pending);
    }
    return prepared;
  }

  Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) override {
    std::erase_if(pods_, [&](const auto& entry) {
      return entry.second.front().request.claim_uid == claim.uid;
    });
    return Ok();
  }

  // The pod's network is there: tells its containers what they got. No container starts before.
  Result<void> OnRunPodSandbox(driver::Driver& driver, const rpc::NriPodSandbox& pod) {
    const auto found = pods_.find(pod.uid);
    if (found == pods_.end()) return Ok();  // a pod without our devices
    for (Pending& pending : found->second) {
      std::vector<driver::AllocatedDeviceStatus> status;
      for (driver::PreparedDevice& device : pending.devices) {
        const metadata::NetworkDeviceData network = Configure(device.device_name);
        device.metadata = driver::DeviceMetadata{.network_data = network};
        status.push_back({.pool_name = device.pool_name,
                          .device_name = device.device_name,
                          .conditions = {{"Ready", "True", "NetworkReady", "the interface is configured"}},
                          .network = network});
      }
      RETURN_IF_ERROR(driver.UpdateRequestMetadata(pending.request, pending.devices));
      // For everybody else it is in the claim's status. Containers do not wait for that.
      driver.ApplyClaimStatus({pending.request.claim_namespace, pending.request.claim_uid,
                               pending.request.claim_name},
                              std::move(status), [](Result<void> applied) {
                                if (!applied.ok()) kLog.Warning("claim status", {{"error", applied.error().message}});
                              });
      kLog.Info("told a pod of its interfaces", {{"pod", pod.name}, {"request", pending.request.request}});
    }
    return Ok();
  }

 private:
  // Where a real driver moves the interface into the pod's network namespace and asks for an address.
  static metadata::NetworkDeviceData Configure(const std::string& device) {
    const char index = device.back();
    return {.interface_name = StrCat("net", index),
            .ips = {StrCat("192.0.2.1", index, "/24")},
            .hardware_address = StrCat("02:00:00:00:00:0", index)};
  }

  std::map<std::string, std::vector<Pending>> pods_;  // by pod uid; bounded by the prepared claims
};

driver::DriverResources Offer(const std::string& node_name) {
  driver::Slice slice;
  for (int i = 0; i < kInterfaces; ++i) {
    slice.devices.push_back({.name = StrCat("net-", i), .attributes = {{"speedGbps", std::int64_t{25}}}});
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
  const int code = (*host)->Run([&](driver::DriverHost& running) -> Result<std::unique_ptr<driver::Driver>> {
    ASSIGN_OR_RETURN(std::unique_ptr<driver::Driver> driver, driver::Driver::Start(running.Options(plugin)));
    RETURN_IF_ERROR(driver->PublishResources(Offer(flags.node_name)));
    rpc::NriPluginSession::Callbacks callbacks;
    callbacks.on_run_pod_sandbox = [&plugin, &running](const rpc::NriPodSandbox& pod, rpc::NriDone done) {
      if (running.driver() == nullptr) return done(Unavailable("the driver is starting"));
      done(plugin.OnRunPodSandbox(*running.driver(), pod));
    };
    hook = std::make_unique<driver::NriHook>(driver::NriHook::Options{.loop = running.loop(),
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
