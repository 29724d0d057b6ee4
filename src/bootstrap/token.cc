#include "bootstrap/token.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/crypto.h"

namespace drakkar::bootstrap {
namespace {

constexpr std::size_t kIdLength = 6;
constexpr std::size_t kSecretLength = 16;
constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
// Maximum number of groups of one token, and their maximum total length.
constexpr std::size_t kMaxExtraGroups = 64;

// Keys of the Secret.
constexpr std::string_view kId = "token-id";
constexpr std::string_view kTokenSecret = "token-secret";
constexpr std::string_view kExpiration = "expiration";
constexpr std::string_view kDescription = "description";
constexpr std::string_view kExtraGroups = "auth-extra-groups";
constexpr std::string_view kAuthentication = "usage-bootstrap-authentication";
constexpr std::string_view kSigning = "usage-bootstrap-signing";

bool IsAlphanumeric(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return kAlphabet.find(c) != std::string_view::npos; });
}

std::string RandomText(Random& random, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += kAlphabet[random.Below(kAlphabet.size())];
  return text;
}

// The decoded value; "" if it is missing or not valid base64.
std::string ReadKey(api::Value secret, std::string_view key) {
  const Result<std::string> value = Base64Decode(secret["data"].Entry(key).str());
  return value.ok() ? *value : std::string();
}

}  // namespace

std::optional<Token> ParseToken(std::string_view text) {
  if (text.size() != kIdLength + 1 + kSecretLength || text[kIdLength] != '.') return std::nullopt;
  const std::string_view id = text.substr(0, kIdLength);
  const std::string_view secret = text.substr(kIdLength + 1);
  if (!IsAlphanumeric(id) || !IsAlphanumeric(secret)) return std::nullopt;
  return Token{std::string(id), std::string(secret)};
}

Token MakeToken(Random& random) {
  return {RandomText(random, kIdLength), RandomText(random, kSecretLength)};
}

bool IsExtraGroup(std::string_view group) {
  constexpr std::string_view kPrefix = "system:bootstrappers:";
  constexpr std::size_t kMaxNameBytes = 256;
  if (!group.starts_with(kPrefix)) return false;
  const std::string_view name = group.substr(kPrefix.size());
  if (name.empty() || name.size() > kMaxNameBytes || !IsAlphanumeric(name.substr(name.size() - 1)))
    return false;
  return std::ranges::all_of(name, [](char c) {
    return c == ':' || c == '-' || kAlphabet.find(c) != std::string_view::npos;
  });
}

Result<TokenRecord> ReadTokenSecret(api::Value secret) {
  if (secret["type"].str() != kSecretType) {
    return InvalidArgument(StrCat("the type is not ", kSecretType));
  }
  TokenRecord record;
  const std::optional<Token> token =
      ParseToken(StrCat(ReadKey(secret, kId), ".", ReadKey(secret, kTokenSecret)));
  if (!token) return InvalidArgument("token-id and token-secret are not a token");
  record.token = *token;
  if (secret["metadata"]["name"].str() != token->SecretName()) {
    return InvalidArgument(StrCat("the name is not ", token->SecretName()));
  }
  if (const std::string expiration = ReadKey(secret, kExpiration); !expiration.empty()) {
    const Result<WallTime> time = api::ParseTime(expiration);
    if (!time.ok()) return time.error().Prefixed("expiration");
    record.expires = *time;
  }
  const std::string groups = ReadKey(secret, kExtraGroups);
  for (const std::string_view group : Split(groups, ',')) {
    if (groups.empty()) break;
    if (!IsExtraGroup(group) || record.extra_groups.size() == kMaxExtraGroups) {
      return InvalidArgument(StrCat("auth-extra-groups: ", Quote(group), " is not allowed"));
    }
    record.extra_groups.emplace_back(group);
  }
  record.authenticates = ReadKey(secret, kAuthentication) == "true";
  record.signs = ReadKey(secret, kSigning) == "true";
  record.description = ReadKey(secret, kDescription);
  return record;
}

api::TreePtr MakeTokenSecret(const TokenRecord& record) {
  api::Draft data = api::Draft::Object();
  const auto set = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) data.Entry(key) = Base64Encode(value);
  };
  set(kId, record.token.id);
  set(kTokenSecret, record.token.secret);
  if (record.expires) set(kExpiration, api::FormatTime(*record.expires));
  set(kDescription, record.description);
  set(kExtraGroups, Join(record.extra_groups, ","));
  set(kAuthentication, record.authenticates ? "true" : "");
  set(kSigning, record.signs ? "true" : "");
  return api::Draft{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", record.token.SecretName()}, {"namespace", kSecretNamespace}}},
      {"type", kSecretType},
      {"data", std::move(data)}}
      .Freeze();
}

std::string DetachedSignature(std::string_view content, const Token& token) {
  // The members in this order, as Go writes them: both sides compare texts.
  const std::string header =
      Base64UrlEncode(StrCat(R"({"alg":"HS256","kid":")", token.id, R"("})"));
  const std::string signature =
      net::HmacSha256(token.secret, StrCat(header, ".", Base64UrlEncode(content)));
  return StrCat(header, "..", Base64UrlEncode(signature));
}

}  // namespace drakkar::bootstrap
