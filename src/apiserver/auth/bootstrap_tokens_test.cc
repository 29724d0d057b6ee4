#include "apiserver/auth/bootstrap_tokens.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "bootstrap/token.h"

namespace drakkar::apiserver {
namespace {

class BootstrapTokensTest : public CoreFixture {
 protected:
  BootstrapTokensTest() {
    StartCore(nullptr);
    Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}})");
  }
  void Add(const bootstrap::TokenRecord& record) {
    Create(api::WriteJson(bootstrap::MakeTokenSecret(record)->root()));
  }
  std::optional<UserInfo> Verify(std::string_view token) {
    return VerifyBootstrapToken(*core_, token, loop_.clock().Now());
  }
  const bootstrap::Token token_{"abcdef", "0123456789abcdef"};
};

TEST_F(BootstrapTokensTest, ATokenIsAUserUntilItExpiresOrIsDeleted) {
  Add({.token = token_,
       .expires = loop_.clock().Now() + std::chrono::hours(1),
       .authenticates = true,
       .extra_groups = {"system:bootstrappers:rack"}});
  const std::optional<UserInfo> user = Verify("abcdef.0123456789abcdef");
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "system:bootstrap:abcdef");
  EXPECT_EQ(user->groups,
            (std::vector<std::string>{"system:bootstrappers", "system:bootstrappers:rack"}));
  EXPECT_FALSE(Verify("abcdef.0123456789abcdee"));
  EXPECT_FALSE(Verify("abcdeg.0123456789abcdef"));
  EXPECT_FALSE(Verify("abcdef."));
  loop_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(Verify("abcdef.0123456789abcdef"));
}

TEST_F(BootstrapTokensTest, ADeletedTokenIsRevokedAtOnce) {
  Add({.token = token_, .authenticates = true});
  EXPECT_TRUE(Verify("abcdef.0123456789abcdef"));
  Delete("v1", "Secret", "kube-system", "bootstrap-token-abcdef");
  EXPECT_FALSE(Verify("abcdef.0123456789abcdef"));
}

TEST_F(BootstrapTokensTest, ATokenForSigningDoesNotAuthenticate) {
  Add({.token = token_, .signs = true});
  EXPECT_FALSE(Verify("abcdef.0123456789abcdef"));
}

TEST_F(BootstrapTokensTest, SecretsOfOtherTypesAndNamespacesAreNoTokens) {
  api::Draft secret(bootstrap::MakeTokenSecret({.token = token_, .authenticates = true}));
  secret["metadata"]["namespace"] = "default";
  Create(api::WriteJson(secret.Freeze()->root()));
  EXPECT_FALSE(Verify("abcdef.0123456789abcdef"));
  secret["metadata"]["namespace"] = "kube-system";
  secret["type"] = "Opaque";
  Create(api::WriteJson(secret.Freeze()->root()));
  EXPECT_FALSE(Verify("abcdef.0123456789abcdef"));
}

}  // namespace
}  // namespace drakkar::apiserver
