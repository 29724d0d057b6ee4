#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "apiserver/pki/pki.h"
#include "apiserver/rest/core.h"
#include "base/exec/uv_loop.h"
#include "features/gates/feature_gates.h"
#include "net/socket/socket.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

class SubresourceProxy;

// The API server as a whole: store, core, access control and HTTPS on one loop.
class ApiServer {
 public:
  struct Options {
    UvLoop& loop;
    FeatureGates gates;
    Metrics& metrics;
    std::unique_ptr<storage::Store> store;
    const Pki& pki;
    net::Address address;
    bool reuse_port = false;
    bool skip_operations_as_list = false;  // --skip-node-operations-form=list
  };
  explicit ApiServer(Options options);
  ~ApiServer();

  // Loads the store, makes what every cluster has (namespaces, roles) and listens. `done` gets the
  // first thing that went wrong.
  void Start(std::function<void(Result<void>)> done);
  // Lets open requests end, makes everything durable, closes.
  void Stop(std::function<void()> done);

  Core& core();
  std::uint16_t port() const;
  void AddProxy(std::string subresource, SubresourceProxy* proxy);
  // What /readyz waits for besides the store.
  void SetReadyCheck(std::function<bool()> is_ready);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::apiserver
