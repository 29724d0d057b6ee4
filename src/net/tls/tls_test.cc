#include "net/tls/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/testing/loopback.h"
#include "net/tls/certificates.h"
#include "net/tls/crypto.h"

namespace drakkar::net {
namespace {

using testing::TestCertificates;
using testing::TestServerTls;
using testing::TestValidity;

struct Pair {
  std::unique_ptr<TlsFilter> server;
  std::unique_ptr<TlsFilter> client;
  std::string server_plain;
  std::string client_plain;
  Result<void> server_result;
  Result<void> client_result;

  void Pump(std::size_t step = 1 << 20) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::string to_server = std::exchange(client->output(), {});
      const std::string to_client = std::exchange(server->output(), {});
      for (std::size_t at = 0; at < to_server.size() && server_result.ok(); at += step) {
        moved = true;
        server_result = server->Receive(std::string_view(to_server).substr(at, step), server_plain);
      }
      for (std::size_t at = 0; at < to_client.size() && client_result.ok(); at += step) {
        moved = true;
        client_result = client->Receive(std::string_view(to_client).substr(at, step), client_plain);
      }
    }
  }
};

Pair Connect(TlsClientOptions options, const std::string& host, bool http2 = true) {
  Pair pair;
  pair.server = TlsFilter::Accept(TestServerTls(http2));
  pair.client = TlsFilter::Connect(TlsContext::Client(options).value(), host);
  return pair;
}

TlsClientOptions Trusting() {
  TlsClientOptions options;
  options.ca_pem = TestCertificates::Get().ca.certificate_pem;
  return options;
}

