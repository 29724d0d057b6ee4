#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request/request.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

constexpr std::string_view kAuthenticatedGroup = "system:authenticated";
constexpr std::string_view kAnonymousUser = "system:anonymous";
constexpr std::string_view kUnauthenticatedGroup = "system:unauthenticated";

// Who sent a request: by client certificate (common name and organizations), else by bearer token,
// else nobody in particular. The identity that the API server itself has towards nodes is refused.
class Authenticator {
 public:
  // What a token stands for; nullopt if it does not verify.
  using TokenVerifier = std::function<std::optional<UserInfo>(std::string_view token)>;

  void AddStaticToken(std::string token, UserInfo user);
  void AddTokenVerifier(TokenVerifier verifier) { verifiers_.push_back(std::move(verifier)); }

  // Whether a bearer token decides: then Authenticate asks the verifiers, on whose loop it must
  // run. Otherwise the connection says it all, and Authenticate may run anywhere.
  static bool NeedsToken(const net::ServerRequest& request);
  // nullopt: credentials were given and are not valid.
  std::optional<UserInfo> Authenticate(const net::ServerRequest& request) const;

 private:
  std::optional<UserInfo> FromToken(std::string_view token) const;

  std::map<std::string, UserInfo, std::less<>> tokens_;
  std::vector<TokenVerifier> verifiers_;
};

}  // namespace drakkar::apiserver
