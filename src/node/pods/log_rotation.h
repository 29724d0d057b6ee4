#pragma once

#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Keeps the logs of running containers within bounds, as kubelets do by default: every
// kCheckEvery a log of more than kMaxBytes is set aside as <log>.<time> and begun anew; kMaxFiles
// are kept of each, the current one included.
//
// Loop-bound; everything given must outlive it.
class LogRotation {
 public:
  static constexpr Duration kCheckEvery = std::chrono::seconds(10);
  static constexpr std::uint64_t kMaxBytes = 10 << 20;
  static constexpr std::size_t kMaxFiles = 5;

  LogRotation(EventLoop& loop, FileSystem& files, Runtime& runtime);
  void Start();

 private:
  void Check();
  void Rotate(const std::string& container_id, const std::string& path);

  EventLoop& loop_;
  FileSystem& files_;
  Runtime& runtime_;
  TimerHandle timer_;
};

// The files that were set aside for a log, oldest first.
std::vector<std::string> RotatedLogs(FileSystem& files, const std::string& path);

}  // namespace drakkar::node
