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

// More devices than a node can have; reports beyond it are refused.
constexpr std::size_t kMaxHealthDevices = 65'536;

// News go out at once as long as they are few: this many messages in a row, and this many a second
// after that. A device that flickers faster is told of less often, in its latest state.
constexpr double kHealthBurst = 256;
constexpr double kHealthMessagesPerSecond = 200;
// Repetitions go out in pieces, so that news never wait behind thousands of devices that are well.
constexpr std::size_t kHealthRepeatsPerMessage = 256;

// Keeps what the driver said about the health of its devices and passes it to every watching node:
// all of it at once to a new watcher, changes as they come (see above), and each device again
// before the node would take it for outdated (at half of its timeout, 30 s where the driver set
// none).
//
// Loop-bound.
class HealthHub final : public rpc::HealthSource {
 public:
  explicit HealthHub(EventLoop& loop) : loop_(loop) {}

  // Devices not named keep their state. A time of 0 means now. True if a device became unhealthy or
  // ceased to be.
  Result<bool> Report(rpc::HealthReport report);
  // Stops repeating a device that is gone. True if it was unhealthy.
  bool Forget(const std::string& pool_name, const std::string& device_name);
  bool IsUnhealthy(const std::string& pool_name, const std::string& device_name) const;
  void Watch(std::unique_ptr<rpc::HealthSink> sink) override;
  // Lets go of all watchers, once their server has stopped.
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
  std::set<Name> changed_;                            // not told yet
  std::map<rpc::HealthSink*, std::unique_ptr<rpc::HealthSink>> sinks_;
  TokenBucket messages_{kHealthMessagesPerSecond, kHealthBurst};
  TimerHandle repeat_;
  TimerHandle later_;  // for changes that wait
};

}  // namespace drakkar::driver
