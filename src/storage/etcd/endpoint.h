#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::storage {

// One etcd member, as --etcd-servers names it.
struct EtcdEndpoint {
  std::string url;  // as given, for messages
  std::string host;
  std::uint16_t port = 0;
  std::string socket_path;  // set: a unix socket instead of host and port
  bool is_tls = false;
};

// "http://10.0.0.1:2379", "https://etcd-0:2379", "unix:///run/etcd.sock". Without a scheme
// ("10.0.0.1:2379") `tls_configured` decides, as in etcd's own clients. The error says how to write
// it.
Result<EtcdEndpoint> ParseEtcdEndpoint(std::string_view url, bool tls_configured);

// All of them; at least one, each once.
Result<std::vector<EtcdEndpoint>> ParseEtcdEndpoints(const std::vector<std::string>& urls,
                                                     bool tls_configured);

}  // namespace drakkar::storage
