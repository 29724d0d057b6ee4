#include "apiserver/registry/pod_certificate_strategies.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "apiserver/testing/core_fixture.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {
namespace {

class PodCertificatesTest : public CoreFixture {
 protected:
  PodCertificatesTest() { StartCore(nullptr); }

  net::Validity ValidFor(Duration lifetime) {
    const WallTime now = loop_.clock().Now();
    return {now, now + lifetime};
  }
  std::string MessageOf(std::string_view json) {
    const Response response = TryCreate(json);
    return response.failure ? response.failure->message : "accepted";
  }
  static std::string Quoted(std::string_view text) {
    return api::WriteJson(api::Draft(text).Freeze()->root());
  }
  std::string Bundle(std::string_view name, std::string_view signer, std::string_view pem) {
    return StrCat(R"({"apiVersion":"certificates.k8s.io/v1","kind":"ClusterTrustBundle",
        "metadata":{"name":")",
                  name, R"("},"spec":{"signerName":")", signer, R"(","trustBundle":)", Quoted(pem),
                  "}}");
  }
  // The DER of a request in base64, as a node sends it.
  static std::string StubRequest() {
    const std::string pem =
        *net::CreateSigningRequest(*net::GenerateKeyPem(), net::CertificateSubject{});
    std::string der;
    for (const std::string_view line : Split(pem, '\n')) {
      if (!line.starts_with("-----")) der += line;
    }
    return der;
  }
  std::string Asked(std::string_view more = "", std::string_view signer = "example.com/pods",
                    std::string_view request = "") {
    return StrCat(R"({"apiVersion":"certificates.k8s.io/v1","kind":"PodCertificateRequest",
        "metadata":{"name":"r"},"spec":{"signerName":")",
                  signer, R"(","podName":"p","podUID":"1","serviceAccountName":"default",
        "serviceAccountUID":"2","nodeName":"n1","nodeUID":"3",)",
                  more, R"("stubPKCS10Request":")", request.empty() ? StubRequest() : request,
                  R"("}})");
  }
  Response SetStatus(std::string_view status) {
    const api::ObjectPtr now =
        core_->Find("certificates.k8s.io", "podcertificaterequests", "default/r");
    api::Draft changed(now->tree());
    changed["status"] = api::Draft(api::ParseJson(status).value());
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind("certificates.k8s.io", "v1", "PodCertificateRequest");
    request.namespace_ = "default";
    request.name = "r";
    request.subresource = "status";
    request.object = changed.Freeze();
    return Handle(std::move(request));
  }
  std::string Outcome(std::string_view type, std::string_view more = "") {
    return StrCat(R"({"conditions":[{"type":")", type,
                  R"(","status":"True","reason":"R","message":"m","lastTransitionTime":
                  "2026-01-01T00:00:00Z"}])",
                  more, "}");
  }
};

TEST_F(PodCertificatesTest, ABundleHasAuthoritiesEachOnce) {
  const net::CertificateAndKey ca = *net::CreateCa("ca", ValidFor(std::chrono::hours(24)));
  const net::CertificateAndKey leaf = *net::IssueCertificate(
      ca, {"leaf", {}, {}, {}}, net::CertificateUse::kServer, ValidFor(std::chrono::hours(1)));
  const auto refused = [&](std::string_view pem) {
    const std::string message = MessageOf(Bundle("b", "", pem));
    return message.substr(message.rfind("omitted>") + 11);
  };
  EXPECT_EQ(refused(""), "at least one trust anchor must be provided");
  EXPECT_EQ(refused(leaf.certificate_pem), "entry 0 does not have the CA bit set");
  EXPECT_EQ(refused(ca.key_pem), "entry 0 has bad block type: PRIVATE KEY");
  EXPECT_EQ(refused(ca.certificate_pem + ca.certificate_pem),
            "duplicate trust anchor (indices [0 1])");
  EXPECT_EQ(refused("-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n"),
            "entry 0 does not parse as X.509");
  EXPECT_EQ(MessageOf(Bundle("b", "", ca.certificate_pem)), "accepted");
}

TEST_F(PodCertificatesTest, ABundleOfASignerHasItsName) {
  const std::string ca = net::CreateCa("ca", ValidFor(std::chrono::hours(24)))->certificate_pem;
  EXPECT_NE(
      MessageOf(Bundle("b", "example.com/s", ca)).find("must be named with prefix example.com:s:"),
      std::string::npos);
  EXPECT_NE(MessageOf(Bundle("example.com:s:b", "", ca)).find("must not have \":\" in its name"),
            std::string::npos);
  EXPECT_EQ(MessageOf(Bundle("example.com:s:b", "example.com/s", ca)), "accepted");
}

