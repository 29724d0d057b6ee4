#pragma once

#include <string>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "node/health/health_monitor.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {

// A driver's report about one device of the pool "pool".
inline rpc::HealthReport Report(const std::string& device, rpc::DeviceHealthState state,
                                std::string message = "", std::int64_t timeout = 0) {
  return {{.pool_name = "pool",
           .device_name = device,
           .health = state,
           .health_check_timeout_seconds = timeout,
           .message = std::move(message)}};
}

// With a pod "p" whose claim has the device "device-c" of the driver.
struct HealthNode : GpuNode {
  explicit HealthNode(FeatureGates with = DefaultGates()) : GpuNode(std::move(with)) {
    CreatePodWithClaim();
  }
  void Push(rpc::DeviceHealthState state, std::string message = "", std::int64_t timeout = 0) {
    driver.plugin.PushHealth(Report("device-c", state, std::move(message), timeout));
    Run();
  }
  // The line of `drakkar get devices`: health, message, since in seconds ago.
  std::string Line() {
    const api::TreePtr tree = agent->health().ListDevices().Freeze();
    const api::Value item = tree->root().at(0);
    const auto since = api::ParseTime(item["since"].str());
    const auto ago = since.ok()
                         ? std::to_string((loop.clock().Now() - *since) / std::chrono::seconds(1))
                         : "<none>";
    return StrCat(item["health"].str(), " ", item["message"].str("-"), " ", ago);
  }
  std::string Row() {
    const auto status =
        (*Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"];
    if (status.empty()) return "(none)";
    const auto resource = status.at(0)["resources"].at(0);
    return StrCat(status.at(0)["name"].str(), " ", resource["health"].str(), " ",
                  resource["message"].str());
  }
};

}  // namespace drakkar::node
