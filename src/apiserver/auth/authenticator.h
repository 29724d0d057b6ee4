#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/request/identity_headers.h"
#include "apiserver/request/request.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
constexpr std::string_view kAnonymousUser = "system:anonymous";
constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";

// Front proxies before this server: their clients are whom the headers name. A proxy has a
// certificate of an authority for proxies (net::TlsServerOptions::proxy_ca_pem).
struct FrontProxies {
  std::string ca_pem = {};                      // empty: there are none
  std::vector<std::string> allowed_names = {};  // common names; empty: any
  IdentityHeaders headers = {};
};

// Authenticates a request: by the headers of a front proxy, by client certificate (common name and
// organizations), else by bearer token, else as anonymous. Rejects the identity that the API server
// itself uses towards nodes.
class Authenticator {
 public:
  // Before any request is authenticated.
  void TrustProxies(FrontProxies proxies) { proxies_ = std::move(proxies); }
  // Removes the headers with which a proxy may name its clients: they are for us only.
  void RemoveIdentityHeaders(net::Headers& headers) const;

  // The user of a token; nullopt if it does not verify.
  using TokenVerifier = std::function<std::optional<UserInfo>(std::string_view token)>;

  void AddStaticToken(std::string token, UserInfo user);
  void AddTokenVerifier(TokenVerifier verifier) { verifiers_.push_back(std::move(verifier)); }

  // Whether the bearer token decides. Then Authenticate calls the verifiers and must run on their
  // loop. Otherwise the connection decides, and Authenticate may run on any loop.
  bool NeedsToken(const net::ServerRequest& request) const;
  // nullopt if the credentials are invalid.
  std::optional<UserInfo> Authenticate(const net::ServerRequest& request) const;

 private:
  std::optional<UserInfo> FromToken(std::string_view token) const;
  bool IsTrustedProxy(const net::ServerRequest& request) const;
  // Whom a trusted proxy names.
  std::optional<UserInfo> FromProxy(const net::ServerRequest& request) const;

  FrontProxies proxies_;
  std::map<std::string, UserInfo, std::less<>> tokens_;
  std::vector<TokenVerifier> verifiers_;
};

}  // namespace drakkar::apiserver