TEST_F(PodCertificatesTest, ARequestNamesItsPodAndProvesItsKey) {
  EXPECT_NE(MessageOf(Asked("", "example.com/pods", "QUFB")).find("must be a valid PKCS#10 CSR"),
            std::string::npos);
  EXPECT_NE(MessageOf(Asked(R"("maxExpirationSeconds":60,)")).find("in the range [3600, 7862400]"),
            std::string::npos);
  EXPECT_NE(MessageOf(Asked(R"("maxExpirationSeconds":90000,)", "kubernetes.io/x"))
                .find("in the range [3600, 86400]"),
            std::string::npos);
  EXPECT_NE(MessageOf(Asked(R"("unverifiedUserAnnotations":{"a":"b"},)"))
                .find("must be a domain-prefixed key"),
            std::string::npos);
  ASSERT_EQ(MessageOf(Asked()), "accepted");
  const api::ObjectPtr made =
      core_->Find("certificates.k8s.io", "podcertificaterequests", "default/r");
  EXPECT_EQ((*made)["spec"]["maxExpirationSeconds"].integer(), 86'400);
  api::Draft changed(made->tree());
  changed["spec"]["podName"] = "other";
  Request update = RequestFor(Verb::kUpdate, api::WriteJson(changed.Freeze()->root()), AdminUser());
  const Response response = Handle(std::move(update));
  ASSERT_TRUE(response.failure.has_value());
  EXPECT_NE(response.failure->message.find("field is immutable"), std::string::npos);
}

TEST_F(PodCertificatesTest, ARequestIsDecidedOnce) {
  ASSERT_EQ(MessageOf(Asked()), "accepted");
  EXPECT_TRUE(SetStatus(Outcome("Approved")).failure.has_value()) << "of another kind";
  EXPECT_TRUE(SetStatus(Outcome("Denied", R"(,"certificateChain":"x")")).failure.has_value());
  EXPECT_TRUE(SetStatus(R"({"certificateChain":"x"})").failure.has_value()) << "without outcome";
  EXPECT_FALSE(SetStatus(Outcome("Denied")).failure.has_value());
  EXPECT_TRUE(SetStatus(Outcome("Failed")).failure.has_value());
}

TEST_F(PodCertificatesTest, AnIssuedCertificateHasTheTimesOfTheStatus) {
  ASSERT_EQ(MessageOf(Asked()), "accepted");
  const net::CertificateAndKey ca = *net::CreateCa("ca", ValidFor(std::chrono::hours(48)));
  const auto issued = [&](Duration lifetime, Duration refresh) {
    const net::Validity validity = ValidFor(lifetime);
    const std::string pem =
        net::IssueCertificate(ca, {"p", {}, {}, {}}, net::CertificateUse::kClient, validity)
            ->certificate_pem;
    const net::Validity written = net::ParseCertificate(pem)->validity;
    return SetStatus(
        Outcome("Issued", StrCat(R"(,"certificateChain":)", Quoted(pem), R"(,"notBefore":")",
                                 api::FormatTime(written.not_before), R"(","notAfter":")",
                                 api::FormatTime(written.not_after), R"(","beginRefreshAt":")",
                                 api::FormatTime(written.not_before + refresh), R"(")")));
  };
  using std::chrono::hours;
  using std::chrono::minutes;
  EXPECT_TRUE(issued(minutes(30), minutes(15)).failure.has_value()) << "too short";
  EXPECT_TRUE(issued(hours(25), hours(2)).failure.has_value()) << "longer than asked for";
  EXPECT_TRUE(issued(hours(2), minutes(5)).failure.has_value()) << "refreshed too early";
  EXPECT_TRUE(issued(hours(2), minutes(115)).failure.has_value()) << "refreshed too late";
  const Response accepted = issued(hours(2), hours(1));
  EXPECT_FALSE(accepted.failure.has_value()) << accepted.failure->message;
}

TEST_F(PodCertificatesTest, ABundleOfThousandsOfCertificatesTakesTooLong) {
  const std::string ca = net::CreateCa("ca", ValidFor(std::chrono::hours(24)))->certificate_pem;
  std::string pem;
  for (int i = 0; i < 1'200; ++i) pem += ca;
  ASSERT_LT(pem.size(), ClusterTrustBundleStrategy::kMaxBundleBytes);
  const Response response = TryCreate(Bundle("many", "", pem));
  ASSERT_TRUE(response.failure);
  EXPECT_EQ(response.failure->code, 413);
}

}  // namespace
}  // namespace drakkar::apiserver
