#include "apiserver/auth/authenticator.h"

#include <gtest/gtest.h>

#include "apiserver/request/node_identity.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class AuthenticatorTest : public ::testing::Test {
 protected:
  AuthenticatorTest() {
    authenticator_.TrustProxies({.ca_pem = "an authority", .allowed_names = {"proxy", "gate"}});
    authenticator_.AddStaticToken("t", {.name = "of-the-token"});
  }

  // "NAME group,group", or "nobody", as a connection with these certificates authenticates.
  std::string Ask(net::Headers headers, std::optional<std::string> proxy,
                  std::optional<std::string> peer = std::nullopt) {
    net::ServerRequest request;
    request.headers = std::move(headers);
    auto connection = std::make_shared<net::ConnectionInfo>();
    if (peer) connection->peer = net::PeerIdentity{*peer, {}};
    if (proxy) {
      connection->proxy = net::PeerIdentity{*proxy, {"system:masters"}};
      if (!peer) connection->peer_error = "unable to get local issuer certificate";
    }
    request.connection = connection;
    needs_token_ = authenticator_.NeedsToken(request);
    const std::optional<UserInfo> user = authenticator_.Authenticate(request);
    if (!user) return "nobody";
    return StrCat(user->name, " ", Join(user->groups, ","));
  }

  Authenticator authenticator_;
  bool needs_token_ = false;
};

TEST_F(AuthenticatorTest, AProxySaysWhoItsClientIs) {
  EXPECT_EQ(Ask({{"X-Remote-User", "jane"}, {"X-Remote-Group", "dev"}, {"x-remote-group", "ops"}},
                "proxy"),
            "jane dev,ops,system:authenticated");
  EXPECT_FALSE(needs_token_);
  EXPECT_EQ(Ask({{"X-Remote-User", "jane"}, {"X-Remote-Group", "system:authenticated"}}, "gate"),
            "jane system:authenticated");
}

TEST_F(AuthenticatorTest, HeadersOfOthersMeanNothing) {
  const net::Headers headers = {{"X-Remote-User", "jane"}};
  EXPECT_EQ(Ask(headers, std::nullopt, "joe"), "joe system:authenticated");
  EXPECT_EQ(Ask(headers, std::nullopt), "system:anonymous system:unauthenticated");
  EXPECT_EQ(Ask(headers, "another"), "nobody") << "its name is not allowed";
  EXPECT_EQ(Ask(headers, "another", "joe"), "joe system:authenticated");
}

TEST_F(AuthenticatorTest, TheProxysOwnNameIsNoUser) {
  EXPECT_EQ(Ask({}, "proxy"), "nobody");
  EXPECT_EQ(Ask({}, "proxy", "proxy"), "proxy system:authenticated")
      << "unless its certificate is one for clients, too";
}

TEST_F(AuthenticatorTest, AProxyMayPassOnTheTokenOfItsClient) {
  EXPECT_EQ(Ask({{"Authorization", "Bearer t"}}, "proxy"), "of-the-token system:authenticated");
  EXPECT_TRUE(needs_token_);
  EXPECT_EQ(Ask({{"Authorization", "Bearer t"}, {"X-Remote-User", "jane"}}, "proxy"),
            "jane system:authenticated")
      << "what it says itself comes first";
  EXPECT_FALSE(needs_token_);
  EXPECT_EQ(Ask({{"Authorization", "Bearer x"}}, "proxy"), "nobody");
  EXPECT_EQ(Ask({{"Authorization", "Bearer t"}}, "another"), "nobody");
}

TEST_F(AuthenticatorTest, AStrangerStaysOne) {
  EXPECT_EQ(Ask({{"X-Remote-User", "system:anonymous"}}, "proxy"), "system:anonymous ");
  EXPECT_EQ(Ask({{"X-Remote-User", "x"}, {"X-Remote-Group", "system:unauthenticated"}}, "proxy"),
            "x system:unauthenticated");
}

TEST_F(AuthenticatorTest, NobodyIsTheServerItself) {
  EXPECT_EQ(Ask({{"X-Remote-User", std::string(kNodeClientUser)}}, "proxy"), "nobody");
  EXPECT_EQ(Ask({}, std::nullopt, std::string(kNodeClientUser)), "nobody");
}

TEST_F(AuthenticatorTest, WithoutAnAuthorityThereAreNoProxies) {
  authenticator_ = Authenticator();
  EXPECT_EQ(Ask({{"X-Remote-User", "jane"}}, "proxy"), "nobody");
  net::Headers headers = {{"X-Remote-User", "jane"}};
  authenticator_.RemoveIdentityHeaders(headers);
  EXPECT_EQ(headers.size(), 1u);
}

TEST_F(AuthenticatorTest, NobodyBehindUsSeesTheHeaders) {
  net::Headers headers = {{"X-Remote-User", "jane"},      {"x-remote-group", "a"},
                          {"X-Remote-Extra-Scopes", "s"}, {"X-Remote-Uid", "1"},
                          {"X-Remote-Extra-", "no key"},  {"Accept", "*/*"}};
  authenticator_.RemoveIdentityHeaders(headers);
  EXPECT_EQ(headers, (net::Headers{{"X-Remote-Extra-", "no key"}, {"Accept", "*/*"}}));
}

TEST_F(AuthenticatorTest, AnyNameIsAllowedUnlessSomeAreListed) {
  authenticator_.TrustProxies({.ca_pem = "an authority"});
  EXPECT_EQ(Ask({{"X-Remote-User", "jane"}}, "another"), "jane system:authenticated");
}

}  // namespace
}  // namespace drakkar::apiserver
