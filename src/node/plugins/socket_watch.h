#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/env/file_watcher.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"

namespace drakkar::node {

// Unix sockets that appear and vanish below a directory, directories in it included. Names that
// begin with a dot and anything but sockets are not seen. Loop-bound.
//
// A socket that is made anew under an old name is reported again. Lost events and a directory that
// vanishes lead to a new scan, so that nothing is missed for longer than kRescanAfter.
class SocketWatch {
 public:
  struct Callbacks {
    std::function<void(const std::string& path)> on_created;
    std::function<void(const std::string& path)> on_removed;
    std::function<void()> on_scanned;  // the whole registry was read. May be empty.
  };
  // Directories and sockets beyond these many are not looked at, and that is logged.
  static constexpr std::size_t kMaxDirectories = 256;
  static constexpr std::size_t kMaxSockets = 4'096;
  static constexpr Duration kRescanAfter = std::chrono::seconds(1);

  SocketWatch(EventLoop& loop, FileSystem& files, FileWatcher& watcher, std::string directory,
              Callbacks callbacks);
  ~SocketWatch();

  // Makes the directory if it is missing. Sockets that are there already are reported, as tasks.
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
  std::map<std::string, bool> sockets_;  // path -> seen by the scan under way
  TimerHandle rescan_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
