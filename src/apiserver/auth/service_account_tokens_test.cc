#include "apiserver/auth/service_account_tokens.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {
namespace {

class TokensTest : public CoreFixture {
 protected:
  TokensTest() {
    StartCore(nullptr);
    auto made = ServiceAccountTokens::Create(*net::GenerateKeyPem(), loop_.clock(), loop_.random());
    EXPECT_TRUE(made.ok());
    tokens_ = std::move(*made);
    tokens_->Attach(*core_);
    Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bot"}})");
  }
  Response Issue(std::string_view spec, std::string name = "bot") {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kCreate;
    request.kind = api::FindKind("", "v1", "ServiceAccount");
    request.namespace_ = "default";
    request.name = std::move(name);
    request.subresource = "token";
    request.text = StrCat(
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":)", spec, "}");
    Response response;
    EXPECT_TRUE(tokens_->Answer(request, response));
    return response;
  }
  std::string Token(std::string_view spec) {
    const Response response = Issue(spec);
    EXPECT_FALSE(response.failure) << response.failure->message;
    return response.failure ? "" : std::string((*response.object)["status"]["token"].str());
  }
  std::optional<UserInfo> Verify(std::string_view token, std::vector<std::string> audiences = {}) {
    std::vector<std::string> meant_for;
    return tokens_->Verify(token, audiences, meant_for);
  }

  std::unique_ptr<ServiceAccountTokens> tokens_;
};

TEST_F(TokensTest, ATokenStandsForItsAccountUntilItExpires) {
  const std::string token = Token("{}");
  const std::optional<UserInfo> user = Verify(token);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "system:serviceaccount:default:bot");
  EXPECT_EQ(user->groups,
            (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:default"}));
  loop_.Advance(std::chrono::seconds(3601));
  EXPECT_FALSE(Verify(token).has_value());
}

TEST_F(TokensTest, AnotherAudienceAnotherKeyAndAChangedTokenAreRefused) {
  const std::string elsewhere = Token(R"({"audiences":["vault"]})");
  EXPECT_FALSE(Verify(elsewhere).has_value());
  EXPECT_TRUE(Verify(elsewhere, {"vault", "other"}).has_value());
  std::string token = Token("{}");
  token[token.find('.') + 5] ^= 1;
  EXPECT_FALSE(Verify(token).has_value());
  auto other = ServiceAccountTokens::Create(*net::GenerateKeyPem(), loop_.clock(), loop_.random());
  (*other)->Attach(*core_);
  std::vector<std::string> meant_for;
  EXPECT_FALSE((*other)->Verify(Token("{}"), {}, meant_for).has_value());
  EXPECT_FALSE(Verify("not.a.token").has_value());
}

TEST_F(TokensTest, DeletingTheAccountOrTheBoundPodEndsTheToken) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{)"
         R"("serviceAccountName":"bot","containers":[{"name":"c","image":"i:1"}]}})");
  const std::string bound =
      Token(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}})");
  const std::string plain = Token("{}");
  const std::optional<UserInfo> user = Verify(bound);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->extra.at("authentication.kubernetes.io/pod-name").front(), "p");
  Delete("v1", "Pod", "default", "p");
  EXPECT_FALSE(Verify(bound).has_value());
  EXPECT_TRUE(Verify(plain).has_value());
  Delete("v1", "ServiceAccount", "default", "bot");
  EXPECT_FALSE(Verify(plain).has_value());
}

TEST_F(TokensTest, NonsenseIsRefusedInAFieldsName) {
  EXPECT_EQ(Issue(R"({"expirationSeconds":5})").failure->message,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
            "value: 5: may not specify a duration less than 10 minutes");
  EXPECT_EQ(Issue("{}", "ghost").failure->code, 404);
  EXPECT_EQ(
      Issue(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"x"}})").failure->code,
      404);
}

}  // namespace
}  // namespace drakkar::apiserver
