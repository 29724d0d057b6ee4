#include "node/runtime/registry/registries.h"

#include "base/text/text.h"
#include "net/http/url.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kDockerHub = "docker.io";
constexpr std::string_view kDockerHubServer = "registry-1.docker.io";
constexpr std::size_t kMaxConnections = 8;

}  // namespace

bool IsLoopbackRegistry(std::string_view host) {
  if (host.starts_with("[::1]")) return true;
  const std::string_view name = host.substr(0, host.find(':'));
  if (name == "localhost") return true;
  return name.starts_with("127.") &&
         name.find_first_not_of("0123456789.") == std::string_view::npos;
}

class Registries::Client final : public RegistryHttp {
 public:
  Client(UvLoop& loop, net::HttpClientOptions options) : http_(loop, std::move(options)) {}
  std::unique_ptr<net::RequestHandle> Stream(net::ClientRequest request,
                                             net::StreamSink& sink) override {
    return http_.Stream(std::move(request), sink);
  }

 private:
  net::HttpClient http_;
};

Registries::Registries(UvLoop& loop, RegistrySettings settings)
    : loop_(loop), settings_(std::move(settings)) {}
Registries::~Registries() = default;

RegistryHttp* Registries::HttpOf(const std::string& authority) {
  const auto host = settings_.hosts.find(authority);
  // Hosts without settings share their connections.
  const std::string key = host == settings_.hosts.end() ? "" : authority;
  auto& client = clients_[key];
  if (client == nullptr) {
    net::HttpClientOptions options;
    options.max_connections_per_host = kMaxConnections;
    if (!settings_.proxies.empty()) {
      options.proxy_of = [this](const net::Url& url) { return settings_.proxies.ProxyFor(url); };
    }
    if (host != settings_.hosts.end()) {
      options.tls.ca_pem = host->second.ca_pem;
      options.tls.insecure = host->second.skip_verify;
    }
    client = std::make_unique<Client>(loop_, std::move(options));
  }
  return client.get();
}

std::vector<RegistryCredential> Registries::CredentialsOf(const std::string& host) const {
  const auto found = settings_.hosts.find(host);
  if (found == settings_.hosts.end() || found->second.credential.username.empty()) return {};
  return {found->second.credential};
}

std::vector<RegistryEndpoint> Registries::EndpointsOf(const std::string& host) {
  std::vector<RegistryEndpoint> endpoints;
  if (const auto mirrors = settings_.mirrors.find(host); mirrors != settings_.mirrors.end()) {
    for (const std::string& url : mirrors->second) {
      const auto parsed = net::ParseUrl(url);
      if (!parsed.ok()) continue;  // refused when the settings were read
      std::string base = url;
      while (base.ends_with('/')) base.pop_back();
      endpoints.push_back({.base = std::move(base),
                           .allows_http = parsed->scheme == "http",
                           .http = HttpOf(parsed->Authority()),
                           .is_own = false,
                           .credentials = CredentialsOf(parsed->Authority())});
    }
  }
  const std::string server(host == kDockerHub ? kDockerHubServer : host);
  const bool allows_http = IsLoopbackRegistry(host) || settings_.insecure.contains(host);
  endpoints.push_back(
      {.base = "https://" + server, .allows_http = allows_http, .http = HttpOf(host)});
  if (allows_http) {
    endpoints.push_back({.base = "http://" + server, .allows_http = true, .http = HttpOf(host)});
  }
  return endpoints;
}

}  // namespace drakkar::node
