// The signer of cluster-info and the cleaner of tokens, against an API server.
#include "api/json/writer.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class BootstrapTest : public ControllersFixture {
 protected:
  BootstrapTest() {
    for (const char* name : {"kube-public", "kube-system"}) {
      if (server_.Get("Namespace", name) != nullptr) continue;
      Create(StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name, "\"}}"));
    }
    Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cluster-info",
        "namespace":"kube-public"},"data":{"kubeconfig":"text"}})");
  }
  void AddToken(std::string id, bool signs, std::optional<Duration> lifetime = {}) {
    bootstrap::TokenRecord record{
        .token = {std::move(id), "0123456789abcdef"}, .authenticates = true, .signs = signs};
    if (lifetime) record.expires = loop_.clock().Now() + *lifetime;
    Create(api::WriteJson(bootstrap::MakeTokenSecret(record)->root()));
  }
  std::string Signature(std::string_view id) {
    const api::ObjectPtr info = server_.Get("ConfigMap", "kube-public/cluster-info");
    return std::string((*info)["data"].Entry(StrCat("jws-kubeconfig-", id)).str());
  }
};

TEST_F(BootstrapTest, EveryTokenThatMaySignsTheClusterInfo) {
  AddToken("abcdef", true);
  AddToken("ghijkl", false);
  EXPECT_EQ(Signature("abcdef"),
            bootstrap::DetachedSignature("text", {"abcdef", "0123456789abcdef"}));
  EXPECT_EQ(Signature("ghijkl"), "");
  Change("ConfigMap", "kube-public/cluster-info", "",
         [](api::Draft& map) { map["data"].Entry("kubeconfig") = "other"; });
  EXPECT_EQ(Signature("abcdef"),
            bootstrap::DetachedSignature("other", {"abcdef", "0123456789abcdef"}));
  server_.Delete("Secret", "kube-system/bootstrap-token-abcdef");
  Settle();
  EXPECT_EQ(Signature("abcdef"), "");
}

TEST_F(BootstrapTest, ExpiredTokensAreDeletedAndSignNothing) {
  AddToken("abcdef", true, std::chrono::hours(1));
  AddToken("ghijkl", true);
  EXPECT_NE(Signature("abcdef"), "");
  Settle(std::chrono::minutes(59));
  EXPECT_NE(server_.Get("Secret", "kube-system/bootstrap-token-abcdef"), nullptr);
  Settle(std::chrono::minutes(2));
  EXPECT_EQ(server_.Get("Secret", "kube-system/bootstrap-token-abcdef"), nullptr);
  EXPECT_NE(server_.Get("Secret", "kube-system/bootstrap-token-ghijkl"), nullptr);
  EXPECT_EQ(Signature("abcdef"), "");
  EXPECT_NE(Signature("ghijkl"), "");
}

}  // namespace
}  // namespace drakkar::controllers
