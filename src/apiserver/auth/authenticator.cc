#include "apiserver/auth/authenticator.h"

#include "apiserver/request/node_identity.h"
#include "net/tls/crypto.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kBearer = "Bearer ";

UserInfo Anonymous() {
  UserInfo user;
  user.name = kAnonymousUser;
  user.groups.emplace_back(kUnauthenticatedGroup);
  return user;
}

}  // namespace

void Authenticator::AddStaticToken(std::string token, UserInfo user) {
  tokens_.emplace(std::move(token), std::move(user));
}

std::optional<UserInfo> Authenticator::FromToken(std::string_view token) const {
  // Compares with every token, in constant time, so that the timing reveals nothing about the
  // others.
  const UserInfo* found = nullptr;
  for (const auto& [known, user] : tokens_) {
    if (net::EqualsConstantTime(known, token)) found = &user;
  }
  if (found != nullptr) return *found;
  for (const TokenVerifier& verify : verifiers_) {
    if (std::optional<UserInfo> user = verify(token)) return user;
  }
  return std::nullopt;
}

bool Authenticator::NeedsToken(const net::ServerRequest& request) {
  const net::ConnectionInfo* connection = request.connection.get();
  const bool connection_decides =
      connection != nullptr && (connection->peer || !connection->peer_error.empty());
  return !connection_decides && !request.headers.Get("authorization").empty();
}

std::optional<UserInfo> Authenticator::Authenticate(const net::ServerRequest& request) const {
  std::optional<UserInfo> user;
  const std::string_view authorization = request.headers.Get("authorization");
  if (request.connection != nullptr && request.connection->peer) {
    // Our own identity towards nodes. If we receive it, someone has made us call ourselves.
    if (request.connection->peer->common_name == kNodeClientUser) return std::nullopt;
    user.emplace();
    user->name = request.connection->peer->common_name;
    user->groups = request.connection->peer->organizations;
  } else if (request.connection != nullptr && !request.connection->peer_error.empty()) {
    return std::nullopt;
  } else if (authorization.size() > kBearer.size() &&
             net::EqualsIgnoreCase(authorization.substr(0, kBearer.size()), kBearer)) {
    user = FromToken(authorization.substr(kBearer.size()));
    if (!user) return std::nullopt;
  } else if (!authorization.empty()) {
    return std::nullopt;
  } else {
    return Anonymous();
  }
  user->groups.emplace_back(kAuthenticatedGroup);
  return user;
}

}  // namespace drakkar::apiserver
