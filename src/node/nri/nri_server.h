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

// Serves NRI to plugins on a unix socket: whoever connects and registers is told of sandboxes and
// containers, in the order of the plugins' indexes, one after the other. Containers are not updated
// here, so those events never come; a plugin that subscribes to them is told so in the log, and one
// that wants to validate others' changes is turned away.
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
    // What there is when a plugin comes.
    std::function<std::vector<rpc::NriPodSandbox>()> pods;
    std::function<std::vector<rpc::NriContainer>()> containers;
    Duration request_timeout = rpc::kNriRequestTimeout;
  };
  explicit NriServer(Options options);
  ~NriServer() override;

  // Makes the socket's directory and listens (0600).
  Result<void> Start();
  void SetObjects(std::function<std::vector<rpc::NriPodSandbox>()> pods,
                  std::function<std::vector<rpc::NriContainer>()> containers);

  bool Wants(rpc::NriEvent event) const override;
  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) override;
  void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriContainer container,
                        rpc::NriAdjusted done) override;

  std::size_t plugins() const;  // that have registered

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::node
