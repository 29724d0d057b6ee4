#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/pki/pki.h"
#include "apiserver/rest/core.h"
#include "apiserver/rest/event_expiry.h"
#include "base/exec/uv_loop.h"
#include "features/gates/feature_gates.h"
#include "net/socket/socket.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

class SubresourceProxy;

// How many requests of users other than administrators are handled at a time. One user gets a
// quarter of them, and a quarter is reserved for the cluster's components.
struct InFlightLimits {
  std::size_t reads = 400;
  std::size_t writes = 200;
};

// The whole API server: store, core and access control on one loop, HTTPS on loops of its own.
// Construct, use and destroy it on `loop`.
class ApiServer {
 public:
  struct Options {
    UvLoop& loop;
    FeatureGates gates;
    Metrics& metrics;
    std::unique_ptr<storage::Store> store;
    StoreLayout layout = {};
    const Pki& pki;
    net::Address address;
    std::string second_host;  // as in net::HttpServerOptions
    // The address that others use, for the Service "kubernetes"; empty: that of `address`.
    std::string advertise_address = {};
    bool reuse_port = false;
    // Number of threads that connections are spread over; 0 serves them on `loop`.
    std::size_t http_loops = 0;
    bool skip_operations_as_list = false;  // --skip-node-operations-form=list
    EventLimits events = {};
    bool low_latency = false;  // keep processors awake while there are writes
    InFlightLimits in_flight = {};
    // PEM of the key that signs service account tokens (empty: that of `pki`), and of further keys
    // whose tokens are accepted.
    std::string token_signing_key = {};
    std::vector<std::string> token_keys = {};
    TokenNames token_names = {};
    FrontProxies front_proxies = {};
  };
  explicit ApiServer(Options options);
  ~ApiServer();

  // Loads the store, creates what every cluster has (namespaces, roles) and listens. `done` gets
  // the first error.
  void Start(std::function<void(Result<void>)> done);
  // The best number of HTTP loops for a machine with this many processors.
  static std::size_t DefaultHttpLoops(std::size_t processors);
  // Finishes open requests, makes everything durable, and closes.
  void Stop(std::function<void()> done);

  Core& core();
  std::uint16_t port() const;
  // Serves subresources ("pods/log"); call before Start. `make` is called once on each HTTP loop,
  // and its result is destroyed there.
  using MakeProxy = std::function<std::unique_ptr<SubresourceProxy>(UvLoop& loop)>;
  void AddProxy(std::vector<std::string> subresources, MakeProxy make);
  // What /readyz waits for in addition to the store.
  void SetReadyCheck(std::function<bool()> is_ready);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::apiserver
