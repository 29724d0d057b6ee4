#include "sdk/driver/health/health_hub.h"

#include <algorithm>
#include <chrono>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

// A node's default if the driver sets no timeout (KEP-4680).
constexpr std::int64_t kDefaultTimeoutSeconds = 30;
constexpr Duration kBetweenPieces = std::chrono::milliseconds(2);

// Half the time after which a node considers the state stale.
Duration RepeatAfter(const rpc::DeviceHealth& device) {
  const std::int64_t timeout = device.health_check_timeout_seconds;
  return std::chrono::milliseconds((timeout > 0 ? timeout : kDefaultTimeoutSeconds) * 500);
}

}  // namespace

Result<bool> HealthHub::Report(rpc::HealthReport report) {
  loop_.AssertInLoop();
  std::set<Name> names;
  for (const rpc::DeviceHealth& device : report) {
    if (device.pool_name.empty() || device.device_name.empty()) {
      return InvalidArgument("a health report must have a pool and a device name");
    }
    if (!devices_.contains({device.pool_name, device.device_name})) {
      names.emplace(device.pool_name, device.device_name);
    }
  }
  if (devices_.size() + names.size() > kMaxHealthDevices) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("cannot report health for more than ", kMaxHealthDevices, " devices")};
  }
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(loop_.clock().Now().time_since_epoch())
          .count();
  bool unhealthy_changed = false;
  for (rpc::DeviceHealth& device : report) {
    if (device.last_updated_seconds == 0) device.last_updated_seconds = now;
    Name name = {device.pool_name, device.device_name};
    Entry& entry = devices_[name];
    const auto is_unhealthy = [](const rpc::DeviceHealth& health) {
      return health.health == rpc::DeviceHealthState::kUnhealthy;
    };
    unhealthy_changed = unhealthy_changed || is_unhealthy(entry.health) != is_unhealthy(device);
    entry.health = std::move(device);
    changed_.insert(std::move(name));
  }
  SendChanges();
  return unhealthy_changed;
}

bool HealthHub::Forget(const std::string& pool_name, const std::string& device_name) {
  const bool was_unhealthy = IsUnhealthy(pool_name, device_name);
  const auto found = devices_.find({pool_name, device_name});
  if (found != devices_.end()) {
    repeats_.erase({found->second.repeat_at, found->first});
    devices_.erase(found);
  }
  changed_.erase({pool_name, device_name});
  return was_unhealthy;
}

bool HealthHub::IsUnhealthy(const std::string& pool_name, const std::string& device_name) const {
  const auto found = devices_.find({pool_name, device_name});
  return found != devices_.end() &&
         found->second.health.health == rpc::DeviceHealthState::kUnhealthy;
}

void HealthHub::Watch(std::unique_ptr<rpc::HealthSink> sink) {
  loop_.AssertInLoop();
  rpc::HealthSink* key = sink.get();
  sinks_.emplace(key, std::move(sink));
  // A new watcher gets the full state at once, even if it is empty.
  rpc::HealthReport everything;
  for (const auto& [name, entry] : devices_) everything.push_back(entry.health);
  key->Send(everything);
  key->OnCancelled([this, key] { sinks_.erase(key); });
  if (sinks_.size() == 1) {
    const MonotonicTime now = loop_.clock().Monotonic();
    for (auto& [name, entry] : devices_) RepeatLater(name, entry, now);
  }
  ArmRepeat();
}

void HealthHub::Clear() {
  sinks_.clear();
  changed_.clear();
  repeat_.reset();
  later_.reset();
}

void HealthHub::Send(const rpc::HealthReport& report) {
  // Sending may end a stream and change the map.
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

void HealthHub::SendChanges() {
  if (changed_.empty() || later_ != nullptr) return;
  if (sinks_.empty()) return changed_.clear();  // a new watcher gets everything
  const MonotonicTime now = loop_.clock().Monotonic();
  if (!messages_.Take(now)) {
    later_ = loop_.RunAfter(messages_.Wait() + std::chrono::milliseconds(1), [this] {
      later_.reset();
      SendChanges();
    });
    return;
  }
  rpc::HealthReport report;
  for (const Name& name : changed_) {
    Entry& entry = devices_.at(name);
    RepeatLater(name, entry, now);
    report.push_back(entry.health);
  }
  changed_.clear();
  Send(report);
  ArmRepeat();
}

void HealthHub::RepeatLater(const Name& name, Entry& entry, MonotonicTime now) {
  repeats_.erase({entry.repeat_at, name});
  entry.repeat_at = now + RepeatAfter(entry.health);
  repeats_.emplace(entry.repeat_at, name);
}

void HealthHub::SendDue() {
  const MonotonicTime now = loop_.clock().Monotonic();
  rpc::HealthReport report;
  while (!repeats_.empty() && repeats_.begin()->first <= now &&
         report.size() < kHealthRepeatsPerMessage) {
    const Name name = repeats_.begin()->second;
    Entry& entry = devices_.at(name);
    RepeatLater(name, entry, now);
    report.push_back(entry.health);
  }
  if (!report.empty()) Send(report);
  ArmRepeat();
}

void HealthHub::ArmRepeat() {
  if (sinks_.empty() || repeats_.empty()) return repeat_.reset();
  // If more are due, give the node time for the previous message first.
  const Duration wait =
      std::max<Duration>(repeats_.begin()->first - loop_.clock().Monotonic(), kBetweenPieces);
  repeat_ = loop_.RunAfter(wait, [this] { SendDue(); });
}

}  // namespace drakkar::driver
