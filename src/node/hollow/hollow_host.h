#pragma once

#include <string>

#include "base/env/device_node.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/memory_file_watcher.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "node/status/node_facts.h"
#include "rpc/testing/memory_transport.h"

namespace drakkar::node {

// A machine in memory: files, unix sockets and containers, connected as on a real one. A listening
// socket is a file, and its directory's watchers are notified. Outlives the agents on it.
struct HollowHost {
  static constexpr char kRegistry[] = "/var/lib/kubelet/plugins_registry";
  static constexpr char kCdiDirectory[] = "/var/run/cdi";

  explicit HollowHost(EventLoop& loop);

  MemoryFileSystem files;
  MemoryFileWatcher watcher;
  rpc::MemoryTransport transport;
  HollowMachine machine;  // with the image docker.io/library/busybox:1

  static DeviceNodeProbe& NoDevices();
  static NodeFacts Facts(const std::string& name, std::int64_t cpus, std::int64_t memory_gib);
};

}  // namespace drakkar::node
