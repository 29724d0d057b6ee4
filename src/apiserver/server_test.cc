#include "apiserver/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "api/json/reader.h"
#include "apiserver/http/subresource_proxy.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "net/client/http_client.h"
#include "storage/memory/memory_store.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kLoops = 3;
constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";

// Collects the lines of a watch in which every object occurs once. With `ordered`, all objects were
// created after the watch started.
class Lines final : public net::StreamSink {
 public:
  explicit Lines(bool ordered) : ordered_(ordered) {}
  void OnResponse(int code, const net::Headers&) override { status = code; }
  void OnData(std::string_view bytes) override {
    text_ += bytes;
    for (std::size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      const Result<api::TreePtr> event = api::ParseJson(text_.substr(0, end));
      ASSERT_TRUE(event.ok());
      const api::Value metadata = (*event)->root()["object"]["metadata"];
      const auto version = ParseInt64(metadata["resourceVersion"].str());
      ASSERT_TRUE(version.has_value());
      EXPECT_TRUE(!ordered_ || *version > newest_) << "out of order";
      EXPECT_TRUE(names_.insert(std::string(metadata["name"].str())).second) << "doubled";
      newest_ = *version;
      ++count;
    }
  }
  void OnEnd(Result<void>) override { ended = true; }

  int status = 0;
  std::size_t count = 0;
  bool ended = false;

 private:
  const bool ordered_;
  std::string text_;
  std::set<std::string> names_;
  std::int64_t newest_ = 0;
};

// A whole server with HTTP threads, and clients with separate connections, which are served by
// different loops. The core and the clients run on the test's thread.
class ApiServerTest : public ::testing::Test {
 protected:
  ApiServerTest() : pki_(*Pki::Open(files_, RealClock(), {.directory = "/pki"})) {
    server_ = std::make_unique<ApiServer>(ApiServer::Options{
        .loop = loop_,
        .gates = {},
        .metrics = metrics_,
        .store = storage::OpenMemoryStore(loop_, disk_),
        .pki = pki_,
        .address = {.host = "127.0.0.1"},
        .http_loops = kLoops,
        .front_proxies = {.ca_pem = proxy_ca_.certificate_pem, .allowed_names = {"gate"}}});
    bool started = false;
    server_->Start([&](Result<void> result) {
      ASSERT_TRUE(result.ok()) << result.error().message;
      started = true;
    });
    RunUntil([&] { return started; });
    for (std::size_t i = 0; i <= kLoops; ++i)
      admins_.push_back(NewClient("admin", "system:masters"));
  }
  ~ApiServerTest() override {
    admins_.clear();
    server_.reset();
  }

  static net::Validity Validity() {
    const WallTime now = RealClock().Now();
    return {now - std::chrono::hours(1), now + std::chrono::hours(1)};
  }

  std::unique_ptr<net::HttpClient> NewClient(std::string_view user, std::string group) {
    return NewClient(*pki_.IssueClient(user, {std::move(group)}));
  }
  std::unique_ptr<net::HttpClient> NewProxy(std::string name) {
    return NewClient(*net::IssueCertificate(proxy_ca_, {std::move(name), {}, {}, {}},
                                            net::CertificateUse::kClient, Validity()));
  }
  std::unique_ptr<net::HttpClient> NewClient(const net::CertificateAndKey& identity) {
    net::HttpClientOptions options;
    options.tls.ca_pem = pki_.ca().certificate_pem;
    options.tls.certificate_pem = identity.certificate_pem;
    options.tls.key_pem = identity.key_pem;
    return std::make_unique<net::HttpClient>(loop_, options);
  }

  template <typename Condition>
  void RunUntil(Condition done) {
    TimerHandle limit = loop_.RunAfter(
        std::chrono::seconds(30), [&] { ADD_FAILURE() << "nothing happened for thirty seconds"; });
    while (!done() && !HasFailure()) {
      TimerHandle step;
      loop_.Post(
          [&] { step = loop_.RunAfter(std::chrono::milliseconds(1), [&] { loop_.Stop(); }); });
      loop_.Run();
    }
  }

