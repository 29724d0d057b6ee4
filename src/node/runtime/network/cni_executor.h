#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/os/process.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

struct CniCall {
  std::string plugin;   // its type
  std::string command;  // "ADD", "CHECK", "DEL", "GC", "STATUS"
  std::string container_id;
  std::string namespace_path;
  std::string interface;
  std::string arguments;  // CNI_ARGS
  std::string input;      // JSON
};

// Runs plugins. `done` gets the plugin's output or an error; it runs once, never inside the call,
// and not after the executor is destroyed.
class CniExecutor {
 public:
  virtual ~CniExecutor() = default;
  virtual bool HasPlugin(const std::string& type) const = 0;
  virtual void Run(CniCall call, RuntimeCallback<std::string> done) = 0;
};

// Plugins are programs in `directories`; the first one found is used.
struct CniExecutorOptions {
  EventLoop& loop;
  FileSystem& files;
  Spawner& spawner;
  std::vector<std::string> directories;
  // A plugin that takes longer is killed with everything it started.
  Duration timeout = std::chrono::seconds(60);
};
std::unique_ptr<CniExecutor> MakeCniExecutor(CniExecutorOptions options);

}  // namespace drakkar::node
