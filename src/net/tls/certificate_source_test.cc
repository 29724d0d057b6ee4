#include "net/tls/certificate_source.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "net/tls/tls.h"

namespace drakkar::net {
namespace {

using std::chrono::hours;

class MovedClock final : public Clock {
 public:
  WallTime Now() const override { return WallTime(hours(24 * 20'000)) + moved_; }
  MonotonicTime Monotonic() const override { return MonotonicTime() + hours(1) + moved_; }
  void Move(Duration by) { moved_ += by; }

 private:
  Duration moved_{};
};

class CertificateSourceTest : public ::testing::Test {
 protected:
  Validity For(Duration lifetime) { return {clock_.Now() - hours(1), clock_.Now() + lifetime}; }
  CertificateAndKey Issue(std::string name, Duration lifetime = hours(24 * 365)) {
    return IssueCertificate(ca_, {std::move(name), {}, {"localhost"}, {}}, CertificateUse::kBoth,
                            For(lifetime))
        .value();
  }

  // The common name that a client sees when it connects.
  static std::string SeenBy(const std::shared_ptr<const TlsContext>& server,
                            const std::shared_ptr<const TlsContext>& client) {
    auto accepted = TlsFilter::Accept(server);
    auto connected = TlsFilter::Connect(client, "localhost");
    std::string plain;
    (void)connected->Receive("", plain);
    for (int i = 0; i < 10; ++i) {
      const std::string to_server = std::exchange(connected->output(), "");
      (void)accepted->Receive(to_server, plain);
      const std::string to_client = std::exchange(accepted->output(), "");
      (void)connected->Receive(to_client, plain);
    }
    return accepted->peer() ? accepted->peer()->common_name : "nobody";
  }

  MovedClock clock_;
  const CertificateAndKey ca_ = CreateCa("ca", For(hours(24 * 3650))).value();
  int issued_ = 0;
};

TEST_F(CertificateSourceTest, ACertificateIsRenewedThirtyDaysBeforeItExpires) {
  int renewals = 0;
  auto source = RenewedCertificate::Make(
                    clock_, [this] { return Issue("name-" + std::to_string(++issued_)); }, {},
                    [&](const Result<void>& renewed) { renewals += renewed.ok(); })
                    .value();
  const auto first = source->Current();
  clock_.Move(hours(24 * 334));
  EXPECT_EQ(source->Current(), first) << "31 days are left";
  clock_.Move(hours(24 * 2));
  const auto second = source->Current();
  EXPECT_NE(second, first);
  EXPECT_EQ(renewals, 1);
  EXPECT_EQ(issued_, 2);
  EXPECT_GT(ParseCertificate(second->certificate_pem)->validity.not_after,
            clock_.Now() + hours(24 * 300));
  EXPECT_EQ(source->Current(), second);
}

TEST_F(CertificateSourceTest, AFailedRenewalKeepsTheOldOneAndIsRepeated) {
  bool works = true;
  int failures = 0;
  auto source = RenewedCertificate::Make(
                    clock_,
                    [&]() -> Result<CertificateAndKey> {
                      if (!works) return Unavailable("the disk is full");
                      return Issue("name");
                    },
                    {}, [&](const Result<void>& renewed) { failures += !renewed.ok(); })
                    .value();
  const auto first = source->Current();
  works = false;
  clock_.Move(hours(24 * 340));
  EXPECT_EQ(source->Current(), first);
  EXPECT_EQ(source->Current(), first);
  EXPECT_EQ(failures, 1) << "not tried at every connection";
  works = true;
  EXPECT_EQ(source->Current(), first);
  clock_.Move(RenewedCertificate::kRetryRenewal);
  EXPECT_NE(source->Current(), first);
}

TEST_F(CertificateSourceTest, FilesThatWereReplacedAreReadAgainAsAPair) {
  MemoryFileSystem files;
  const auto put = [&](const CertificateAndKey& pair, bool key) {
    ASSERT_TRUE(files.WriteFile("/c", pair.certificate_pem, 0600).ok());
    if (key) {
      ASSERT_TRUE(files.WriteFile("/k", pair.key_pem, 0600).ok());
    }
  };
  put(Issue("one"), true);
  auto source = WatchedCertificate::Make(clock_, FromFiles(files, "/c", "/k")).value();
  const auto first = source->Current();
  const CertificateAndKey next = Issue("two");
  put(next, false);
  clock_.Move(WatchedCertificate::kReadInterval);
  EXPECT_EQ(source->Current(), first) << "the key of another certificate";
  put(next, true);
  EXPECT_EQ(source->Current(), first) << "not read at every connection";
  clock_.Move(WatchedCertificate::kReadInterval);
  EXPECT_EQ(source->Current()->certificate_pem, next.certificate_pem);
  ASSERT_TRUE(files.Remove("/c").ok());
  clock_.Move(WatchedCertificate::kReadInterval);
  EXPECT_EQ(source->Current()->certificate_pem, next.certificate_pem);
}

TEST_F(CertificateSourceTest, NewConnectionsUseTheRenewedCertificate) {
  // Relative to the real clock, by which OpenSSL judges.
  const WallTime now = RealClock().Now();
  const CertificateAndKey ca = CreateCa("ca", {now - hours(1), now + hours(24)}).value();
  const auto make = [&](std::string name) {
    return IssueCertificate(ca, {std::move(name), {}, {"localhost"}, {}}, CertificateUse::kBoth,
                            {now - hours(1), now + hours(24)})
        .value();
  };
  CertificateAndKey pair = make("first");
  TlsClientOptions client;
  client.ca_pem = ca.certificate_pem;
  client.source =
      WatchedCertificate::Make(clock_, [&]() -> Result<CertificateAndKey> { return pair; }).value();
  const CertificateAndKey serving = make("server");
  TlsServerOptions server;
  server.certificate_pem = serving.certificate_pem;
  server.key_pem = serving.key_pem;
  server.client_ca_pem = ca.certificate_pem;
  const auto server_context = TlsContext::Server(server).value();
  const auto client_context = TlsContext::Client(client).value();
  EXPECT_EQ(SeenBy(server_context, client_context), "first");
  pair = make("second");
  EXPECT_EQ(SeenBy(server_context, client_context), "first");
  clock_.Move(WatchedCertificate::kReadInterval);
  EXPECT_EQ(SeenBy(server_context, client_context), "second");
}

TEST_F(CertificateSourceTest, AnExpiredCertificateIsNamedWithItsDate) {
  const CertificateAndKey pair = Issue("x", hours(1));
  EXPECT_FALSE(WhyNotValid(pair.certificate_pem, clock_.Now(), "it").has_value());
  const auto late = WhyNotValid(pair.certificate_pem, clock_.Now() + hours(2), "it");
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->message, "it expired on 2024-10-04 01:00:00Z");
  const auto early = WhyNotValid(pair.certificate_pem, clock_.Now() - hours(2), "it");
  ASSERT_TRUE(early.has_value());
  EXPECT_EQ(early->message,
            "it is not valid before 2024-10-03 23:00:00Z; check the clock of this machine");
}

}  // namespace
}  // namespace drakkar::net
