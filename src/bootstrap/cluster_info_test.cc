#include "bootstrap/cluster_info.h"

#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::bootstrap {
namespace {

const net::Validity kValidity{WallTime(std::chrono::seconds(1'700'000'000)),
                              WallTime(std::chrono::seconds(2'000'000'000))};

TEST(ClusterInfo, IsReadAsItWasWritten) {
  const std::string ca = net::CreateCa("ca", kValidity).value().certificate_pem;
  const Result<ClusterInfo> read = ReadClusterInfo(WriteClusterInfo({"https://10.0.0.1:6443", ca}));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->server, "https://10.0.0.1:6443");
  EXPECT_EQ(read->ca_pem, ca);
}

TEST(ClusterInfo, NonsenseIsRejected) {
  EXPECT_FALSE(ReadClusterInfo("").ok());
  EXPECT_FALSE(ReadClusterInfo("clusters: []").ok());
  EXPECT_FALSE(ReadClusterInfo("clusters: [{cluster: {server: a}}]").ok());
  EXPECT_FALSE(ReadClusterInfo("clusters: [{cluster: {certificate-authority-data: '%'}}]").ok());
  EXPECT_FALSE(ReadClusterInfo(std::string(300 * 1024, ' ')).ok());
}

TEST(ClusterInfo, OnlyTheCaWithTheHashIsTrusted) {
  const std::string ours = net::CreateCa("ca", kValidity).value().certificate_pem;
  const std::string other = net::CreateCa("ca", kValidity).value().certificate_pem;
  const std::string hash = CaHashes(ours).value().front();
  EXPECT_EQ(SelectCa(ours, hash).value(), ours);
  // An attacker in between adds a CA of their own.
  EXPECT_EQ(SelectCa(other + ours, hash).value(), ours);
  const Result<std::string> refused = SelectCa(other, hash);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            StrCat("the server's CA has the hash ", CaHashes(other).value().front(), " and not ",
                   hash, ", so it is not the cluster that the hash was printed by"));
  EXPECT_FALSE(SelectCa(ours, "").ok());
  EXPECT_FALSE(SelectCa(ours, hash.substr(0, 70)).ok());
}

}  // namespace
}  // namespace drakkar::bootstrap
