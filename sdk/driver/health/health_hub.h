#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/exec/event_loop.h"
#include "base/exec/token_bucket.h"
#include "base/result/result.h"
#include "rpc/health/health.h"

namespace drakkar::driver {

// More devices than a node can have; reports beyond it are rejected.
constexpr std::size_t kMaxHealthDevices = 65'536;

// Changes are sent at once up to this burst of messages, then at this rate per second. A device
// that changes faster is reported less often, in its latest state.
constexpr double kHealthBurst = 256;
constexpr double kHealthMessagesPerSecond = 200;
// Repetitions are sent in batches, so that changes never wait behind thousands of healthy devices.
constexpr std::size_t kHealthRepeatsPerMessage = 256;

// Keeps the reported health of the driver's devices and sends it to every watching node: the full
// state to a new watcher, changes as they happen (see above), and each device again before it
// expires on the node (after half its timeout, which defaults to 30 s).
//
// Loop-bound.
class HealthHub final : public rpc::HealthSource {
 public:
  explicit HealthHub(EventLoop& loop) : loop_(loop) {}

  // Devices that are not listed keep their state. A time of 0 means now. Returns true if a device
  // became unhealthy or recovered.
  Result<bool> Report(rpc::HealthReport report);
  // Stops repeating a removed device. Returns true if it was unhealthy.
  bool Forget(const std::string& pool_name, const std::string& device_name);
  bool IsUnhealthy(const std::string& pool_name, const std::string& device_name) const;
  void Watch(std::unique_ptr<rpc::HealthSink> sink) override;
  // Drops all watchers after their server has stopped.
  void Clear();

  std::size_t watchers() const { return sinks_.size(); }

 private:
  using Name = std::pair<std::string, std::string>;  // pool, device
  struct Entry {
    rpc::DeviceHealth health;
    MonotonicTime repeat_at{};
  };

  void RepeatLater(const Name& name, Entry& entry, MonotonicTime now);
  void Send(const rpc::HealthReport& report);
  void SendChanges();
  void SendDue();
  void ArmRepeat();

  EventLoop& loop_;
  std::map<Name, Entry> devices_;
  std::set<std::pair<MonotonicTime, Name>> repeats_;  // each device with its repeat_at
  std::set<Name> changed_;                            // not sent yet
  std::map<rpc::HealthSink*, std::unique_ptr<rpc::HealthSink>> sinks_;
  TokenBucket messages_{kHealthMessagesPerSecond, kHealthBurst};
  TimerHandle repeat_;
  TimerHandle later_;  // for delayed changes
};

}  // namespace drakkar::driver
