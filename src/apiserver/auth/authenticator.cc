#include "apiserver/auth/authenticator.h"

#include <algorithm>

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

bool Authenticator::IsTrustedProxy(const net::ServerRequest& request) const {
  if (proxies_.ca_pem.empty() || request.connection == nullptr || !request.connection->proxy) {
    return false;
  }
  const std::vector<std::string>& allowed = proxies_.allowed_names;
  return allowed.empty() ||
         std::ranges::find(allowed, request.connection->proxy->common_name) != allowed.end();
}

std::optional<UserInfo> Authenticator::FromProxy(const net::ServerRequest& request) const {
  if (!IsTrustedProxy(request)) return std::nullopt;
  UserInfo user = ReadIdentity(request.headers, proxies_.headers);
  if (user.name.empty()) return std::nullopt;
  return user;
}

void Authenticator::RemoveIdentityHeaders(net::Headers& headers) const {
  if (!proxies_.ca_pem.empty()) RemoveIdentity(headers, proxies_.headers);
}

bool Authenticator::NeedsToken(const net::ServerRequest& request) const {
  if (request.headers.Get("authorization").empty()) return false;
  const net::ConnectionInfo* connection = request.connection.get();
  if (connection == nullptr) return true;
  if (IsTrustedProxy(request)) {
    // It may also pass on requests with the credentials of their senders.
    return !connection->peer && !FromProxy(request);
  }
  return !connection->peer && connection->peer_error.empty();
}

std::optional<UserInfo> Authenticator::Authenticate(const net::ServerRequest& request) const {
  std::optional<UserInfo> user = FromProxy(request);
  const bool is_proxy = IsTrustedProxy(request);
  const std::string_view authorization = request.headers.Get("authorization");
  if (user) {
    // As the proxy says.
  } else if (request.connection != nullptr && request.connection->peer) {
    user.emplace();
    user->name = request.connection->peer->common_name;
    user->groups = request.connection->peer->organizations;
  } else if (!is_proxy && request.connection != nullptr &&
             !request.connection->peer_error.empty()) {
    return std::nullopt;
  } else if (authorization.size() > kBearer.size() &&
             net::EqualsIgnoreCase(authorization.substr(0, kBearer.size()), kBearer)) {
    user = FromToken(authorization.substr(kBearer.size()));
    if (!user) return std::nullopt;
  } else if (!authorization.empty() || is_proxy) {
    return std::nullopt;
  } else {
    return Anonymous();
  }
  // Our own identity towards nodes. If we receive it, someone has made us call ourselves.
  if (user->name == kNodeClientUser) return std::nullopt;
  const auto has = [&](std::string_view group) {
    return std::ranges::find(user->groups, group) != user->groups.end();
  };
  // A proxy may have added the group, or have let a stranger through.
  const bool is_known = user->name != kAnonymousUser && !has(kUnauthenticatedGroup);
  if (is_known && !has(kAuthenticatedGroup)) user->groups.emplace_back(kAuthenticatedGroup);
  return user;
}

}  // namespace drakkar::apiserver
