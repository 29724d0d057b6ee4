#pragma once

#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "base/os/file_watcher.h"
#include "base/os/process.h"
#include "cmd/drakkar/pod_network_flags.h"
#include "node/runtime/network/built_in_network.h"
#include "node/runtime/network/cni_executor.h"
#include "node/runtime/network/cni_network.h"

namespace drakkar::cmd {

// The pod network of a node with everything it consists of. Lives on `loop`; destroy the runtime
// that uses it first.
class NodeNetwork {
 public:
  NodeNetwork(UvLoop& loop, FileWatcher& watcher, const PodNetworkOptions& options,
              const std::string& data_dir);

  // Enables joining. Without this call, networks can only be torn down.
  void Start();

  // Null if pods share the host's network.
  node::PodNetwork* network() const { return network_.get(); }
  // Null without a built-in network.
  node::BuiltInNetwork* built_in() const { return built_in_.get(); }

 private:
  std::unique_ptr<Spawner> spawner_;
  std::unique_ptr<node::CniExecutor> plugins_;
  std::unique_ptr<node::BuiltInNetwork> built_in_;
  std::unique_ptr<node::CniNetwork> network_;
};

}  // namespace drakkar::cmd