  net::ClientRequest Ask(net::Method method, const std::string& path, std::string body = "") const {
    net::ClientRequest request;
    request.method = method;
    request.url = StrCat("https://127.0.0.1:", server_->port(), path);
    if (!body.empty()) request.headers = {{"Content-Type", "application/json"}};
    if (method == net::Method::kPatch) {
      request.headers = {{"Content-Type", "application/merge-patch+json"}};
    }
    request.body = std::move(body);
    return request;
  }
  net::Response Do(net::HttpClient& client, net::ClientRequest request) {
    std::optional<Result<net::Response>> answer;
    client.Do(std::move(request), [&](Result<net::Response> given) { answer = std::move(given); });
    RunUntil([&] { return answer.has_value(); });
    EXPECT_TRUE(answer && answer->ok());
    return answer && answer->ok() ? **answer : net::Response{};
  }
  net::HttpClient& Admin(std::size_t i) { return *admins_[i % admins_.size()]; }

  UvLoop loop_;
  MemoryFileSystem files_;
  storage::MemoryDisk disk_;
  Metrics metrics_;
  const net::CertificateAndKey proxy_ca_ = *net::CreateCa("proxies", Validity());
  Pki pki_;
  std::unique_ptr<ApiServer> server_;
  std::vector<std::unique_ptr<net::HttpClient>> admins_;
};

TEST_F(ApiServerTest, AGetSeesEveryWriteThatWasAnsweredOnAnyLoop) {
  const std::string path = StrCat(kMaps, "/x");
  ASSERT_EQ(Do(Admin(0), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"x"}})")).status,
            201);
  for (std::size_t i = 0; i < 60; ++i) {
    const std::string data = StrCat(R"("round":")", i, "\"");
    ASSERT_EQ(
        Do(Admin(i), Ask(net::Method::kPatch, path, StrCat(R"({"data":{)", data, "}}"))).status,
        200);
    for (std::size_t reader = 1; reader <= 3; ++reader) {
      const net::Response read = Do(Admin(i + reader), Ask(net::Method::kGet, path));
      ASSERT_NE(read.body.find(data), std::string::npos) << read.body;
    }
  }
  ASSERT_EQ(Do(Admin(1), Ask(net::Method::kDelete, path)).status, 200);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Do(Admin(i), Ask(net::Method::kGet, path)).status, 404);
  }
}

TEST_F(ApiServerTest, ARevokedPermissionIsGoneForTheNextGet) {
  auto bob = NewClient("bob", "users");
  const std::string path = StrCat(kMaps, "/x");
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
  ASSERT_EQ(Do(Admin(0), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"x"}})")).status,
            201);
  EXPECT_EQ(Do(*bob, Ask(net::Method::kGet, path)).status, 403);
  ASSERT_EQ(
      Do(Admin(1), Ask(net::Method::kPost, bindings,
                       R"({"metadata":{"name":"bob"},"subjects":[{"kind":"User","name":"bob",)"
                       R"("apiGroup":"rbac.authorization.k8s.io"}],"roleRef":{"kind":)"
                       R"("ClusterRole","name":"view","apiGroup":"rbac.authorization.k8s.io"}})"))
          .status,
      201);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Do(*bob, Ask(net::Method::kGet, path)).status, 200);
  ASSERT_EQ(Do(Admin(2), Ask(net::Method::kDelete, bindings + "/bob")).status, 200);
  EXPECT_EQ(Do(*bob, Ask(net::Method::kGet, path)).status, 403);
}

TEST_F(ApiServerTest, AFrontProxySaysWhoItsClientsAre) {
  const std::string path = StrCat(kMaps, "/x");
  ASSERT_EQ(Do(Admin(0), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"x"}})")).status,
            201);
  auto gate = NewProxy("gate");
  const auto as = [&](net::HttpClient& client, net::Headers headers) {
    net::ClientRequest request = Ask(net::Method::kGet, path);
    request.headers = std::move(headers);
    return Do(client, std::move(request)).status;
  };
  const net::Headers jane = {{"X-Remote-User", "jane"}, {"X-Remote-Group", "system:masters"}};
  const net::Headers bob = {{"X-Remote-User", "bob"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(as(*gate, jane), 200);
    EXPECT_EQ(as(*gate, bob), 403) << "not what jane has just read";
    EXPECT_EQ(as(*gate, {}), 401);
  }
  net::Headers impersonating = jane;
  impersonating.Add("Impersonate-User", "bob");
  EXPECT_EQ(as(*gate, impersonating), 403);
  auto stranger = NewProxy("stranger");
  EXPECT_EQ(as(*stranger, jane), 401);
  auto client = NewClient("bob", "users");
  EXPECT_EQ(as(*client, jane), 403) << "is no proxy";
}

