#include "bootstrap/token.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::bootstrap {
namespace {

const Token kToken{"abcdef", "0123456789abcdef"};

TEST(BootstrapToken, IsSixAndSixteenCharacters) {
  EXPECT_EQ(ParseToken("abcdef.0123456789abcdef"), kToken);
  for (const char* text :
       {"", "abcdef", "abcdef.0123456789abcde", "abcdef.0123456789abcdefg",
        "ABCDEF.0123456789abcdef", "abcdef:0123456789abcdef", "abc.ef.0123456789abcdef"}) {
    EXPECT_FALSE(ParseToken(text)) << text;
  }
  SeededRandom random(7);
  const Token made = MakeToken(random);
  EXPECT_EQ(ParseToken(made.ToString()), made);
  EXPECT_NE(MakeToken(random).secret, made.secret);
}

TEST(BootstrapToken, ASecretIsReadAsItWasWritten) {
  TokenRecord record{.token = kToken,
                     .expires = WallTime(std::chrono::seconds(1'800'000'000)),
                     .authenticates = true,
                     .signs = true,
                     .extra_groups = {"system:bootstrappers:a", "system:bootstrappers:b:c-1"},
                     .description = "for rack 7"};
  const api::TreePtr secret = MakeTokenSecret(record);
  EXPECT_EQ(secret->root()["metadata"]["name"].str(), "bootstrap-token-abcdef");
  const Result<TokenRecord> read = ReadTokenSecret(secret->root());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->token, kToken);
  EXPECT_EQ(read->expires, record.expires);
  EXPECT_TRUE(read->authenticates && read->signs);
  EXPECT_EQ(read->extra_groups, record.extra_groups);
  EXPECT_EQ(read->description, "for rack 7");
  EXPECT_FALSE(read->HasExpired(*record.expires - std::chrono::seconds(1)));
  EXPECT_TRUE(read->HasExpired(*record.expires));
}

TEST(BootstrapToken, ASecretWithAnyInvalidPartIsNotAToken) {
  const auto with = [](std::string_view key, std::string_view value) {
    api::Draft secret(MakeTokenSecret({.token = kToken, .authenticates = true}));
    secret["data"].Entry(key) = Base64Encode(value);
    return ReadTokenSecret(secret.Freeze()->root());
  };
  EXPECT_TRUE(with("description", "x").ok());
  EXPECT_FALSE(with("expiration", "tomorrow").ok());
  EXPECT_FALSE(with("token-id", "abcdeg").ok());  // the name has another one
  EXPECT_FALSE(with("token-secret", "").ok());
  // Other groups would make a token's holder an administrator.
  EXPECT_FALSE(with("auth-extra-groups", "system:masters").ok());
  EXPECT_FALSE(with("auth-extra-groups", "system:bootstrappers:a,system:nodes").ok());
  EXPECT_FALSE(with("auth-extra-groups", "system:bootstrappers:").ok());
  api::Draft opaque(MakeTokenSecret({.token = kToken}));
  opaque["type"] = "Opaque";
  EXPECT_FALSE(ReadTokenSecret(opaque.Freeze()->root()).ok());
}

TEST(BootstrapToken, SignsAsKubeadmVerifies) {
  // Known answers of k8s.io/cluster-bootstrap/token/jws.
  EXPECT_EQ(
      DetachedSignature("Hello from the other side. I must have called a thousand times.",
                        {"joshua", "my voice is my passcode"}),
      "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8");
}

}  // namespace
}  // namespace drakkar::bootstrap
