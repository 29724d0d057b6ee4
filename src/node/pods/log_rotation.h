#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Keeps the logs of running containers within bounds, as kubelets do by default: a log of more than
// kMaxBytes is set aside as <log>.<time> and begun anew; kMaxFiles are kept of each, the current
// one included. Logs are looked at every kCheckEvery, and those that grow fast as soon as they can
// be expected to have reached the bound, though not more often than every kCheckSoonest. What is
// written in between is bounded by the runtime, which starts over a log that gets much too large.
//
// Loop-bound; everything given must outlive it.
class LogRotation {
 public:
  static constexpr Duration kCheckEvery = std::chrono::seconds(10);
  static constexpr Duration kCheckSoonest = std::chrono::milliseconds(200);
  static constexpr std::uint64_t kMaxBytes = 10 << 20;
  static constexpr std::size_t kMaxFiles = 5;

  LogRotation(EventLoop& loop, FileSystem& files, Runtime& runtime);
  void Start();

 private:
  void Arm(Duration delay);
  // When to look again.
  Duration Check();
  void Rotate(const std::string& container_id, const std::string& path);

  EventLoop& loop_;
  FileSystem& files_;
  Runtime& runtime_;
  TimerHandle timer_;
  std::map<std::string, std::uint64_t> sizes_;  // by container, at the last look
  MonotonicTime looked_at_{};
};

// The files that were set aside for a log, oldest first.
std::vector<std::string> RotatedLogs(FileSystem& files, const std::string& path);

}  // namespace drakkar::node
