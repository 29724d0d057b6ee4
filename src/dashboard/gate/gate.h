#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/env/random.h"
#include "net/server/http_server.h"

namespace drakkar::dashboard {

// Secrets of one run of the dashboard. They are never written to a log.
struct Secrets {
  std::string token;   // in the URL that the user opens, and in every request for data
  std::string cookie;  // lets the browser load the page's files; gives no access to data

  static Secrets Make(Random& random);
};

// Decides who may read the page. The port is open to every local user and, through the browser, to
// every web site, so each request must
//
// - be a GET that names a loopback host (a site that rebinds its DNS name cannot),
// - not come from another origin, as far as the browser tells (Origin, Sec-Fetch-Site),
// - for data, carry the token in the Authorization header. Browsers never add that header on their
//   own, and unlike a cookie it is not sent to other ports of the same host.
// - for the page's files, carry the token in the query or the cookie that its first use sets.
class Gate {
 public:
  Gate(Secrets secrets, std::uint16_t port);

  struct Verdict {
    int status = 0;      // 0: allowed
    std::string reason;  // one sentence for a request that is refused
    bool ok() const { return status == 0; }
  };
  Verdict Check(const net::ServerRequest& request) const;

  // Whether the request opens the URL with the token: answer with Welcome then.
  bool IsArrival(const net::ServerRequest& request) const;
  // Redirects to the page without the token in the query. The page gets it in the fragment, which
  // is not sent to any server.
  net::Headers Welcome() const;
  // "/?token=..."
  std::string ArrivalTarget() const;

  static constexpr std::string_view kApiPrefix = "/api/";

 private:
  bool HasCookie(const net::ServerRequest& request) const;

  const Secrets secrets_;
  const std::string cookie_name_;
};

// Headers for every response: nothing may be stored, framed, sniffed or loaded from elsewhere.
net::Headers SafetyHeaders(std::string content_type);

// Whether a Host header names this machine: 127.0.0.1, localhost or [::1], with any port, because
// `ssh -L` may change it.
bool IsLoopbackHost(std::string_view host);

}  // namespace drakkar::dashboard
