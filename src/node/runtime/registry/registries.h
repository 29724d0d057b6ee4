#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "node/runtime/registry/proxies.h"
#include "node/runtime/registry/registry_fetch.h"

namespace drakkar::node {

// Settings for reaching registries.
struct RegistrySettings {
  struct Host {
    RegistryCredential credential;  // empty: none
    std::string ca_pem;             // empty: the system's root certificates
    bool skip_verify = false;       // of the server's certificate
  };
  // "docker.io" -> URLs that are tried first.
  std::map<std::string, std::vector<std::string>> mirrors;
  std::map<std::string, Host> hosts;  // by host[:port]
  std::set<std::string> insecure;     // hosts that may be reached over plain HTTP
  ProxySettings proxies;
};

// "127.0.0.1:5000", "localhost:5000", "[::1]:5000".
bool IsLoopbackRegistry(std::string_view host);

// The endpoints of each registry, with connections of their own. Lives on its loop.
class Registries {
 public:
  Registries(UvLoop& loop, RegistrySettings settings);
  ~Registries();

  // Mirrors first. Registries on the loopback interface and insecure ones are tried over HTTPS, and
  // over HTTP if that fails.
  std::vector<RegistryEndpoint> EndpointsOf(const std::string& host);
  // The node's own credentials for a registry, for pods without any.
  std::vector<RegistryCredential> CredentialsOf(const std::string& host) const;

 private:
  class Client;
  RegistryHttp* HttpOf(const std::string& authority);

  UvLoop& loop_;
  const RegistrySettings settings_;
  std::map<std::string, std::unique_ptr<Client>> clients_;  // by host
};

}  // namespace drakkar::node
