#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Rotates the logs of running containers with a kubelet's defaults: a log larger than kMaxBytes is
// renamed to <log>.<time> and a new one is started; kMaxFiles are kept per container, the current
// one included. Logs are checked every kCheckEvery. Those that grow fast are checked when they are
// expected to reach the limit, at most every kCheckSoonest. Between checks the runtime bounds the
// log: it truncates one that grows far beyond the limit.
//
// Loop-bound; everything passed in must outlive it.
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
  // When to check again.
  Duration Check();
  void Rotate(const std::string& container_id, const std::string& path);

  EventLoop& loop_;
  FileSystem& files_;
  Runtime& runtime_;
  TimerHandle timer_;
  std::map<std::string, std::uint64_t> sizes_;  // by container, at the last check
  MonotonicTime looked_at_{};
};

// The rotated files of a log, oldest first.
std::vector<std::string> RotatedLogs(FileSystem& files, const std::string& path);

}  // namespace drakkar::node
