#include "apiserver/auth/service_account_tokens.h"

#include "apiserver/testing/core_fixture.h"
#include "base/hash/base64.h"
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
  Response Issue(std::string_view spec, std::string name = "bot", UserInfo user = AdminUser()) {
    Request request;
    request.user = std::move(user);
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

TEST_F(TokensTest, ATokenAuthenticatesItsAccountUntilItExpires) {
  const std::string token = Token("{}");
  const std::optional<UserInfo> user = Verify(token);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "system:serviceaccount:default:bot");
  EXPECT_EQ(user->groups,
            (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:default"}));
  loop_.Advance(std::chrono::seconds(3601));
  EXPECT_FALSE(Verify(token).has_value());
}

TEST_F(TokensTest, RejectsOtherAudiencesOtherKeysAndModifiedTokens) {
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

TEST_F(TokensTest, IssuersAndAudiencesCanBeChosen) {
  const std::string key = *net::GenerateKeyPem();
  const auto with = [&](std::vector<std::string> issuers, std::vector<std::string> audiences) {
    auto made = ServiceAccountTokens::Create(key, loop_.clock(), loop_.random(), {},
                                             {std::move(issuers), std::move(audiences)});
    EXPECT_TRUE(made.ok());
    (*made)->Attach(*core_);
    return *std::move(made);
  };
  tokens_ = with({"https://old.example.com"}, {});
  const std::string old = Token("{}");
  EXPECT_TRUE(Verify(old).has_value());
  // The issuer changes, and old tokens stay valid as long as their audience is accepted too.
  tokens_ = with({"https://new.example.com", "https://old.example.com"},
                 {"https://old.example.com", "api"});
  EXPECT_TRUE(Verify(old).has_value());
  const std::string token = Token("{}");
  EXPECT_NE(tokens_->ConfigurationJson().find(R"("issuer":"https://new.example.com")"),
            std::string::npos);
  EXPECT_TRUE(Verify(token, {"api"}).has_value()) << "without a wish it is for all audiences";
  tokens_ = with({"https://new.example.com"}, {"https://old.example.com"});
  EXPECT_FALSE(Verify(old).has_value()) << "of another issuer";
  EXPECT_TRUE(Verify(token).has_value());
  tokens_ = with({"https://new.example.com"}, {});
  EXPECT_FALSE(Verify(token).has_value()) << "for other audiences";
}

TEST_F(TokensTest, DeletingTheAccountOrTheBoundPodRevokesTheToken) {
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

TEST_F(TokensTest, InvalidRequestsNameTheField) {
  EXPECT_EQ(Issue(R"({"expirationSeconds":5})").failure->message,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
            "value: 5: may not specify a duration less than 10 minutes");
  EXPECT_EQ(Issue("{}", "ghost").failure->code, 404);
  EXPECT_EQ(
      Issue(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"x"}})").failure->code,
      404);
}

class NodeTokensTest : public TokensTest {
 protected:
  NodeTokensTest() {
    Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"other"}})");
    pod_ = Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{
        "nodeName":"n1","serviceAccountName":"bot","containers":[{"name":"c","image":"i:1"}],
        "volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},
          {"serviceAccountToken":{"path":"u","audience":"vault","expirationSeconds":700}},
          {"serviceAccountToken":{"path":"w","audience":"ever","expirationSeconds":4000000000}}]}}]
        }})");
  }
  std::string Ref(std::string_view uid) {
    return StrCat(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":")", uid,
                  R"("})");
  }
  // The response to a node, without the prefix that all messages have.
  std::string Ask(std::string_view spec, std::string account = "bot", std::string node = "n1") {
    const Response response = Issue(StrCat("{", spec, "}"), std::move(account), NodeUser(node));
    if (!response.failure) {
      return StrCat((*response.object)["spec"]["expirationSeconds"].integer(), " s");
    }
    const std::string& message = response.failure->message;
    const std::size_t colon = message.find("forbidden: ");
    return colon == message.npos ? message : message.substr(colon + 11);
  }
  api::ObjectPtr pod_;
};

TEST_F(NodeTokensTest, ANodeGetsTokensOnlyForItsOwnPods) {
  EXPECT_EQ(Ask(Ref(pod_->uid())), "3600 s");
  EXPECT_EQ(Ask(Ref(pod_->uid()), "bot", "n2"),
            "node requested token bound to a pod scheduled on a different node");
  EXPECT_EQ(Ask(""), "node requested token not bound to a pod");
  EXPECT_EQ(Ask(R"("boundObjectRef":{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u"})"),
            "node requested token not bound to a pod");
  EXPECT_EQ(Ask(R"("boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u"})"),
            "node requested token not bound to a pod");
  EXPECT_EQ(Ask(Ref("")), "node requested token with a pod binding without a uid");
  EXPECT_EQ(Ask(Ref("another")),
            "the UID in the bound object reference (another) does not match the UID in record. "
            "The object might have been deleted and then recreated");
  EXPECT_EQ(Ask(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u"})"),
            "pods \"q\" not found");
  EXPECT_EQ(Ask(Ref(pod_->uid()), "other"),
            "cannot bind token for serviceaccount \"other\" to pod running with different "
            "serviceaccount name.");
}

