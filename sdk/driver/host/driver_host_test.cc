#include "sdk/driver/host/driver_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "net/client/http_client.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "telemetry/log/log.h"

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
  ASSERT_TRUE(files.MakeDirectories("/partial", 0755).ok());
  ASSERT_TRUE(files.WriteFile("/partial/ca.crt", "CA", 0644).ok());
  EXPECT_FALSE(LoadInClusterAccess(files, environment, "/partial").ok()) << "no token";
  ASSERT_TRUE(files.WriteFile("/partial/token", "t", 0600).ok());
  EXPECT_EQ(LoadInClusterAccess(files, environment, "/partial")->namespace_, "default");
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
  EXPECT_EQ(ParseListenAddress("[]:80")->host, "0.0.0.0");
  EXPECT_EQ(ParseListenAddress("[x:80")->host, "[x");
  EXPECT_EQ(ParseListenAddress("x:0")->port, 0) << "chooses a free one";
  EXPECT_EQ(ParseListenAddress("x:65535")->port, 65'535);
  for (const char* wrong : {"x:65536", "x:-1", "x:", "x:y", ""}) {
    EXPECT_FALSE(ParseListenAddress(wrong).ok()) << wrong;
  }
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
  const auto get = [&](const std::string& path, net::Method method = net::Method::kGet) {
    std::string text;
    client->Do({.method = method, .url = StrCat("http://127.0.0.1:", endpoint->port(), path)},
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
  EXPECT_EQ(get("/livez"), "503 broken\n");
  EXPECT_EQ(get("/readyz"), "503 broken\n") << "a driver that failed is not ready";
  EXPECT_THAT(get("/nothing"), HasSubstr("404"));
  EXPECT_THAT(get("/metrics", net::Method::kPost), HasSubstr("405 only GET is supported"));
  client.reset();
  endpoint.reset();
  loop.Post([&] { loop.Stop(); });
  loop.Run();
}

class NoPlugin final : public Plugin {
 public:
  void PrepareResourceClaims(std::vector<api::ObjectPtr>, PrepareDone done) override {
    done(PrepareResults());
  }
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference>, rpc::UnprepareDone done) override {
    done(rpc::UnprepareResults());
  }
  void HandleError(const Error&, bool) override {}
};

// A folder with a kubeconfig of a server that does not answer.
class DriverHostTest : public ::testing::Test {
 protected:
  DriverHostTest() {
    char pattern[] = "/tmp/driver_host_test.XXXXXX";
    directory_ = ::mkdtemp(pattern);
    std::ofstream(directory_ + "/kubeconfig")
        << "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
           "clusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
           "users: [{name: x, user: {token: t}}]\n"
           "contexts: [{name: x, context: {cluster: x, user: x}}]\n";
    flags_.driver_name = "d.example.com";
    flags_.node_name = "n1";
    flags_.kubeconfig = directory_ + "/kubeconfig";
    flags_.registry_directory = directory_ + "/registry";
    flags_.plugin_directory = directory_ + "/plugin";
    flags_.cdi_directory = directory_ + "/cdi";
    flags_.log_level = "error";
    SetLogSink([this](std::string_view line) { logged_ += std::string(line) + "\n"; });
  }
  ~DriverHostTest() override {
    SetLogSink(nullptr);
    std::filesystem::remove_all(directory_);
  }

  std::string directory_;
  std::string logged_;
  DriverFlags flags_;
  NoPlugin plugin_;
};

TEST_F(DriverHostTest, WithoutAServerThereIsNoDriver) {
  flags_.kubeconfig = "/nowhere";
  EXPECT_FALSE(DriverHost::Create(flags_).ok());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunDriver(flags_, plugin_, nullptr), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("/nowhere"));
}

TEST_F(DriverHostTest, FlagsBecomeTheDriversOptions) {
  flags_.pod_uid = "pod-1";
  flags_.enable_device_metadata = true;
  flags_.unhealthy_taint = "NoExecute";
  auto host = DriverHost::Create(flags_);
  ASSERT_TRUE(host.ok()) << host.error().message;
  const DriverOptions options = (*host)->Options(plugin_);
  EXPECT_EQ(&options.plugin, &plugin_);
  EXPECT_EQ(&options.client, &(*host)->client());
  EXPECT_EQ(options.metrics, &(*host)->metrics());
  EXPECT_EQ(options.driver_name, "d.example.com");
  EXPECT_EQ(options.node_name, "n1");
  EXPECT_EQ(options.registry_directory, directory_ + "/registry");
  EXPECT_EQ(options.plugin_directory, directory_ + "/plugin");
  EXPECT_EQ(options.cdi_directory, directory_ + "/cdi");
  EXPECT_EQ(options.rolling_update_uid, "pod-1");
  EXPECT_TRUE(options.device_metadata);
  EXPECT_EQ(options.unhealthy_taint.key, "d.example.com/unhealthy");
  EXPECT_EQ(options.unhealthy_taint.effect, "NoExecute");

  flags_.unhealthy_taint = "";
  flags_.enable_device_metadata = false;
  auto plain = DriverHost::Create(flags_);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*plain)->Options(plugin_).unhealthy_taint.key, "");
  EXPECT_FALSE((*plain)->Options(plugin_).device_metadata);
}

