#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/result/result.h"

namespace drakkar::rpc {

// Device health streams in plain types. Three services carry the same data: DRAResourceHealth v1
// and v1alpha1 as Kubernetes has them, and NodeHealth v1alpha1 as KEP-4680 describes it.

enum class HealthService { kV1, kV1alpha1, kNodeHealth };

// "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth", "v1alpha1.NodeHealth": the names in
// PluginInfo.supported_versions.
std::string_view HealthServiceName(HealthService service);
std::optional<HealthService> FindHealthService(std::string_view service_name);

enum class DeviceHealthState { kUnknown, kHealthy, kUnhealthy };

// "Unknown", "Healthy", "Unhealthy"; anything else reads as kUnknown.
std::string_view DeviceHealthStateName(DeviceHealthState state);
DeviceHealthState ParseDeviceHealthState(std::string_view name);

struct DeviceHealth {
  std::string pool_name;
  std::string device_name;
  DeviceHealthState health = DeviceHealthState::kUnknown;
  std::int64_t last_updated_seconds = 0;  // since 1970, by the driver's clock
  // Not carried by NodeHealth, which reads as 0 and "".
  std::int64_t health_check_timeout_seconds = 0;  // 0: the default
  std::string message;
  // Carried by NodeHealth only.
  std::optional<std::string> resource_name;

  bool operator==(const DeviceHealth&) const = default;
};

// One message; devices it does not name keep their state.
using HealthReport = std::vector<DeviceHealth>;

struct HealthStreamCallbacks {
  std::function<void(HealthReport)> on_report;
  // Called once, unless the stream is destroyed first. Unimplemented: the plugin lacks the service.
  absl::AnyInvocable<void(Result<void>)> on_end;
  // A message could not be decoded; the stream continues. May be empty.
  std::function<void(const Error&)> on_malformed;
};

// A running stream. Destroying it cancels; no callback runs afterwards.
class [[nodiscard]] HealthStream {
 public:
  virtual ~HealthStream() = default;
};

// The driver's end of one watcher's stream. Lives on the server's loop. Once the watcher or the
// server is gone, Send and Finish are no-ops. Destroying an unfinished sink answers Internal.
class HealthSink {
 public:
  virtual ~HealthSink() = default;
  virtual void Send(const HealthReport& report) = 0;
  virtual void Finish(Result<void> result) = 0;
  virtual bool IsCancelled() const = 0;
  // Runs at most once, when the watcher goes away. It may destroy the sink.
  virtual void OnCancelled(std::function<void()> callback) = 0;
};

// Implemented by drivers: for each watcher, push reports into its sink, the first one at once.
// A driver without health finishes the sink with kUnimplemented.
class HealthSource {
 public:
  virtual ~HealthSource() = default;
  virtual void Watch(std::unique_ptr<HealthSink> sink) = 0;
};

}  // namespace drakkar::rpc