TEST_F(NodeTokensTest, ANodeGetsOnlyTheAudiencesAndLifetimeThatThePodRequests) {
  const std::string ref = Ref(pod_->uid());
  EXPECT_EQ(Ask(StrCat(ref, R"(,"audiences":["vault"])")), "700 s");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"expirationSeconds":4000000000)")), "3600 s");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"expirationSeconds":600)")), "600 s");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"audiences":["ever"],"expirationSeconds":4000000000)")), "86400 s");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"audiences":["bank"])")),
            "audience \"bank\" not found in pod spec volume, system:node:n1 is not authorized to "
            "request tokens for this audience");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"audiences":["","vault"])")),
            "node may only request 0 or 1 audiences");
  EXPECT_EQ(Ask(StrCat(ref, R"(,"audiences":["https://kubernetes.default.svc.cluster.local"])")),
            "audience \"https://kubernetes.default.svc.cluster.local\" not found in pod spec "
            "volume, system:node:n1 is not authorized to request tokens for this audience");
}

TEST_F(TokensTest, DeletingTheNodeRevokesATokenBoundToIt) {
  Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  const std::string token =
      Token(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Node","name":"n1"}})");
  const std::optional<UserInfo> user = Verify(token);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->extra.at("authentication.kubernetes.io/node-name").front(), "n1");
  Delete("v1", "Node", "", "n1");
  EXPECT_FALSE(Verify(token).has_value());
  Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  EXPECT_FALSE(Verify(token).has_value()) << "another node of the same name";
}

TEST_F(TokensTest, TokensOutliveADeletionByAMinute) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","finalizers":["a.example/b"]},
             "spec":{"serviceAccountName":"bot","containers":[{"name":"c","image":"i:1"}]}})");
  const std::string token =
      Token(R"({"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}})");
  Delete("v1", "Pod", "default", "p");
  EXPECT_TRUE(Verify(token).has_value());
  loop_.Advance(std::chrono::seconds(ServiceAccountTokens::kDeletionLeeway + 2));
  ASSERT_NE(core_->Find("", "pods", "default/p"), nullptr) << "a finalizer holds it";
  EXPECT_FALSE(Verify(token).has_value());
}

// A 2048-bit RSA key, as kubeadm makes them; used here only.
std::string RsaKey() {
  return net::GenerateRsaKeyPem(2048).value();
}

TEST_F(TokensTest, AnRsaKeySignsAndItsTokensAreAcceptedElsewhere) {
  const std::string rsa = RsaKey();
  const std::string own = Token("{}");
  auto made = ServiceAccountTokens::Create(rsa, loop_.clock(), loop_.random());
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::swap(tokens_, *made);
  tokens_->Attach(*core_);
  const std::string signed_by_rsa = Token("{}");
  EXPECT_EQ(Base64UrlDecode(Split(signed_by_rsa, '.')[0]).value().substr(0, 14),
            R"({"alg":"RS256")");
  EXPECT_TRUE(Verify(signed_by_rsa).has_value());
  EXPECT_FALSE(Verify(own).has_value());
  EXPECT_NE(tokens_->KeysJson().find(R"("kty":"RSA")"), std::string::npos);
  // Both keys, the RSA key by its public half.
  auto both = ServiceAccountTokens::Create(*net::GenerateKeyPem(), loop_.clock(), loop_.random(),
                                           {net::PublicKeyPem(rsa).value()});
  ASSERT_TRUE(both.ok()) << both.error().message;
  (*both)->Attach(*core_);
  std::vector<std::string> meant_for;
  EXPECT_TRUE((*both)->Verify(signed_by_rsa, {}, meant_for).has_value());
  EXPECT_EQ((*both)->ConfigurationJson().find("RS256") != std::string::npos, true);
  // The algorithm is the key's, not the token's.
  const std::string_view rest = std::string_view(signed_by_rsa).substr(signed_by_rsa.find('.'));
  for (const char* header : {R"({"alg":"HS256"})", R"({"alg":"none"})", R"({"alg":"ES256"})"}) {
    EXPECT_FALSE((*both)->Verify(StrCat(Base64UrlEncode(header), rest), {}, meant_for)) << header;
  }
}

}  // namespace
}  // namespace drakkar::apiserver
