#include "sdk/driver/host/driver_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "net/client/http_client.h"
#include "sdk/driver/host/driver_endpoint.h"

namespace drakkar::driver {
namespace {

using ::testing::HasSubstr;

TEST(InCluster, AccessUsesTheServiceAccount) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/sa", 0755).ok());
  ASSERT_TRUE(files.WriteFile("/sa/ca.crt", "CA", 0644).ok());
  ASSERT_TRUE(files.WriteFile("/sa/token", "secret\n", 0600).ok());
  ASSERT_TRUE(files.WriteFile("/sa/namespace", "drivers", 0644).ok());
  const auto environment = [](const char* name) -> const char* {
    return std::string(name) == "KUBERNETES_SERVICE_HOST" ? "10.0.0.1" : "443";
  };
  auto access = LoadInClusterAccess(files, environment, "/sa");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->token_file, "/sa/token") << "reloaded before the token expires";
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->namespace_, "drivers");
  EXPECT_THAT(LoadInClusterAccess(
                  files, [](const char*) -> const char* { return nullptr; }, "/sa")
                  .error()
                  .message,
              HasSubstr("--kubeconfig is required outside of a pod"));
  EXPECT_FALSE(LoadInClusterAccess(files, environment, "/elsewhere").ok());
  for (const char* lacking : {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}) {
    for (const char* value : {static_cast<const char*>(nullptr), ""}) {
      const auto incomplete = [&](const char* name) -> const char* {
        return std::string(name) == lacking ? value : "1";
      };
      EXPECT_FALSE(LoadInClusterAccess(files, incomplete, "/sa").ok()) << lacking;
    }
  }
  const auto ipv6 = [](const char* name) -> const char* {
    return std::string(name) == "KUBERNETES_SERVICE_HOST" ? "fd00::1" : "443";
  };
  EXPECT_EQ(LoadInClusterAccess(files, ipv6, "/sa")->server, "https://[fd00::1]:443");
}

TEST(ListenAddress, NeedsAPort) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:8080")->port, 8080);
  EXPECT_EQ(ParseListenAddress("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseListenAddress(":80")->host, "0.0.0.0");
  EXPECT_THAT(ParseListenAddress("localhost").error().message, HasSubstr("must include a port"));
  EXPECT_FALSE(ParseListenAddress("x:99999").ok());
}

TEST(DriverEndpoint, MetricsAreOnlyForThisMachine) {
  EXPECT_TRUE(MayReadMetrics("127.0.0.1:4000"));
  EXPECT_TRUE(MayReadMetrics("[::1]:4000"));
  EXPECT_TRUE(MayReadMetrics("@"));
  // Documentation addresses, which no interface has.
  EXPECT_FALSE(MayReadMetrics("192.0.2.7:4000"));
  EXPECT_FALSE(MayReadMetrics("[2001:db8::7]:4000"));
  EXPECT_FALSE(MayReadMetrics(""));
  EXPECT_FALSE(MayReadMetrics("nonsense"));
}

TEST(DriverEndpoint, ServesHealthReadinessAndMetrics) {
  UvLoop loop;
  Metrics metrics;
  Result<void> health;
  Result<void> ready = Unavailable("no node has registered the driver yet");
  auto endpoint = std::make_unique<DriverEndpoint>(DriverEndpoint::Options{
      .loop = loop,
      .address = "127.0.0.1:0",
      .metrics = metrics,
      .check_health = [&] { return health; },
      .check_ready = [&] { return ready; },
      .before_metrics = [&] { metrics.GetGauge("dra_driver_registered", "x").Set(1); }});
  ASSERT_TRUE(endpoint->Start().ok());
  auto client = std::make_unique<net::HttpClient>(loop, net::HttpClientOptions{});
  const auto get = [&](const std::string& path) {
    std::string text;
    client->Do({.url = StrCat("http://127.0.0.1:", endpoint->port(), path)},
               [&](Result<net::Response> response) {
                 text = response.ok() ? StrCat(response->status, " ", response->body)
                                      : response.error().message;
                 loop.Stop();
               });
    loop.Run();
    return text;
  };
  EXPECT_EQ(get("/healthz"), "200 ok");
  EXPECT_EQ(get("/readyz"), "503 no node has registered the driver yet\n");
  ready = Ok();
  EXPECT_EQ(get("/readyz"), "200 ok");
  EXPECT_THAT(get("/metrics"), HasSubstr("dra_driver_registered 1"));
  health = Internal("broken");
  EXPECT_EQ(get("/healthz"), "503 broken\n");
  EXPECT_THAT(get("/nothing"), HasSubstr("404"));
  client.reset();
  endpoint.reset();
  loop.Post([&] { loop.Stop(); });
  loop.Run();
}

TEST(DriverHost, WithoutAServerThereIsNoDriver) {
  DriverFlags flags{.driver_name = "d.example.com", .kubeconfig = "/nowhere"};
  EXPECT_FALSE(DriverHost::Create(flags).ok());
}

}  // namespace
}  // namespace drakkar::driver
