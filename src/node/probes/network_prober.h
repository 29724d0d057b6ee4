#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::node {

struct HttpProbe {
  std::string scheme = "HTTP";  // or "HTTPS", whose certificate is not verified
  std::string host;
  int port = 0;
  std::string path = "/";  // with its query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string user_agent = "kube-probe";  // sent as "<user_agent>/<version>" unless a header is set
};

struct HttpAnswer {
  int status = 0;    // 3xx: a redirect that was not followed
  std::string body;  // its first kMaxProbeBody bytes
};

// Runs probes and hooks over the network. Calls back once, never inside the call, and within
// `timeout` (kDeadlineExceeded); not at all after it is destroyed.
class NetworkProber {
 public:
  static constexpr std::size_t kMaxProbeBody = 10 * 1024;
  static constexpr int kMaxRedirects = 10;

  virtual ~NetworkProber() = default;
  // Follows up to kMaxRedirects redirects to the same host; one to another host is returned as the
  // answer. The body may be truncated after kMaxProbeBody bytes.
  virtual void Get(HttpProbe probe, Duration timeout,
                   std::function<void(Result<HttpAnswer>)> done) = 0;
  // Whether a TCP connection can be made.
  virtual void Connect(const std::string& host, int port, Duration timeout,
                       std::function<void(Result<void>)> done) = 0;
  // The name of the status that grpc.health.v1.Health/Check reports: "SERVING" is healthy.
  virtual void CheckGrpc(const std::string& host, int port, const std::string& service,
                         Duration timeout, std::function<void(Result<std::string>)> done) = 0;
};

}  // namespace drakkar::node