TEST_F(ApiServerTest, WatchesOnEveryLoopSeeEveryChangeOnceAndInOrder) {
  constexpr std::size_t kCount = 120;
  std::vector<std::unique_ptr<Lines>> sinks;
  std::vector<std::unique_ptr<net::RequestHandle>> watches;
  auto watch = [&](std::size_t i) {
    sinks.push_back(std::make_unique<Lines>(/*ordered=*/i < 8));
    watches.push_back(
        Admin(i).Stream(Ask(net::Method::kGet, StrCat(kMaps, "?watch=1")), *sinks.back()));
  };
  for (std::size_t i = 0; i < 8; ++i) watch(i);
  RunUntil([&] {
    return std::ranges::all_of(sinks, [](const auto& sink) { return sink->status == 200; });
  });
  std::size_t created = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    Admin(i).Do(Ask(net::Method::kPost, kMaps, StrCat(R"({"metadata":{"name":"m)", i, "\"}}")),
                [&](Result<net::Response> answer) {
                  ASSERT_TRUE(answer.ok());
                  EXPECT_EQ(answer->status, 201) << answer->body;
                  // A watch that starts later sees the same objects through its list and its
                  // events.
                  if (++created % 40 == 0) watch(created);
                });
  }
  RunUntil([&] {
    for (const auto& sink : sinks) {
      if (sink->count < kCount) return false;
    }
    return created == kCount;
  });
  for (const auto& sink : sinks) EXPECT_EQ(sink->count, kCount);
  const net::Response metrics = Do(Admin(0), Ask(net::Method::kGet, "/metrics"));
  EXPECT_NE(metrics.body.find(StrCat("resource=\"configmaps\",scope=\"cluster\",subresource=\"\","
                                     "verb=\"WATCH\",version=\"v1\"} ",
                                     sinks.size())),
            std::string::npos);
}

TEST_F(ApiServerTest, PermissionToWatchIsEnoughForAWatchWithInitialEvents) {
  auto bob = NewClient("bob", "users");
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
  ASSERT_EQ(Do(Admin(0), Ask(net::Method::kPost, StrCat(rbac, "roles"),
                             R"({"metadata":{"name":"watcher"},"rules":[{"apiGroups":[""],)"
                             R"("resources":["configmaps"],"verbs":["watch"]}]})"))
                .status,
            201);
  ASSERT_EQ(
      Do(Admin(0), Ask(net::Method::kPost, StrCat(rbac, "rolebindings"),
                       R"({"metadata":{"name":"bob"},"subjects":[{"kind":"User","name":"bob",)"
                       R"("apiGroup":"rbac.authorization.k8s.io"}],"roleRef":{"kind":"Role",)"
                       R"("name":"watcher","apiGroup":"rbac.authorization.k8s.io"}})"))
          .status,
      201);
  ASSERT_EQ(Do(Admin(0), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"x"}})")).status,
            201);
  EXPECT_EQ(Do(*bob, Ask(net::Method::kGet, kMaps)).status, 403) << "no list";
  Lines sink(/*ordered=*/false);
  auto watch = bob->Stream(Ask(net::Method::kGet, StrCat(kMaps, "?watch=1")), sink);
  RunUntil([&] { return sink.count > 0 || sink.ended; });
  EXPECT_EQ(sink.status, 200);
  Lines refused(/*ordered=*/false);
  auto other =
      bob->Stream(Ask(net::Method::kGet, "/api/v1/namespaces/default/secrets?watch=1"), refused);
  RunUntil([&] { return refused.status != 0; });
  EXPECT_EQ(refused.status, 403);
}

TEST_F(ApiServerTest, AFullDiskIsReportedToClientsInTheLogAndInHealth) {
  std::string log;
  SetLogSink([&](std::string_view line) { log += line; });
  const net::Response most =
      Do(Admin(0), Ask(net::Method::kGet, "/readyz?verbose&exclude=ping&exclude=log"));
  EXPECT_NE(most.body.find("[+]ping excluded: ok\n[+]log excluded: ok"), std::string::npos)
      << most.body;
  const net::Response well = Do(Admin(0), Ask(net::Method::kGet, "/readyz?verbose"));
  EXPECT_NE(well.body.find("[+]etcd ok"), std::string::npos) << well.body;
  disk_.FailSync(1, Unavailable("no space left on device"));
  const net::Response lost =
      Do(Admin(0), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"x"}})"));
  EXPECT_EQ(lost.status, 500) << lost.body;
  EXPECT_NE(lost.body.find("no space left on device"), std::string::npos) << lost.body;
  EXPECT_EQ(Do(Admin(1), Ask(net::Method::kGet, kMaps)).status, 500);
  EXPECT_EQ(Do(Admin(2), Ask(net::Method::kGet, StrCat(kMaps, "?watch=1"))).status, 500);
  EXPECT_EQ(Do(Admin(2), Ask(net::Method::kPost, kMaps, R"({"metadata":{"name":"y"}})")).status,
            503);
  EXPECT_EQ(Do(Admin(0), Ask(net::Method::kGet, "/api/v1/namespaces/default")).status, 200)
      << "what is durable can be read";
  for (const char* path : {"/readyz", "/livez", "/healthz"}) {
    const net::Response health = Do(Admin(0), Ask(net::Method::kGet, path));
    EXPECT_EQ(health.status, 500);
    EXPECT_NE(health.body.find("[-]etcd failed"), std::string::npos) << health.body;
  }
  SetLogSink({});
  const std::size_t told = log.find("\"store failed\"");
  EXPECT_NE(told, std::string::npos);
  EXPECT_EQ(log.find("\"store failed\"", told + 1), std::string::npos) << log;
}

