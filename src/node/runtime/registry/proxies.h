#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result/result.h"
#include "net/client/http_client.h"
#include "net/http/url.h"

namespace drakkar::node {

// The HTTP proxies that the environment names, with the meaning that programs in Go give the
// variables.
class ProxySettings {
 public:
  // Values of HTTP_PROXY, HTTPS_PROXY and NO_PROXY; empty: not set. Proxies are
  // [http://][USER:PASSWORD@]HOST[:PORT].
  static Result<ProxySettings> Parse(const std::string& http, const std::string& https,
                                     const std::string& none);

  // Never for hosts on the loopback interface.
  std::optional<net::HttpProxy> ProxyFor(const net::Url& url) const;
  bool empty() const { return !http_ && !https_; }

 private:
  // An entry of NO_PROXY.
  struct Exception {
    std::string domain;       // ends with this, or is it without the dot
    bool only_below = false;  // ".example.com" excludes example.com itself
    std::string address;      // of a network, in network byte order; empty: a domain
    int prefix_bits = 0;
    std::optional<std::uint16_t> port;  // not set: all
  };
  static std::optional<Exception> ParseException(std::string_view text);
  bool IsExcepted(const net::Url& url) const;

  std::optional<net::HttpProxy> http_;
  std::optional<net::HttpProxy> https_;
  bool excepts_all_ = false;
  std::vector<Exception> exceptions_;
};

}  // namespace drakkar::node
