#include "storage/etcd/endpoint.h"

#include <gtest/gtest.h>

namespace drakkar::storage {
namespace {

TEST(EtcdEndpoint, ReadsWhatKubeApiserverReads) {
  const auto plain = ParseEtcdEndpoint("http://10.0.0.1:2379", false);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "10.0.0.1");
  EXPECT_EQ(plain->port, 2379);
  EXPECT_FALSE(plain->is_tls);
  const auto secure = ParseEtcdEndpoint("HTTPS://etcd-0.etcd:2379/", false);
  ASSERT_TRUE(secure.ok());
  EXPECT_EQ(secure->host, "etcd-0.etcd");
  EXPECT_TRUE(secure->is_tls);
  const auto six = ParseEtcdEndpoint("https://[fd00::1]:2379", false);
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "fd00::1");
  const auto unix_socket = ParseEtcdEndpoint("unix:///run/etcd.sock", true);
  ASSERT_TRUE(unix_socket.ok());
  EXPECT_EQ(unix_socket->socket_path, "/run/etcd.sock");
  EXPECT_FALSE(unix_socket->is_tls);
}

TEST(EtcdEndpoint, WithoutASchemeTlsIsUsedIfItIsConfigured) {
  EXPECT_FALSE(ParseEtcdEndpoint("10.0.0.1:2379", false)->is_tls);
  EXPECT_TRUE(ParseEtcdEndpoint("10.0.0.1:2379", true)->is_tls);
  EXPECT_FALSE(ParseEtcdEndpoint("http://10.0.0.1:2379", true)->is_tls);
}

TEST(EtcdEndpoint, SaysWhatIsWrongAndHowToWriteIt) {
  const auto message = [](std::string_view url) {
    const auto parsed = ParseEtcdEndpoint(url, false);
    return parsed.ok() ? "accepted" : parsed.error().message;
  };
  EXPECT_EQ(message("http://10.0.0.1"),
            "\"http://10.0.0.1\" is not an etcd server: the port is missing; write it as "
            "https://HOST:PORT");
  EXPECT_NE(message("ftp://10.0.0.1:1").find("unknown scheme \"ftp\""), std::string::npos);
  EXPECT_NE(message("http://:2379").find("the host is missing"), std::string::npos);
  EXPECT_NE(message("http://a:0").find("the port is invalid"), std::string::npos);
  EXPECT_NE(message("http://a:65536").find("the port is invalid"), std::string::npos);
  EXPECT_NE(message("http://a:x").find("the port is invalid"), std::string::npos);
  EXPECT_NE(message("http://a:1/v2").find("it has a path"), std::string::npos);
  EXPECT_NE(message("http://fd00::1:2379").find("needs brackets"), std::string::npos);
  EXPECT_NE(message("http://[fd00::1]").find("the port is missing"), std::string::npos);
  EXPECT_NE(message("unix://").find("socket path is missing"), std::string::npos);
  EXPECT_NE(message("").find("the port is missing"), std::string::npos);
}

TEST(EtcdEndpoint, AListNamesEachMemberOnce) {
  EXPECT_EQ(ParseEtcdEndpoints({"http://a:1", " http://b:1"}, false)->size(), 2u);
  EXPECT_FALSE(ParseEtcdEndpoints({}, false).ok());
  EXPECT_EQ(ParseEtcdEndpoints({"http://a:1", "https://a:1"}, false).error().message,
            "the etcd server \"https://a:1\" is given twice");
  EXPECT_FALSE(ParseEtcdEndpoints(std::vector<std::string>(65, "http://a:1"), false).ok());
}

TEST(EtcdEndpoint, TheNumberOfServersIsLimited) {
  std::vector<std::string> urls;
  for (int i = 1; i <= 64; ++i) urls.push_back("http://10.0.0." + std::to_string(i) + ":2379");
  const auto most = ParseEtcdEndpoints(urls, false);
  ASSERT_TRUE(most.ok()) << most.error().message;
  EXPECT_EQ(most->size(), 64u);
  urls.push_back("http://10.0.1.1:2379");
  EXPECT_EQ(ParseEtcdEndpoints(urls, false).error().message,
            "65 etcd servers are given, the limit is 64");
}

TEST(EtcdEndpoint, SocketsAreToldApartByTheirPaths) {
  for (const bool is_tls : {false, true}) {
    const Result<EtcdEndpoint> socket =
        ParseEtcdEndpoint(is_tls ? "unixs:///run/etcd" : "unix:///run/etcd", !is_tls);
    ASSERT_TRUE(socket.ok());
    EXPECT_EQ(socket->socket_path, "/run/etcd");
    EXPECT_EQ(socket->is_tls, is_tls);
  }
  EXPECT_TRUE(ParseEtcdEndpoints({"unix:///a", "unix:///b"}, false).ok());
  EXPECT_FALSE(ParseEtcdEndpoints({"unix:///a", "unix:///a"}, false).ok());
  EXPECT_TRUE(ParseEtcdEndpoints({"http://a:1", "http://a:2", "http://b:1"}, false).ok());
  EXPECT_FALSE(ParseEtcdEndpoints({"http://a:1", "https://a:1"}, false).ok());
}

}  // namespace
}  // namespace drakkar::storage
