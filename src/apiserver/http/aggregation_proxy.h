#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "apiserver/aggregation/aggregated_apis.h"
#include "apiserver/http/open_requests.h"
#include "apiserver/request/request.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// Passes requests on to the servers behind APIServices, watches and upgrades included, in the name
// of the caller: X-Remote-User and its siblings, which those servers accept from the front proxy's
// certificate. The caller's own credentials do not go along.
//
// Bound to an HTTP loop; must outlive its requests. Bounds: kMaxOpen requests at a time, of which
// kMaxOpenPerApi for one API, so that a server that hangs leaves room for the others, and
// kMaxOpenPerUser of one user (429 beyond); kRequestTimeout for requests that are neither watches
// nor upgrades; kMaxPendingBytes of answers that clients do not read, beyond which the largest of
// the user who has most of them is aborted; kMaxHops servers that pass a request on to each other.
class AggregationProxy {
 public:
  static constexpr std::size_t kMaxOpen = 1'000;
  static constexpr std::size_t kMaxOpenPerApi = 250;
  static constexpr std::size_t kMaxOpenPerUser = 100;
  static constexpr std::size_t kMaxPendingBytes = std::size_t{32} << 20;
  static constexpr std::size_t kMaxClients = 100;
  static constexpr Duration kRequestTimeout = std::chrono::seconds(60);
  static constexpr int kMaxHops = 3;

  // `certificate`: the front proxy's; may be null.
  AggregationProxy(UvLoop& loop, std::shared_ptr<net::CertificateSource> certificate);
  ~AggregationProxy();

  struct Target {
    AggregatedApiPtr api;
    std::string host;  // "10.0.0.7:4443"
    UserInfo user;     // has been authorized
  };
  void Serve(Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer);

  std::size_t open_count() const { return open_.count(); }

 private:
  class Copy;
  struct Client;
  using Key = std::tuple<std::string, std::string, bool>;  // server name, CA, insecure
  // One request that is open, while it exists.
  struct Place;

  std::shared_ptr<Client> ClientFor(const AggregatedApi& api);
  bool DropOldest();

  UvLoop& loop_;
  const std::shared_ptr<net::CertificateSource> certificate_;
  std::map<Key, std::shared_ptr<Client>> clients_;
  std::uint64_t uses_ = 0;
  OpenRequests open_{{kMaxOpen, kMaxOpenPerApi, kMaxOpenPerUser}};
  // The answers that are being copied. Shared with them.
  const std::shared_ptr<std::set<Copy*>> copies_ = std::make_shared<std::set<Copy*>>();
};

}  // namespace drakkar::apiserver
