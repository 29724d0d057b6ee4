#pragma once

#include <memory>
#include <string>

#include "apiserver/http/open_requests.h"
#include "apiserver/http/request_info.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// Passes requests for .../proxy/PATH on to what the path's object stands for, with their method,
// query, headers and body, and copies the answer as it arrives, no faster than the client reads.
// Redirects within the other server lead back through this path. The caller's credentials and
// statements about who it is stay here, and so do the answer's permissions for scripts of other
// origins, which would hold for the whole API server.
//
// Bound to an HTTP loop; must outlive its requests. Bounds: kMaxOpen requests at a time, of which
// kMaxOpenPerBackend for one server and kMaxOpenPerUser of one user (429 beyond); kMaxUnread bytes
// of an answer in memory; kHeadTimeout until the answer begins. After that it may go on for ever.
class RequestForwarder {
 public:
  static constexpr std::size_t kMaxOpen = 1'000;
  static constexpr std::size_t kMaxOpenPerBackend = 250;
  static constexpr std::size_t kMaxOpenPerUser = 100;
  static constexpr std::size_t kMaxUnread = 64u << 10;
  static constexpr Duration kHeadTimeout = std::chrono::minutes(5);

  // `tls`: for backends with https, and how we identify ourselves to them.
  RequestForwarder(UvLoop& loop, net::TlsClientOptions tls, Duration head_timeout = kHeadTimeout);
  ~RequestForwarder();

  struct Backend {
    std::string url;          // "http://10.0.0.7:8080"
    std::string peer;         // for TlsClientOptions::check_peer
    bool keeps_host = false;  // whether it sees the Host of the client's request
  };
  // `user` is who the request counts for; it has been authorized.
  void Forward(Backend backend, const RequestInfo& info, const std::string& user,
               net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer);

 private:
  UvLoop& loop_;
  const Duration head_timeout_;
  net::HttpClient http_;
  OpenRequests open_{{kMaxOpen, kMaxOpenPerBackend, kMaxOpenPerUser}};
};

// Where a redirect leads for the client. `location` is the answer's; one without a host, or with
// one of `hosts`, stays within the backend, whose root is `prefix` here.
std::string RewrittenLocation(const std::string& location, const std::string& prefix,
                              std::initializer_list<std::string_view> hosts);

}  // namespace drakkar::apiserver
