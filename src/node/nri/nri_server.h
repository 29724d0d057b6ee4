#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "node/nri/pod_hooks.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// Serves NRI to plugins on a unix socket: whoever connects and registers is told of sandboxes, in the
// order of the plugins' indexes, one after the other.
//
// Loop-bound.
class NriServer final : public PodHooks {
 public:
  // Further connections are closed at once.
  static constexpr std::size_t kMaxPlugins = 64;

  struct Options {
    UvLoop& loop;
    std::string socket_path;
    std::string runtime_version;
    std::function<std::vector<rpc::NriPodSandbox>()> pods;  // what there is when a plugin comes
    Duration request_timeout = rpc::kNriRequestTimeout;
  };
  explicit NriServer(Options options);
  ~NriServer() override;

  // Makes the socket's directory and listens (0600).
  Result<void> Start();
  void SetPods(std::function<std::vector<rpc::NriPodSandbox>()> pods);

  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) override;

  std::size_t plugins() const;  // that have registered

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::node
