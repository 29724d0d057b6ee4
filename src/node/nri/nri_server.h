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
// the other, ordered by index, and may adjust, update, evict and validate.
//
// Events, synchronizations and updates run one at a time, as plugins expect it from other runtimes:
// the updates of an event are in force before the next event is delivered, and a new plugin misses
// nothing. A plugin that disconnects or does not answer in time is dropped and holds up nothing,
// unless it is required.
//
// Loop-bound.
class NriServer final : public PodHooks {
 public:
  // Further connections are closed at once.
  static constexpr std::size_t kMaxPlugins = 64;
  // Events that wait for their turn; further ones fail.
  static constexpr std::size_t kMaxWaiting = 8'192;

  struct Options {
    UvLoop& loop;
    std::string socket_path;
    std::string runtime_version;
    // Containers are not created while one of these plugins is not connected.
    std::vector<std::string> required_plugins;
    Duration request_timeout = rpc::kNriRequestTimeout;
  };
  explicit NriServer(Options options);
  ~NriServer() override;

  // Creates the socket's directory and listens (0600).
  Result<void> Start();

  void Connect(HookedObjects* objects) override;
  bool Wants(rpc::NriEvent event) const override;
  void Deliver(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriResources resources,
               rpc::NriDone done) override;
  void DeliverContainer(rpc::NriEvent event, rpc::NriPodSandbox pod, rpc::NriContainer container,
                        rpc::NriResources resources, Changed done) override;

  std::size_t plugins() const;  // registered ones

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::node
