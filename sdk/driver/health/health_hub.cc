#include "sdk/driver/health/health_hub.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

// What a node assumes when the driver sets no timeout (KEP-4680).
constexpr std::int64_t kDefaultTimeoutSeconds = 30;

}  // namespace

Result<void> HealthHub::Report(rpc::HealthReport report) {
  loop_.AssertInLoop();
  std::set<std::pair<std::string, std::string>> names;
  for (const rpc::DeviceHealth& device : report) {
    if (device.pool_name.empty() || device.device_name.empty()) {
      return InvalidArgument("a health report must name pool and device");
    }
    if (!devices_.contains({device.pool_name, device.device_name})) {
      names.emplace(device.pool_name, device.device_name);
    }
  }
  if (devices_.size() + names.size() > kMaxHealthDevices) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("health of more than ", kMaxHealthDevices, " devices")};
  }
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(loop_.clock().Now().time_since_epoch())
          .count();
  for (rpc::DeviceHealth& device : report) {
    if (device.last_updated_seconds == 0) device.last_updated_seconds = now;
    devices_[{device.pool_name, device.device_name}] = device;
  }
  Send(report);
  ArmTimer();
  return Ok();
}

void HealthHub::Forget(const std::string& pool_name, const std::string& device_name) {
  devices_.erase({pool_name, device_name});
}

void HealthHub::Watch(std::unique_ptr<rpc::HealthSink> sink) {
  loop_.AssertInLoop();
  rpc::HealthSink* key = sink.get();
  sinks_.emplace(key, std::move(sink));
  // The watcher learns at once what is known, even if that is nothing.
  key->Send(Everything());
  key->OnCancelled([this, key] { sinks_.erase(key); });
  ArmTimer();
}

void HealthHub::Clear() {
  sinks_.clear();
  repeat_.reset();
}

rpc::HealthReport HealthHub::Everything() const {
  rpc::HealthReport report;
  for (const auto& [name, device] : devices_) report.push_back(device);
  return report;
}

void HealthHub::Send(const rpc::HealthReport& report) {
  // Sending may end a stream, and so change the map.
  std::vector<rpc::HealthSink*> sinks;
  for (const auto& [key, sink] : sinks_) sinks.push_back(key);
  for (rpc::HealthSink* key : sinks) {
    const auto found = sinks_.find(key);
    if (found == sinks_.end()) continue;
    if (found->second->IsCancelled()) {
      sinks_.erase(found);
    } else {
      found->second->Send(report);
    }
  }
}

void HealthHub::ArmTimer() {
  if (sinks_.empty() || devices_.empty()) {
    repeat_.reset();
    return;
  }
  std::int64_t shortest = kDefaultTimeoutSeconds;
  for (const auto& [name, device] : devices_) {
    if (device.health_check_timeout_seconds > 0) {
      shortest = std::min(shortest, device.health_check_timeout_seconds);
    }
  }
  repeat_ = loop_.RunAfter(std::chrono::milliseconds(shortest * 500), [this] {
    Send(Everything());
    ArmTimer();
  });
}

}  // namespace drakkar::driver