TEST_F(ApiServerTest, ABodyThatIsTooLargeIsRejectedWithAStatus) {
  const net::Response refused =
      Do(Admin(0), Ask(net::Method::kPost, kMaps, std::string((3 << 20) + 1, ' ')));
  EXPECT_EQ(refused.status, 413);
  EXPECT_NE(
      refused.body.find("\"message\":\"Request entity too large: limit is 3145728\",\"reason\":"
                        "\"RequestEntityTooLarge\""),
      std::string::npos)
      << refused.body;
}

TEST_F(ApiServerTest, PublishesItsAddressInAServiceAndEndpoints) {
  const std::string port = StrCat("\"port\":", server_->port());
  for (const char* kind : {"services", "endpoints"}) {
    const net::Response found =
        Do(Admin(0),
           Ask(net::Method::kGet, StrCat("/api/v1/namespaces/default/", kind, "/kubernetes")));
    EXPECT_EQ(found.status, 200);
    EXPECT_NE(found.body.find(port), std::string::npos) << found.body;
    EXPECT_NE(found.body.find("\"127.0.0.1\""), std::string::npos) << found.body;
  }
}

TEST_F(ApiServerTest, MetricsCoverRequestsAuthorizationAndTheProcess) {
  auto bob = NewClient("bob", "users");
  EXPECT_EQ(Do(*bob, Ask(net::Method::kGet, StrCat(kMaps, "?watch=1"))).status, 403);
  EXPECT_EQ(
      Do(Admin(0), Ask(net::Method::kGet, StrCat(kMaps, "?watch=1&resourceVersion=99999"))).status,
      504);
  EXPECT_EQ(Do(Admin(0), Ask(net::Method::kGet, StrCat(kMaps, "?watch=1&timeoutSeconds=1"))).status,
            200);
  EXPECT_EQ(Do(Admin(0), Ask(net::Method::kGet, kMaps)).status, 200);
  const std::string text = Do(Admin(0), Ask(net::Method::kGet, "/metrics")).body;
  for (const char* code : {"403", "504", "200"}) {
    EXPECT_NE(text.find(StrCat(
                  "apiserver_request_total{code=\"", code,
                  "\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"configmaps\","
                  "scope=\"namespace\",subresource=\"\",verb=\"WATCH\",version=\"v1\"} 1")),
              std::string::npos)
        << code;
  }
  for (const char* name :
       {"apiserver_response_sizes_count{", "authentication_attempts{result=\"success\"}",
        "authorization_attempts_total{result=\"allowed\"}",
        "authorization_attempts_total{result=\"no-opinion\"}", "process_cpu_seconds_total ",
        "process_resident_memory_bytes ", "process_open_fds ", "process_start_time_seconds ",
        "kubernetes_build_info{"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST_F(ApiServerTest, StopsWhileWatchesAreOpenAndRequestsAreInFlight) {
  Lines sink(/*ordered=*/false);
  auto watch = Admin(0).Stream(Ask(net::Method::kGet, "/api/v1/namespaces?watch=1"), sink);
  RunUntil([&] { return sink.count > 0; });
  for (std::size_t i = 0; i < 40; ++i) {
    Admin(i).Do(Ask(net::Method::kPost, kMaps, StrCat(R"({"metadata":{"name":"m)", i, "\"}}")),
                [](Result<net::Response>) {});
  }
  bool posted = false;
  loop_.Post([&] { posted = true; });
  RunUntil([&] { return posted; });
  server_.reset();
  RunUntil([&] { return sink.ended; });
}

}  // namespace
}  // namespace drakkar::apiserver
