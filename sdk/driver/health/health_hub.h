#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "rpc/health/health.h"

namespace drakkar::driver {

// More devices than a node can have; reports beyond it are refused.
constexpr std::size_t kMaxHealthDevices = 65'536;

// Keeps what the driver said about the health of its devices and passes it to every watching node:
// all of it at once to a new watcher, changes as they come, and everything again before the node
// would take it for outdated (half of the shortest timeout, 30 s where the driver set none).
//
// Loop-bound.
class HealthHub final : public rpc::HealthSource {
 public:
  explicit HealthHub(EventLoop& loop) : loop_(loop) {}

  // Devices not named keep their state. A time of 0 means now.
  Result<void> Report(rpc::HealthReport report);
  // Stops repeating a device that is gone.
  void Forget(const std::string& pool_name, const std::string& device_name);
  void Watch(std::unique_ptr<rpc::HealthSink> sink) override;
  // Lets go of all watchers, once their server has stopped.
  void Clear();

  std::size_t watchers() const { return sinks_.size(); }

 private:
  void Send(const rpc::HealthReport& report);
  void ArmTimer();
  rpc::HealthReport Everything() const;

  EventLoop& loop_;
  std::map<std::pair<std::string, std::string>, rpc::DeviceHealth> devices_;
  std::map<rpc::HealthSink*, std::unique_ptr<rpc::HealthSink>> sinks_;
  TimerHandle repeat_;
};

}  // namespace drakkar::driver