TEST(Tls, CarriesBytesHoweverTheyAreSplit) {
  for (std::size_t step : {1, 7, 100, 100000}) {
    Pair pair = Connect(Trusting(), "localhost");
    pair.Pump(step);
    ASSERT_TRUE(pair.client->is_ready() && pair.server->is_ready());
    EXPECT_EQ(pair.client->alpn(), "h2");
    EXPECT_EQ(pair.server->alpn(), "h2");
    const std::string big(50'000, 'b');
    ASSERT_TRUE(pair.client->Send(big).ok());
    ASSERT_TRUE(pair.server->Send("answer").ok());
    pair.Pump(step);
    EXPECT_EQ(pair.server_plain, big);
    EXPECT_EQ(pair.client_plain, "answer");
    pair.client->Close();
    pair.Pump(step);
    EXPECT_TRUE(pair.server->peer_closed());
  }
}

TEST(Tls, FallsBackToHttp11) {
  Pair pair = Connect(Trusting(), "127.0.0.1", false);
  pair.Pump();
  EXPECT_EQ(pair.client->alpn(), "http/1.1");
}

TEST(Tls, ChecksTheServersNameAndAuthority) {
  Pair wrong_name = Connect(Trusting(), "example.com");
  wrong_name.Pump();
  ASSERT_FALSE(wrong_name.client_result.ok());
  EXPECT_EQ(wrong_name.client_result.error().message, "TLS: certificate: hostname mismatch");
  Pair wrong_ip = Connect(Trusting(), "10.9.9.9");
  wrong_ip.Pump();
  EXPECT_FALSE(wrong_ip.client_result.ok());
  TlsClientOptions other;
  other.ca_pem = TestCertificates::Get().other_ca.certificate_pem;
  Pair wrong_ca = Connect(other, "localhost");
  wrong_ca.Pump();
  EXPECT_FALSE(wrong_ca.client_result.ok());
  TlsClientOptions named = Trusting();
  named.server_name = "localhost";
  Pair renamed = Connect(named, "10.9.9.9");
  renamed.Pump();
  EXPECT_TRUE(renamed.client->is_ready());
  TlsClientOptions insecure;
  insecure.insecure = true;
  Pair unchecked = Connect(insecure, "example.com");
  unchecked.Pump();
  EXPECT_TRUE(unchecked.client->is_ready());
}

TEST(Tls, ACertificateOfTheProxiesAuthorityIsThatOfAProxy) {
  const TestCertificates& certificates = TestCertificates::Get();
  const auto connect = [&](const CertificateAndKey& client, const std::string& proxies) {
    TlsServerOptions server;
    server.certificate_pem = certificates.server.certificate_pem;
    server.key_pem = certificates.server.key_pem;
    server.client_ca_pem = certificates.ca.certificate_pem;
    server.proxy_ca_pem = proxies;
    TlsClientOptions options = Trusting();
    options.certificate_pem = client.certificate_pem;
    options.key_pem = client.key_pem;
    Pair pair;
    pair.server = TlsFilter::Accept(TlsContext::Server(server).value());
    pair.client = TlsFilter::Connect(TlsContext::Client(options).value(), "localhost");
    pair.Pump();
    EXPECT_TRUE(pair.server->is_ready());
    return pair;
  };
  const std::string& other = certificates.other_ca.certificate_pem;
  const Pair proxy = connect(certificates.stranger, other);
  EXPECT_EQ(proxy.server->proxy()->common_name, "mallory");
  EXPECT_FALSE(proxy.server->peer().has_value()) << "a proxy is no client";
  const Pair client = connect(certificates.client, other);
  EXPECT_FALSE(client.server->proxy().has_value());
  EXPECT_EQ(client.server->peer()->common_name, "jane");
  const Pair both = connect(certificates.client, certificates.ca.certificate_pem);
  EXPECT_TRUE(both.server->proxy().has_value());
  EXPECT_TRUE(both.server->peer().has_value());
  EXPECT_FALSE(connect(certificates.stranger, "").server->proxy().has_value());
  EXPECT_FALSE(connect(certificates.server, certificates.ca.certificate_pem).server->proxy())
      << "a certificate for servers";
}

TEST(Tls, GarbageIsAnErrorNotACrash) {
  auto server = TlsFilter::Accept(TestServerTls());
  std::string plain;
  EXPECT_FALSE(server->Receive(std::string(1000, '\x80'), plain).ok());
  EXPECT_FALSE(server->Receive("more", plain).ok());
  EXPECT_FALSE(server->Send("x").ok());
}

TEST(Tls, RejectsKeysThatDoNotMatch) {
  TlsServerOptions options;
  options.certificate_pem = TestCertificates::Get().server.certificate_pem;
  options.key_pem = TestCertificates::Get().client.key_pem;
  EXPECT_FALSE(TlsContext::Server(options).ok());
  options.key_pem = "nonsense";
  EXPECT_THAT(TlsContext::Server(options).error().message,
              ::testing::StartsWith("no valid PEM private key"));
}

TEST(Certificates, CarrySubjectNamesAndTimes) {
  const CertificateInfo ca = ParseCertificate(TestCertificates::Get().ca.certificate_pem).value();
  EXPECT_TRUE(ca.is_ca);
  EXPECT_EQ(ca.subject.common_name, "test-ca");
  const Validity validity{WallTime(std::chrono::seconds(1'800'000'000)),
                          WallTime(std::chrono::seconds(4'000'000'000))};
  const CertificateSubject subject{
      "node:a", {"system:nodes", "extra"}, {"a.local", "localhost"}, {"10.0.0.1", "fd00::1"}};
  const CertificateAndKey made =
      IssueCertificate(TestCertificates::Get().ca, subject, CertificateUse::kBoth, validity)
          .value();
  const CertificateInfo info = ParseCertificate(made.certificate_pem).value();
  EXPECT_EQ(info.subject.common_name, "node:a");
  EXPECT_EQ(info.subject.organizations, subject.organizations);
  EXPECT_EQ(info.subject.dns_names, subject.dns_names);
  EXPECT_EQ(info.subject.ip_addresses, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(info.validity.not_before, validity.not_before);
  EXPECT_EQ(info.validity.not_after, validity.not_after);
  EXPECT_EQ(info.issuer_common_name, "test-ca");
  EXPECT_FALSE(info.is_ca);
  EXPECT_EQ(info.sha256_hex.size(), 64u);
}

TEST(Certificates, RejectInvalidNamesAndTimes) {
  const CertificateAndKey& ca = TestCertificates::Get().ca;
  EXPECT_FALSE(
      IssueCertificate(ca, {"x", {}, {}, {"10.0.0"}}, CertificateUse::kServer, TestValidity())
          .ok());
  EXPECT_FALSE(
      IssueCertificate(ca, {"x", {}, {"a b"}, {}}, CertificateUse::kServer, TestValidity()).ok());
  Validity reversed = TestValidity();
  std::swap(reversed.not_before, reversed.not_after);
  EXPECT_FALSE(CreateCa("x", reversed).ok());
  EXPECT_FALSE(ParseCertificate("").ok());
  EXPECT_FALSE(
      ParseCertificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").ok());
}

TEST(Certificates, SignARequestForItsOwnKey) {
  const std::string key = GenerateKeyPem().value();
  const CertificateSubject subject{"system:node:n1", {"system:nodes"}, {"n1"}, {"10.0.0.2"}};
  const std::string request = CreateSigningRequest(key, subject).value();
  const CertificateSubject asked = ParseSigningRequest(request).value();
  EXPECT_EQ(asked.common_name, subject.common_name);
  EXPECT_EQ(asked.organizations, subject.organizations);
  EXPECT_EQ(asked.dns_names, subject.dns_names);
  EXPECT_EQ(asked.ip_addresses, subject.ip_addresses);
  const std::string certificate =
      SignRequest(TestCertificates::Get().ca, request, CertificateUse::kBoth, TestValidity())
          .value();
  TlsServerOptions options;
  options.certificate_pem = certificate;
  options.key_pem = key;
  EXPECT_TRUE(TlsContext::Server(options).ok());
  EXPECT_FALSE(ParseSigningRequest("nonsense").ok());
}

TEST(Certificates, RequestsKeepAllTheirAlternativeNamesAndGetOnlyTheGivenUsages) {
  const std::string key = GenerateKeyPem().value();
  CertificateSubject subject{"jane", {"dev", "ops"}, {"a.example.com"}, {"10.0.0.2", "fd00::1"}};
  subject.email_addresses = {"jane@example.com"};
  subject.uris = {"spiffe://example.com/jane"};
  const std::string request = CreateSigningRequest(key, subject).value();
  const CertificateSubject asked = ParseSigningRequest(request).value();
  EXPECT_EQ(asked.email_addresses, subject.email_addresses);
  EXPECT_EQ(asked.uris, subject.uris);
  const std::string signed_pem =
      SignRequest(TestCertificates::Get().ca, request,
                  CertificateUsages{{"digitalSignature", "keyEncipherment"}, {"clientAuth"}},
                  TestValidity())
          .value();
  const CertificateSubject got = ParseCertificate(signed_pem).value().subject;
  EXPECT_EQ(got.common_name, "jane");
  EXPECT_EQ(got.organizations, subject.organizations);
  EXPECT_EQ(got.uris, subject.uris);
  EXPECT_FALSE(SignRequest(TestCertificates::Get().ca, request, CertificateUsages{{"bad"}, {}},
                           TestValidity())
                   .ok());
}

TEST(Certificates, HostileRequestsAreRefused) {
  const std::string key = GenerateKeyPem().value();
  const std::string request = CreateSigningRequest(key, {"x", {}, {}, {}}).value();
  // Another name of the block, which OpenSSL accepts and Kubernetes does not.
  std::string renamed = request;
  for (std::string_view edge : {"BEGIN ", "END "}) {
    renamed.insert(renamed.find(edge) + edge.size(), "NEW ");
  }
  EXPECT_EQ(ParseSigningRequest(renamed).error().message,
            "PEM block type must be CERTIFICATE REQUEST");
  EXPECT_FALSE(ParseSigningRequest(std::string(kMaxRequestBytes, 'x') + request).ok());
  // A signature by another key: the body of one request with the signature of another.
  std::string changed = request;
  changed[request.size() - 50] = changed[request.size() - 50] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(ParseSigningRequest(changed).ok());
  EXPECT_TRUE(ParseSigningRequest(StrCat("text before\n", request)).ok());
}

TEST(Certificates, AreRecognizedByTheHashOfTheirPublicKey) {
  const CertificateAndKey ca = CreateCa("one", TestValidity()).value();
  const CertificateAndKey other = CreateCa("two", TestValidity()).value();
  const auto pinned = PinCertificates(ca.certificate_pem + other.certificate_pem).value();
  ASSERT_EQ(pinned.size(), 2u);
  EXPECT_EQ(pinned[0].pem, ca.certificate_pem);
  EXPECT_EQ(pinned[0].public_key_sha256_hex.size(), 64u);
  EXPECT_NE(pinned[0].public_key_sha256_hex, pinned[1].public_key_sha256_hex);
  EXPECT_FALSE(PinCertificates("").ok());
  EXPECT_TRUE(CheckCertificates(ca.certificate_pem + other.certificate_pem).ok());
  EXPECT_EQ(CheckCertificates(ca.certificate_pem + ca.key_pem).error().message,
            "only CERTIFICATE PEM blocks are allowed, found \"PRIVATE KEY\"");
  EXPECT_FALSE(CheckCertificates("").ok());
  std::string headed = ca.certificate_pem;
  headed.insert(headed.find('\n') + 1, "Name: value\n\n");
  EXPECT_EQ(CheckCertificates(headed).error().message, "no PEM block headers are permitted");
}

TEST(Es256, SignsAndVerifiesRawSignatures) {
  const std::string key = GenerateKeyPem().value();
  const auto signer = Es256Signer::Create(key).value();
  const auto verifier = Es256Verifier::Create(PublicKeyPem(key).value()).value();
  for (int i = 0; i < 50; ++i) {
    const std::string text = StrCat("header.payload", i);
    std::string signature = signer->Sign(text).value();
    EXPECT_EQ(signature.size(), 64u);
    EXPECT_TRUE(verifier->Verify(text, signature));
    EXPECT_FALSE(verifier->Verify(text + "x", signature));
    signature[static_cast<std::size_t>(i)] =
        static_cast<char>(signature[static_cast<std::size_t>(i)] ^ 1);
    EXPECT_FALSE(verifier->Verify(text, signature));
  }
  EXPECT_FALSE(verifier->Verify("x", ""));
  EXPECT_FALSE(verifier->Verify("x", std::string(64, '\0')));
  EXPECT_EQ(verifier->x().size(), 32u);
  EXPECT_EQ(verifier->y().size(), 32u);
}

// RFC 7515 appendix A.3.
TEST(Es256, VerifiesTheExampleOfTheStandard) {
  const std::string pem =
      "-----BEGIN PUBLIC KEY-----\n" +
      Base64Encode(
          std::string("\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86"
                      "\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04",
                      27) +
          Base64UrlDecode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU").value() +
          Base64UrlDecode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0").value()) +
      "\n-----END PUBLIC KEY-----\n";
  const auto verifier = Es256Verifier::Create(pem);
  ASSERT_TRUE(verifier.ok()) << verifier.error().message;
  EXPECT_TRUE((*verifier)->Verify(
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNv"
      "bS9pc19yb290Ijp0cnVlfQ",
      Base64UrlDecode(
          "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3"
          "-Kg6NU1Q")
          .value()));
}

TEST(Digest, GivesKnownAnswers) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 4231 test case 2.
  EXPECT_EQ(Base64Encode(HmacSha256("Jefe", "what do ya want for nothing?")),
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
  EXPECT_TRUE(EqualsConstantTime("token", "token"));
  EXPECT_FALSE(EqualsConstantTime("token", "tokem"));
  EXPECT_FALSE(EqualsConstantTime("token", "toke"));
}

}  // namespace
}  // namespace drakkar::net
