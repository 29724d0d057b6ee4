#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/os/file_watcher.h"

namespace drakkar::node {

// Unix sockets that appear and disappear below a directory, including subdirectories. Hidden names
// and anything but sockets are ignored. Loop-bound.
//
// A socket recreated under the same name is reported again. Lost events and a deleted directory
// cause a rescan, so that nothing is missed for longer than kRescanAfter.
class SocketWatch {
 public:
  struct Callbacks {
    std::function<void(const std::string& path)> on_created;
    std::function<void(const std::string& path)> on_removed;
    std::function<void()> on_scanned;  // the whole registry was scanned. May be empty.
  };
  // Directories and sockets beyond these limits are ignored and logged.
  static constexpr std::size_t kMaxDirectories = 256;
  static constexpr std::size_t kMaxSockets = 4'096;
  static constexpr Duration kRescanAfter = std::chrono::seconds(1);

  SocketWatch(EventLoop& loop, FileSystem& files, FileWatcher& watcher, std::string directory,
              Callbacks callbacks);
  ~SocketWatch();

  // Creates the directory if it is missing. Existing sockets are reported from posted tasks.
  Result<void> Start();

 private:
  void AddDirectory(const std::string& directory);
  void OnEvent(const std::string& directory, const FileEvent& event);
  void Inspect(const std::string& path, bool fresh);
  void Forget(const std::string& path);
  void Rescan();
  void RescanLater();

  EventLoop& loop_;
  FileSystem& files_;
  FileWatcher& watcher_;
  const std::string root_;
  Callbacks callbacks_;
  std::map<std::string, std::unique_ptr<FileWatch>> watches_;
  std::map<std::string, bool> sockets_;  // path -> seen by the current scan
  TimerHandle rescan_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
