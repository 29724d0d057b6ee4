#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/result/result.h"

// Bootstrap tokens: "abcdef.0123456789abcdef", kept as Secrets bootstrap-token-abcdef.
namespace drakkar::bootstrap {

inline constexpr std::string_view kSecretType = "bootstrap.kubernetes.io/token";
inline constexpr std::string_view kSecretNamespace = "kube-system";
inline constexpr std::string_view kSecretPrefix = "bootstrap-token-";
// Whoever has a token is system:bootstrap:ID in this group.
inline constexpr std::string_view kUserPrefix = "system:bootstrap:";
inline constexpr std::string_view kGroup = "system:bootstrappers";

struct Token {
  std::string id;      // public, six characters
  std::string secret;  // sixteen characters
  std::string ToString() const { return id + "." + secret; }
  std::string SecretName() const { return std::string(kSecretPrefix) + id; }
  bool operator==(const Token&) const = default;
};

// nullopt if the text is not a token. Its length is checked before anything else.
std::optional<Token> ParseToken(std::string_view text);
Token MakeToken(Random& random);

// What a Secret says about its token.
struct TokenRecord {
  Token token;
  std::optional<WallTime> expires;  // nothing: never
  bool authenticates = false;
  bool signs = false;
  std::vector<std::string> extra_groups;
  std::string description;

  bool HasExpired(WallTime now) const { return expires && *expires <= now; }
};

// Fails if the Secret is of another type, or its name, token, groups or expiration are not valid. A
// token whose expiration cannot be read is never accepted.
Result<TokenRecord> ReadTokenSecret(api::Value secret);
// The Secret to create for a token.
api::TreePtr MakeTokenSecret(const TokenRecord& record);

// A group that a token may put its holder into: system:bootstrappers:NAME.
bool IsExtraGroup(std::string_view group);

// The signature of `content` with the token's secret: a JSON Web Signature (HS256) without its
// payload, as in RFC 7515 appendix F.
std::string DetachedSignature(std::string_view content, const Token& token);

}  // namespace drakkar::bootstrap
