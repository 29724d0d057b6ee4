#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// By default a kubelet's.
struct LogLimits {
  std::uint64_t max_bytes = 10 << 20;
  std::size_t max_files = 5;  // per container, the current one included; at least 2
  Duration check_every = std::chrono::seconds(10);
};

// Rotates the logs of running containers: one that is larger than max_bytes is renamed to
// <log>.<time> and a new one is started; max_files are kept. Logs are checked every check_every.
// Those that grow fast are checked when they are
// expected to reach the limit, at most every kCheckSoonest. Between checks the runtime bounds the
// log: it truncates one that grows far beyond the limit.
//
// Loop-bound; everything passed in must outlive it.
class LogRotation {
 public:
  static constexpr Duration kCheckSoonest = std::chrono::milliseconds(200);

  LogRotation(EventLoop& loop, FileSystem& files, Runtime& runtime, LogLimits limits = {});
  void Start();

 private:
  void Arm(Duration delay);
  // When to check again.
  Duration Check();
  void Rotate(const std::string& container_id, const std::string& path);

  EventLoop& loop_;
  FileSystem& files_;
  Runtime& runtime_;
  const LogLimits limits_;
  TimerHandle timer_;
  std::map<std::string, std::uint64_t> sizes_;  // by container, at the last check
  MonotonicTime looked_at_{};
};

// The rotated files of a log, oldest first.
std::vector<std::string> RotatedLogs(FileSystem& files, const std::string& path);

}  // namespace drakkar::node
