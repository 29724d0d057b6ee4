// Certificates that a node asks an API server for; the test approves and signs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/join/kept_certificate.h"
#include "tests/support/api_server.h"

namespace drakkar::node {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class JoinTest : public ::testing::Test {
 protected:
  static constexpr char kPath[] = "/data/pki/node-client.pem";

  KeptCertificate::Options Options() {
    return {.loop = loop_,
            .random = loop_.random(),
            .files = files_,
            .client = *client_,
            .path = kPath,
            .signer = kNodeClientSigner,
            .usages = NodeClientUsages(),
            .subject = NodeSubject("n1"),
            .meanwhile = {"temporary", "temporary"}};
  }
  // The names of all requests.
  std::vector<std::string> Requests() {
    std::vector<std::string> names;
    const auto& cache =
        *server_.core().FindCache("certificates.k8s.io", "certificatesigningrequests");
    for (const auto& [name, object] : cache.objects()) names.push_back(name);
    return names;
  }
  void Change(const std::string& name, const std::string& subresource,
              const std::function<void(api::Draft&)>& change) {
    api::Draft draft(server_.Get("CertificateSigningRequest", name)->tree());
    change(draft);
    const client::Reply reply =
        server_.Update("CertificateSigningRequest", name, subresource, draft.Freeze());
    ASSERT_TRUE(reply.ok()) << reply.error->message;
  }
  void Sign(const std::string& name, Duration lifetime) {
    const api::ObjectPtr request = server_.Get("CertificateSigningRequest", name);
    const std::string pem = Base64Decode((*request)["spec"]["request"].str()).value();
    const WallTime now = loop_.clock().Now();
    const std::string certificate =
        net::SignRequest(ca_, pem, net::CertificateUse::kClient, {now, now + lifetime}).value();
    Change(name, "status", [&](api::Draft& object) {
      object["status"]["certificate"] = Base64Encode(certificate);
    });
    loop_.Advance(seconds(10));
  }
  std::string Current(KeptCertificate& kept) { return kept.source()->Current()->certificate_pem; }

  SeededLoop loop_;
  testing::TestApiServer server_{loop_};
  std::unique_ptr<client::Client> client_ = server_.NewClient("system:node:n1");
  MemoryFileSystem files_;
  net::CertificateAndKey ca_ =
      net::CreateCa("ca", {loop_.clock().Now(), loop_.clock().Now() + hours(99999)}).value();
};

TEST_F(JoinTest, TheFirstCertificateIsKeptWithItsKeyAndUsedAfterARestart) {
  std::string first;
  {
    KeptCertificate kept(Options());
    kept.Start();
    loop_.Advance(seconds(1));
    EXPECT_EQ(Current(kept), "temporary");
    ASSERT_EQ(Requests().size(), 1u);
    const api::ObjectPtr request = server_.Get("CertificateSigningRequest", Requests()[0]);
    EXPECT_EQ((*request)["spec"]["signerName"].str(), kNodeClientSigner);
    const net::CertificateSubject asked =
        net::ParseSigningRequest(Base64Decode((*request)["spec"]["request"].str()).value()).value();
    EXPECT_EQ(asked.common_name, "system:node:n1");
    EXPECT_EQ(asked.organizations, std::vector<std::string>{"system:nodes"});
    Sign(Requests()[0], hours(100));
    first = Current(kept);
    EXPECT_TRUE(net::BelongTogether(*kept.source()->Current()));
    EXPECT_EQ(files_.Stat(kPath)->mode & 0777, 0600u);
  }
  KeptCertificate again(Options());
  again.Start();
  loop_.Advance(seconds(10));
  EXPECT_EQ(Requests().size(), 1u) << "no other request";
  EXPECT_EQ(net::ParseCertificate(Current(again)).value().serial_hex,
            net::ParseCertificate(first).value().serial_hex);
}

TEST_F(JoinTest, ItIsRenewedLikeAKubelets) {
  KeptCertificate kept(Options());
  kept.Start();
  loop_.Advance(seconds(1));
  Sign(Requests()[0], hours(100));
  const std::string first = Current(kept);
  loop_.Advance(hours(69));
  EXPECT_EQ(Requests().size(), 1u);
  for (int i = 0; i < 22 * 60 && Requests().size() == 1; ++i) loop_.Advance(minutes(1));
  ASSERT_EQ(Requests().size(), 2u);
  EXPECT_EQ(Current(kept), first) << "until there is another";
  for (const std::string& name : Requests()) {
    if ((*server_.Get("CertificateSigningRequest", name))["status"]["certificate"].str().empty()) {
      Sign(name, hours(100));
    }
  }
  EXPECT_NE(Current(kept), first);
}

TEST_F(JoinTest, ADeniedRequestIsRepeatedWithBackOff) {
  KeptCertificate kept(Options());
  kept.Start();
  loop_.Advance(seconds(1));
  Change(Requests()[0], "approval", [](api::Draft& object) {
    object["status"]["conditions"].Append(
        {{"type", "Denied"}, {"status", "True"}, {"message", "not today"}});
  });
  loop_.Advance(minutes(1));
  EXPECT_EQ(Requests().size(), 2u);
  EXPECT_EQ(Current(kept), "temporary");
}

TEST_F(JoinTest, AnExpiredOrForeignFileIsNotUsed) {
  const WallTime now = loop_.clock().Now();
  const net::CertificateAndKey foreign =
      net::IssueCertificate(ca_, NodeSubject("n2"), net::CertificateUse::kClient,
                            {now, now + hours(1)})
          .value();
  ASSERT_TRUE(WriteCertificateFile(files_, kPath, foreign).ok());
  KeptCertificate kept(Options());
  kept.Start();
  loop_.Advance(seconds(1));
  EXPECT_EQ(Current(kept), "temporary");
  EXPECT_EQ(Requests().size(), 1u);
}

TEST_F(JoinTest, ARequestThatNobodyApprovesEndsWithWhatToDo) {
  std::optional<Result<net::CertificateAndKey>> result;
  CertificateRequest request(
      {.loop = loop_,
       .random = loop_.random(),
       .client = *client_,
       .signer = kNodeClientSigner,
       .subject = NodeSubject("n1"),
       .usages = NodeClientUsages()},
      [&](Result<net::CertificateAndKey> done) { result = std::move(done); });
  loop_.Advance(minutes(16));
  ASSERT_TRUE(result && !result->ok());
  EXPECT_THAT(result->error().message,
              HasSubstr(StrCat("kubectl certificate approve ", Requests()[0])));
}

TEST_F(JoinTest, AnothersCertificateIsNotTaken) {
  std::optional<Result<net::CertificateAndKey>> result;
  CertificateRequest request(
      {.loop = loop_,
       .random = loop_.random(),
       .client = *client_,
       .signer = kNodeClientSigner,
       .subject = NodeSubject("n1"),
       .usages = NodeClientUsages()},
      [&](Result<net::CertificateAndKey> done) { result = std::move(done); });
  loop_.Advance(seconds(1));
  Change(Requests()[0], "status", [&](api::Draft& object) {
    object["status"]["certificate"] = Base64Encode(ca_.certificate_pem);
  });
  loop_.Advance(seconds(10));
  ASSERT_TRUE(result && !result->ok());
  EXPECT_THAT(result->error().message,
              HasSubstr("was answered with a certificate that does not match"));
}

}  // namespace
}  // namespace drakkar::node
