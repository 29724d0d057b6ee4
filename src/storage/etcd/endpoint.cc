#include "storage/etcd/endpoint.h"

#include "base/text/text.h"

namespace drakkar::storage {
namespace {

constexpr std::size_t kMaxEndpoints = 64;

Error Malformed(std::string_view url, std::string_view why) {
  return InvalidArgument(
      StrCat(Quote(url), " is not an etcd server: ", why, "; write it as https://HOST:PORT"));
}

}  // namespace

Result<EtcdEndpoint> ParseEtcdEndpoint(std::string_view url, bool tls_configured) {
  EtcdEndpoint endpoint;
  endpoint.url = url;
  endpoint.is_tls = tls_configured;
  std::string_view rest = url;
  if (const std::size_t at = url.find("://"); at != std::string_view::npos) {
    const std::string scheme = ToLower(url.substr(0, at));
    rest = url.substr(at + 3);
    if (scheme == "unix" || scheme == "unixs") {
      endpoint.is_tls = scheme == "unixs";
      if (rest.empty()) return Malformed(url, "the socket path is missing");
      endpoint.socket_path = rest;
      return endpoint;
    }
    if (scheme != "http" && scheme != "https") {
      return Malformed(url, StrCat("unknown scheme ", Quote(scheme)));
    }
    endpoint.is_tls = scheme == "https";
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != std::string_view::npos) return Malformed(url, "it has a path");
  const std::size_t colon = rest.rfind(':');
  const bool is_ipv6 = rest.starts_with('[');
  if (colon == std::string_view::npos || (is_ipv6 && rest[colon - 1] != ']')) {
    return Malformed(url, "the port is missing");
  }
  std::string_view host = rest.substr(0, colon);
  if (is_ipv6) host = host.substr(1, host.size() - 2);
  if (host.empty()) return Malformed(url, "the host is missing");
  if (!is_ipv6 && host.find(':') != std::string_view::npos) {
    return Malformed(url, "an IPv6 address needs brackets");
  }
  const std::optional<std::int64_t> port = ParseInt64(rest.substr(colon + 1));
  if (!port || *port < 1 || *port > 65'535) return Malformed(url, "the port is invalid");
  endpoint.host = host;
  endpoint.port = static_cast<std::uint16_t>(*port);
  return endpoint;
}

Result<std::vector<EtcdEndpoint>> ParseEtcdEndpoints(const std::vector<std::string>& urls,
                                                     bool tls_configured) {
  if (urls.empty()) return InvalidArgument("no etcd server is given");
  if (urls.size() > kMaxEndpoints) {
    return InvalidArgument(
        StrCat(urls.size(), " etcd servers are given, the limit is ", kMaxEndpoints));
  }
  std::vector<EtcdEndpoint> endpoints;
  for (const std::string& url : urls) {
    ASSIGN_OR_RETURN(EtcdEndpoint endpoint, ParseEtcdEndpoint(Trim(url), tls_configured));
    for (const EtcdEndpoint& other : endpoints) {
      if (other.host == endpoint.host && other.port == endpoint.port &&
          other.socket_path == endpoint.socket_path) {
        return InvalidArgument(StrCat("the etcd server ", Quote(url), " is given twice"));
      }
    }
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace drakkar::storage
