#include "apiserver/auth/bootstrap_tokens.h"

#include "base/text/text.h"
#include "bootstrap/token.h"
#include "net/tls/crypto.h"

namespace drakkar::apiserver {

std::optional<UserInfo> VerifyBootstrapToken(const Core& core, std::string_view token,
                                             WallTime now) {
  const std::optional<bootstrap::Token> given = bootstrap::ParseToken(token);
  if (!given) return std::nullopt;
  const api::ObjectPtr secret =
      core.Find("", "secrets", StrCat(bootstrap::kSecretNamespace, "/", given->SecretName()));
  if (secret == nullptr || secret->is_being_deleted()) return std::nullopt;
  const Result<bootstrap::TokenRecord> record = bootstrap::ReadTokenSecret(secret->root());
  if (!record.ok() || !net::EqualsConstantTime(record->token.secret, given->secret) ||
      !record->authenticates || record->HasExpired(now)) {
    return std::nullopt;
  }
  UserInfo user;
  user.name = StrCat(bootstrap::kUserPrefix, given->id);
  user.groups.emplace_back(bootstrap::kGroup);
  for (const std::string& group : record->extra_groups) user.groups.push_back(group);
  return user;
}

}  // namespace drakkar::apiserver
