#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"
#include "cli/testing/test_server.h"
#include "tests/support/signing_requests.h"

namespace drakkar::cli {
namespace {

constexpr char kNamespace[] =
    R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}})";

using testing::CommandTest;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandTest, TokensAreCreatedListedAndDeleted) {
  Run("apply -f -", kNamespace);
  const Outcome created = Run("token create --ttl 2h --description rack7");
  EXPECT_EQ(created.code, 0) << created.err;
  const std::optional<bootstrap::Token> token = bootstrap::ParseToken(Trim(created.out));
  ASSERT_TRUE(token) << created.out;
  const Outcome listed = Run("token list");
  EXPECT_THAT(listed.out, StartsWith("TOKEN                     TTL"));
  EXPECT_THAT(listed.out, HasSubstr(token->ToString()));
  EXPECT_THAT(listed.out, HasSubstr("authentication,signing   rack7"));
  EXPECT_EQ(Run("token delete " + token->id).out, StrCat("token \"", token->id, "\" deleted\n"));
  EXPECT_EQ(Run("token list").err, "No tokens found.\n");
  EXPECT_EQ(Run("token delete " + token->id).code, 1);
}

TEST_F(CommandTest, AGivenTokenIsUsedAndWrongOnesAreRefused) {
  Run("apply -f -", kNamespace);
  EXPECT_EQ(Run("token create abcdef.0123456789abcdef --ttl 0 --usages signing").out,
            "abcdef.0123456789abcdef\n");
  EXPECT_THAT(Run("token list").out, HasSubstr("<forever>   <never>   signing"));
  EXPECT_EQ(Run("token create nonsense").code, 2);
  EXPECT_EQ(Run("token create --usages flying").code, 2);
  EXPECT_EQ(Run("token create --groups system:masters").code, 2);
  EXPECT_EQ(Run("token delete nonsense").code, 2);
}

TEST_F(CommandTest, CertificatesAreApprovedOnceAndDenied) {
  for (const char* name : {"a", "b"}) {
    const Outcome applied =
        Run("apply -f -", ::drakkar::testing::SigningRequestJson(
                              name, "example.com/signer", {"jane", {}, {}, {}}, R"(["any"])"));
    ASSERT_EQ(applied.code, 0) << applied.err;
  }
  EXPECT_THAT(Run("get csr a").out, HasSubstr("Pending"));
  EXPECT_EQ(Run("certificate approve a").out,
            "certificatesigningrequest.certificates.k8s.io/a approved\n");
  EXPECT_THAT(Run("get csr a").out, HasSubstr("Approved"));
  EXPECT_EQ(Run("certificate approve a").code, 0);
  EXPECT_THAT(Run("certificate deny a").err, HasSubstr("mutually exclusive"));
  EXPECT_EQ(Run("certificate deny b").out,
            "certificatesigningrequest.certificates.k8s.io/b denied\n");
  EXPECT_EQ(Run("certificate approve none").code, 1);
}

TEST_F(CommandTest, TheJoinCommandNamesServerTokenAndCa) {
  Run("apply -f -", kNamespace);
  const Outcome printed = Run("token create --print-join-command");
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out,
              MatchesRegex("drakkar node --join https://127.0.0.1:[0-9]+ --token "
                           "[a-z0-9]{6}\\.[a-z0-9]{16} --ca-hash sha256:[0-9a-f]{64}\n"));
}

}  // namespace
}  // namespace drakkar::cli
