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

// Serves NRI on a unix socket: registered plugins receive sandbox and container events one after
// the other, ordered by index. This node never updates containers through NRI, so it never sends
// those events. Subscribing to them is logged; a plugin that wants to validate adjustments is
// refused.
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
    // The sandboxes and containers that exist when a plugin registers.
    std::function<std::vector<rpc::NriPodSandbox>()> pods;
    std::function<std::vector<rpc::NriContainer>()> containers;
    Duration request_timeout = rpc::kNriRequestTimeout;
  };
  explicit NriServer(Options options);
  ~NriServer() override;

  // Creates the socket's directory and listens (0600).
  Result<void> Start();
  void SetObjects(std::function<std::vector<rpc::NriPodSandbox>()> pods,
                  std::function<std::vector<rpc::NriContainer>()> containers);

  bool Wants(rpc::NriEvent event) const override;
  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriDone done) override;
  void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriContainer container,
                        rpc::NriAdjusted done) override;

  std::size_t plugins() const;  // registered ones

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::node