TEST_F(DriverHostTest, TheEnvironmentFillsWhatTheFlagsLeaveEmpty) {
  flags_.node_name = "";
  ::setenv("NODE_NAME", "from-the-pod", 1);
  auto host = DriverHost::Create(flags_);
  ::unsetenv("NODE_NAME");
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->flags().node_name, "from-the-pod");
}

TEST_F(DriverHostTest, TheLogHasTheLevelAndFormatOfTheFlags) {
  constexpr Logger kTestLog("test");
  const auto shown = [&](const std::string& level) {
    flags_.log_level = level;
    EXPECT_TRUE(BeginDriverProcess(flags_).ok());
    logged_.clear();
    kTestLog.Debug("d-line", {});
    kTestLog.Info("i-line", {});
    kTestLog.Warning("w-line", {});
    kTestLog.Error("e-line", {});
    std::string levels;
    for (const char* each : {"d", "i", "w", "e"}) {
      if (logged_.find(StrCat(each, "-line")) != std::string::npos) levels += each;
    }
    return levels;
  };
  EXPECT_EQ(shown("debug"), "diwe");
  EXPECT_EQ(shown("info"), "iwe");
  EXPECT_EQ(shown("warning"), "we");
  EXPECT_EQ(shown("error"), "e");
  EXPECT_FALSE(logged_.starts_with("{"));
  flags_.logging_format = "json";
  shown("error");
  EXPECT_TRUE(logged_.starts_with("{")) << logged_;
  flags_.logging_format = "text";
  shown("error");
}

TEST_F(DriverHostTest, RunsUntilItIsEndedAndReturnsTheExitCode) {
  const auto run = [&](const DriverHost::StartFunction& start) {
    auto host = DriverHost::Create(flags_);
    EXPECT_TRUE(host.ok());
    return (*host)->Run(start);
  };
  using Started = Result<std::unique_ptr<Driver>>;
  EXPECT_EQ(run([](DriverHost& host) -> Started {
              host.End();
              return std::unique_ptr<Driver>();
            }),
            0);
  EXPECT_EQ(run([](DriverHost& host) -> Started {
              const Error error = Internal("out of order");
              host.loop().Post([&host, error] { host.End(&error); });
              return std::unique_ptr<Driver>();
            }),
            1);
  EXPECT_EQ(run([](DriverHost&) -> Started { return Internal("no devices"); }), 1);
  EXPECT_EQ(run([](DriverHost& host) -> Started {
              host.loop().Post([] { ::raise(SIGTERM); });
              return std::unique_ptr<Driver>();
            }),
            0);
  flags_.http_endpoint = "nonsense";
  bool started = false;
  EXPECT_EQ(run([&](DriverHost&) -> Started {
              started = true;
              return std::unique_ptr<Driver>();
            }),
            1);
  EXPECT_FALSE(started) << "the endpoint comes first";
  EXPECT_THAT(logged_, HasSubstr("--http-endpoint"));
}

TEST_F(DriverHostTest, ServesItsEndpointWhileTheDriverRuns) {
  flags_.http_endpoint = "127.0.0.1:0";
  flags_.log_level = "info";
  auto host = DriverHost::Create(flags_);
  ASSERT_TRUE(host.ok());
  std::unique_ptr<net::HttpClient> client;
  std::vector<std::string> answers;
  const auto port = [&] {
    const std::size_t at = logged_.find("port=");
    return at == std::string::npos
               ? std::string("0")
               : logged_.substr(at + 5, logged_.find_first_not_of("0123456789", at + 5) - at - 5);
  };
  const auto get = [&](const std::string& path, std::function<void()> next) {
    client->Do({.url = StrCat("http://127.0.0.1:", port(), path)},
               [&answers, next](Result<net::Response> response) {
                 answers.push_back(response.ok() ? StrCat(response->status, " ", response->body)
                                                 : response.error().message);
                 next();
               });
  };
  const int code = (*host)->Run([&](DriverHost& running) -> Result<std::unique_ptr<Driver>> {
    EXPECT_EQ(running.driver(), nullptr);
    client = std::make_unique<net::HttpClient>(running.loop(), net::HttpClientOptions{});
    running.loop().Post([&] {
      EXPECT_NE(running.driver(), nullptr);
      get("/healthz", [&] {
        get("/readyz",
            [&] { get("/metrics", [&] { running.loop().Post([&] { running.End(); }); }); });
      });
    });
    return Driver::Start(running.Options(plugin_));
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ((*host)->driver(), nullptr);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0], "200 ok");
  EXPECT_EQ(answers[1], "503 no node has registered the driver yet\n");
  EXPECT_THAT(answers[2], HasSubstr("dra_driver_registered 0"));
  client.reset();
}

TEST_F(DriverHostTest, RunDriverStartsTheDriverAndEndsWhenTheCallerCannot) {
  bool called = false;
  EXPECT_EQ(RunDriver(flags_, plugin_,
                      [&](Driver& driver) -> Result<void> {
                        called = true;
                        EXPECT_FALSE(driver.CheckReady().ok());
                        EXPECT_TRUE(std::filesystem::exists(directory_ + "/plugin/dra.sock"));
                        return Internal("no devices");
                      }),
            1);
  EXPECT_TRUE(called);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/plugin/dra.sock")) << "closed";
}

}  // namespace
}  // namespace drakkar::driver
