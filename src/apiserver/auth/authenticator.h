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

// Authenticates a request: by client certificate (common name and organizations), else by bearer
// token, else as anonymous. Rejects the identity that the API server itself uses towards nodes.
class Authenticator {
 public:
  // The user of a token; nullopt if it does not verify.
  using TokenVerifier = std::function<std::optional<UserInfo>(std::string_view token)>;

  void AddStaticToken(std::string token, UserInfo user);
  void AddTokenVerifier(TokenVerifier verifier) { verifiers_.push_back(std::move(verifier)); }

  // Whether the bearer token decides. Then Authenticate calls the verifiers and must run on their
  // loop. Otherwise the connection decides, and Authenticate may run on any loop.
  static bool NeedsToken(const net::ServerRequest& request);
  // nullopt if the credentials are invalid.
  std::optional<UserInfo> Authenticate(const net::ServerRequest& request) const;

 private:
  std::optional<UserInfo> FromToken(std::string_view token) const;

  std::map<std::string, UserInfo, std::less<>> tokens_;
  std::vector<TokenVerifier> verifiers_;
};

}  // namespace drakkar::apiserver
