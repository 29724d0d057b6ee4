#include "apiserver/http/workload_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/http/proxy_target.h"
#include "apiserver/http/tunnel.h"
#include "apiserver/testing/https_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using net::Method;

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kServices[] = "/api/v1/namespaces/default/services";

// Leads to the loopback address instead of the pod's, which no test has.
class Inward final : public SubresourceProxy {
 public:
  Inward(UvLoop& loop, IsOwnAddress is_own, WorkloadProxy::IsThisMachine is_this_machine)
      : inner_(loop, std::move(is_own), std::move(is_this_machine)) {}

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override {
    const Address& address = *target.address;
    asked = StrCat(address.scheme, " ", address.ip, " ", address.port);
    if (leads_inward) target.address->ip = "127.0.0.1";
    inner_.Serve(info, std::move(target), std::move(request), std::move(writer));
  }

  std::string asked;
  bool leads_inward = true;

 private:
  WorkloadProxy inner_;
};

// An API server and two servers of pods, one of them with TLS, on one real loop.
class WorkloadProxyTest : public HttpsTest {
 protected:
  WorkloadProxyTest() {
    net::HttpServerOptions plain;
    plain.address.host = "127.0.0.1";
    pod_ = std::make_unique<net::HttpServer>(loop_, plain, handler_);
    EXPECT_TRUE(pod_->Start().ok());
    secure_ = std::make_unique<net::HttpServer>(loop_, LoopbackOptions(), handler_);
    EXPECT_TRUE(secure_->Start().ok());
    proxy_ = std::make_unique<Inward>(
        loop_, [this](const std::string&, std::uint16_t port) { return port == server_->port(); },
        [](const std::string& ip) { return ip == "10.9.9.9"; });
    Serve({{"pods/proxy", proxy_.get()}, {"services/proxy", proxy_.get()}});
    handler_.function = [this](net::ServerRequest request,
                               std::shared_ptr<net::ResponseWriter> writer) {
      seen_.push_back(std::move(request));
      writer->Send(seen_.back().method == Method::kDelete ? 202 : 200,
                   {{"Content-Type", "text/x"}, {"X-Own", "yes"}}, std::string("answer"));
    };
    MakePod("p", "10.1.0.7");
    const std::string ports =
        StrCat(R"("ports":[{"name":"web","port":80},{"name":"tls","port":443}])");
    Create(kServices, StrCat(R"({"metadata":{"name":"s"},"spec":{)", ports, "}}"));
    Create("/api/v1/namespaces/default/endpoints",
           StrCat(R"({"metadata":{"name":"s"},"subsets":[{"addresses":[
               {"ip":"10.1.0.8","targetRef":{"kind":"Pod","namespace":"default","name":"p"}},
               {"ip":"10.1.0.7","targetRef":{"kind":"Pod","namespace":"default","name":"p"}},
               {"ip":"10.6.6.6"}],
               "ports":[{"name":"web","port":)",
                  pod_->port(), R"(},{"name":"tls","port":)", secure_->port(), "}]}]}"));
  }
  ~WorkloadProxyTest() override {
    client_end_.reset();
    pod_end_.reset();
    streams_.clear();
    held_.clear();
    http_.reset();
    http1_.reset();
    server_.reset();
    RunOnce();
    pod_.reset();
    secure_.reset();
    frontend_.reset();
    proxy_.reset();
    RunOnce();
  }

  void Create(const std::string& path, const std::string& body) {
    const net::Response made = Post(path, body);
    ASSERT_EQ(made.status, 201) << made.body;
  }
  void MakePod(const std::string& name, const std::string& ip, const std::string& more = "") {
    Create(kPods, StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{)", more,
                         R"("containers":[{"name":"c","image":"i:1","ports":[)",
                         R"({"name":"web","containerPort":)", pod_->port(),
                         R"(},{"name":"tls","containerPort":)", secure_->port(), "}]}]}}"));
    // The list refuses IPv4 in IPv6, but the field may have it from before that rule.
    const std::string list =
        ip.starts_with("::ffff:") ? "" : StrCat(R"(,"podIPs":[{"ip":")", ip, R"("}])");
    const net::Response patched = Do(Method::kPatch, StrCat(kPods, "/", name, "/status"),
                                     StrCat(R"({"status":{"podIP":")", ip, "\"", list, "}}"),
                                     {{"Content-Type", "application/merge-patch+json"}});
    ASSERT_EQ(patched.status, 200) << patched.body;
  }
  static std::string Message(const net::Response& response) {
    Result<api::TreePtr> tree = api::ParseJson(response.body);
    return StrCat(response.status, " ",
                  tree.ok() ? std::string((*tree)->root()["message"].str()) : response.body);
  }
  void Hold() {
    handler_.function = [this](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
      held_.push_back(std::move(writer));
    };
  }
  // Of a client that speaks HTTP/1.1.
  net::HttpClient& Http1() {
    if (http1_ == nullptr) {
      net::HttpClientOptions options = client::HttpOptionsFor(access_);
      options.tls.offer_http2 = false;
      http1_ = std::make_unique<net::HttpClient>(loop_, std::move(options));
    }
    return *http1_;
  }

  net::testing::FunctionHandler handler_;
  std::unique_ptr<net::HttpServer> pod_, secure_;
  std::unique_ptr<Inward> proxy_;
  std::unique_ptr<net::HttpClient> http1_;
  std::vector<net::ServerRequest> seen_;
  std::vector<std::shared_ptr<net::ResponseWriter>> held_;
  std::vector<std::unique_ptr<net::RequestHandle>> streams_;
  std::unique_ptr<net::RawStream> client_end_, pod_end_;
};

TEST_F(WorkloadProxyTest, PassesEveryMethodOnWithoutTheCallersCredentials) {
  for (const Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch,
                              Method::kDelete, Method::kOptions}) {
    seen_.clear();
    const net::Response answer =
        Do(method, StrCat(kPods, "/p/proxy/a%20b/c:d/?watch=true&limit=many&dryRun=x"),
           method == Method::kGet ? "" : "body",
           {{"Authorization", "Bearer secret"},
            {"X-Remote-User", "root"},
            {"X-Remote-Group", "system:masters"},
            {"Accept", "text/x"},
            {"Cookie", "theirs"},
            {"X-Forwarded-For", "192.0.2.1"},
            {"Content-Type", "application/x"}});
    EXPECT_EQ(answer.status, method == Method::kDelete ? 202 : 200) << answer.body;
    EXPECT_EQ(answer.body, "answer");
    EXPECT_EQ(answer.headers.Get("x-own"), "yes");
    ASSERT_EQ(seen_.size(), 1u);
    const net::ServerRequest& request = seen_[0];
    EXPECT_EQ(request.method, method);
    EXPECT_EQ(request.raw_path, "/a%20b/c:d/");
    EXPECT_EQ(request.raw_query, "watch=true&limit=many&dryRun=x");
    EXPECT_EQ(request.body, method == Method::kGet ? "" : "body");
    EXPECT_EQ(request.headers.Get("content-type"), "application/x");
    EXPECT_EQ(request.headers.Get("cookie"), "theirs");
    EXPECT_EQ(request.headers.Get("accept"), "text/x");
    EXPECT_EQ(request.headers.Get("x-forwarded-for"), "192.0.2.1, 127.0.0.1");
    for (const char* secret : {"authorization", "x-remote-user", "x-remote-group"}) {
      EXPECT_EQ(request.headers.Find(secret), nullptr) << secret;
    }
    EXPECT_EQ(request.headers.Get("host"), StrCat("127.0.0.1:", server_->port()))
        << "the client's, as in Kubernetes";
  }
}

TEST_F(WorkloadProxyTest, NamesSchemesAndPortsSelectTheServer) {
  const auto asked = [&](const std::string& path) {
    proxy_->asked.clear();
    const net::Response answer = Do(Method::kGet, path);
    if (answer.status != 200) return Message(answer);
    EXPECT_EQ(answer.body, "answer");
    return proxy_->asked;
  };
  const std::string plain = StrCat("http 10.1.0.7 ", pod_->port());
  const std::string secure = StrCat("https 10.1.0.7 ", secure_->port());
  EXPECT_EQ(asked(StrCat(kPods, "/p/proxy/x")), plain) << "the first port";
  EXPECT_EQ(asked(StrCat(kPods, "/p:", pod_->port(), "/proxy/x")), plain);
  EXPECT_EQ(asked(StrCat(kPods, "/p:web/proxy/x")), plain);
  EXPECT_EQ(asked(StrCat(kPods, "/http:p:web/proxy/x")), plain);
  EXPECT_EQ(asked(StrCat(kPods, "/https:p:tls/proxy/x")), secure);
  EXPECT_FALSE(seen_.back().connection->peer.has_value()) << "no certificate of ours";
  EXPECT_EQ(asked(StrCat(kServices, "/s:80/proxy/x")), plain);
  EXPECT_EQ(asked(StrCat(kServices, "/s:web/proxy/x")), plain);
  EXPECT_EQ(asked(StrCat(kServices, "/https:s:443/proxy/x")), secure);
  EXPECT_EQ(asked(StrCat(kServices, "/https:s:tls/proxy/x")), secure);
  EXPECT_EQ(asked(StrCat(kPods, "/p:dns/proxy/x")), "400 pod \"p\" has no port \"dns\"");
  EXPECT_EQ(asked(StrCat(kPods, "/p:70000/proxy/x")), "400 pod \"p\" has no port \"70000\"");
  EXPECT_EQ(asked(StrCat(kPods, "/ftp:p:1/proxy/x")), "400 invalid pod request \"ftp:p:1\"");
  EXPECT_EQ(asked(StrCat(kPods, "/a:b:c:d/proxy/x")), "400 invalid pod request \"a:b:c:d\"");
  EXPECT_EQ(asked(StrCat(kPods, "/none:1/proxy/x")), "404 pods \"none\" not found");
  EXPECT_EQ(asked(StrCat(kServices, "/none/proxy/x")), "404 services \"none\" not found");
  EXPECT_EQ(asked(StrCat(kServices, "/s:81/proxy/x")),
            "503 no service port 81 found for service \"s\"");
  EXPECT_EQ(asked(StrCat(kServices, "/s/proxy/x")), "503 no endpoints available for service \"s\"")
      << "no port without a name";
}

TEST_F(WorkloadProxyTest, AddressesThatAreNoPodsAreRefused) {
  proxy_->leads_inward = false;
  const char* const kAddresses[] = {
      "127.0.0.1",        "127.8.8.8", "::1",       "169.254.169.254", "fe80::1",
      "::ffff:127.0.0.1", "0.0.0.0",   "224.0.0.1", "fd00:ec2::254",   "100.100.100.200"};
  for (int i = 0; i < static_cast<int>(std::size(kAddresses)); ++i) {
    const std::string name = StrCat("liar", i);
    MakePod(name, kAddresses[i]);
    EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/", name, "/proxy/x"))),
              "400 address not allowed")
        << kAddresses[i];
  }
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/p:", server_->port(), "/proxy/api"))),
            "400 address not allowed: it is that of this API server or its store");
  // An address of this machine.
  const char kHere[] =
      "400 address not allowed: it is that of the API server's machine, and no pod with "
      "hostNetwork declares this port";
  proxy_->leads_inward = true;
  MakePod("faked", "10.9.9.9");
  proxy_->leads_inward = false;
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/faked/proxy/x"))), kHere);
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/faked:2379/proxy/x"))), kHere);
  EXPECT_TRUE(seen_.empty());
}

TEST(OwnAddressOr, KnowsTheAddressesOfTheStore) {
  const IsOwnAddress is_ours =
      OwnAddressOr([](const std::string& host, std::uint16_t) { return host == "10.0.0.1"; },
                   {{"10.0.0.2", 2379}, {"fd00:0::2", 2379}, {"etcd-0", 2379}, {"", 0}});
  EXPECT_TRUE(is_ours("10.0.0.1", 1));
  EXPECT_TRUE(is_ours("10.0.0.2", 2379));
  EXPECT_TRUE(is_ours("::ffff:10.0.0.2", 2379));
  EXPECT_TRUE(is_ours("fd00::2", 2379));
  EXPECT_FALSE(is_ours("10.0.0.2", 80));
  EXPECT_FALSE(is_ours("10.0.0.3", 2379));
  EXPECT_FALSE(is_ours("etcd-1", 2379));
}

// A node writes the addresses of its pods, and must not lead the server to other machines.
TEST_F(WorkloadProxyTest, AddressesOfOtherNodesAreRefused) {
  proxy_->leads_inward = false;
  Create("/api/v1/nodes", R"({"metadata":{"name":"victim"},"status":{"addresses":[
             {"type":"Hostname","address":"victim"},
             {"type":"InternalIP","address":"10.2.0.1"},
             {"type":"InternalIP","address":"fd00:0:0::2"}]}})");
  Create("/api/v1/nodes", R"({"metadata":{"name":"hostile"},"status":{"addresses":[
             {"type":"InternalIP","address":"10.2.0.2"}]}})");
  const char kNode[] =
      "400 address not allowed: it is that of node \"victim\", where the pod is not";
  MakePod("liar", "10.2.0.1", R"("nodeName":"hostile",)");
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/liar/proxy/x"))), kNode);
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/https:liar:10250/proxy/pods"))), kNode);
  MakePod("liar6", "fd00::2", R"("nodeName":"hostile",)");
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/liar6/proxy/x"))), kNode);
  MakePod("mapped", "::ffff:10.2.0.1");
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/mapped/proxy/x"))), kNode);
  Create("/api/v1/namespaces/default/endpoints",
         R"({"metadata":{"name":"led"},"subsets":[{"addresses":[{"ip":"10.2.0.1",
             "targetRef":{"kind":"Pod","namespace":"default","name":"liar"}}],
             "ports":[{"name":"web","port":2379}]}]})");
  Create(kServices, R"({"metadata":{"name":"led"},"spec":{"ports":[{"name":"web","port":80}]}})");
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kServices, "/led:80/proxy/x"))), kNode);
  MakePod("host", "10.2.0.1", R"("nodeName":"hostile","hostNetwork":true,)");
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/host:web/proxy/x"))), kNode);

  proxy_->leads_inward = true;
  MakePod("here", "10.2.0.2", R"("nodeName":"hostile","hostNetwork":true,)");
  EXPECT_EQ(Do(Method::kGet, StrCat(kPods, "/here:web/proxy/x")).status, 200);
}

// Whoever writes Endpoints in one namespace has no right to the pods of others.
TEST_F(WorkloadProxyTest, AServiceLeadsToPodsOfItsOwnNamespace) {
  Create("/api/v1/namespaces", R"({"metadata":{"name":"team"}})");
  Create("/api/v1/namespaces/team/services",
         R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"web","port":80}]}})");
  Create("/api/v1/namespaces/team/endpoints",
         StrCat(R"({"metadata":{"name":"s"},"subsets":[{"addresses":[{"ip":"10.1.0.7",
             "targetRef":{"kind":"Pod","namespace":"default","name":"p"}}],
             "ports":[{"name":"web","port":)",
                pod_->port(), "}]}]}"));
  EXPECT_EQ(Message(Do(Method::kGet, "/api/v1/namespaces/team/services/s:80/proxy/x")),
            "503 no endpoints available for service \"s:80\"");
  EXPECT_TRUE(seen_.empty());
}

TEST_F(WorkloadProxyTest, RedirectsStayBelowTheProxy) {
  const std::string base = StrCat(kPods, "/p/proxy");
  for (const Method method : {Method::kGet, Method::kHead}) {
    const net::Response bare = Do(method, StrCat(base, "?a=b"));
    EXPECT_EQ(bare.status, 301);
    EXPECT_EQ(bare.headers.Get("location"), StrCat(base, "/?a=b"));
  }
  EXPECT_TRUE(seen_.empty());
  EXPECT_EQ(Do(Method::kPost, base, "x").status, 200);
  EXPECT_EQ(seen_.back().raw_path, "/");
  handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(302,
                 {{"Location", "/login?next=%2F"},
                  {"Access-Control-Allow-Origin", "*"},
                  {"Set-Cookie", "a=b"}},
                 std::string());
  };
  const net::Response moved = Do(Method::kGet, StrCat(base, "/x"));
  EXPECT_EQ(moved.status, 302);
  EXPECT_EQ(moved.headers.Get("location"), StrCat(base, "/login?next=%2F"));
  EXPECT_EQ(moved.headers.Find("access-control-allow-origin"), nullptr);
  EXPECT_EQ(moved.headers.Get("set-cookie"), "a=b");
}

TEST(RewrittenLocation, FollowsTheRulesOfKubernetes) {
  const auto rewritten = [](const std::string& location) {
    return RewrittenLocation(location, "/p/proxy", {"10.0.0.7:80", "api:6443"});
  };
  EXPECT_EQ(rewritten("/a/"), "/p/proxy/a/");
  EXPECT_EQ(rewritten("/"), "/p/proxy/");
  EXPECT_EQ(rewritten("a/b"), "a/b");
  EXPECT_EQ(rewritten("?x=http://y/z"), "?x=http://y/z");
  EXPECT_EQ(rewritten("http://10.0.0.7:80/a?b"), "/p/proxy/a?b");
  EXPECT_EQ(rewritten("https://api:6443"), "/p/proxy/");
  EXPECT_EQ(rewritten("//api:6443/a"), "/p/proxy/a");
  EXPECT_EQ(rewritten("https://api:6443/p/proxy/a"), "/p/proxy/a");
  EXPECT_EQ(rewritten("/p/proxy/a"), "/p/proxy/a");
  EXPECT_EQ(rewritten("/p/proxying"), "/p/proxy/p/proxying");
  EXPECT_EQ(rewritten("http://example.com/a"), "http://example.com/a");
  EXPECT_EQ(rewritten("http://10.0.0.7:81/a"), "http://10.0.0.7:81/a");
}

// Who may get them need not be allowed to reach pods.
TEST_F(WorkloadProxyTest, CustomResourcesNamedPodsAreNotProxied) {
  Create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         R"({"metadata":{"name":"pods.example.com"},"spec":{"group":"example.com",
             "scope":"Namespaced","names":{"plural":"pods","kind":"Pod"},"versions":[
             {"name":"v1","served":true,"storage":true,
              "schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  const std::string custom = "/apis/example.com/v1/namespaces/default/pods";
  RunUntil([&] { return Do(Method::kGet, custom).status == 200; });
  EXPECT_NE(Do(Method::kGet, StrCat(custom, "/p/proxy/x")).status, 200);
  EXPECT_EQ(Do(Method::kOptions, StrCat(custom, "/p/proxy/x")).status, 404);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(WorkloadProxyTest, DotsDoNotLeadOutOfThePath) {
  EXPECT_EQ(Do(Method::kGet, StrCat(kPods, "/p/proxy/a/../../../%2e%2e/b/./c//d")).status, 200);
  EXPECT_EQ(seen_.back().raw_path, "/b/c/d");
}

TEST_F(WorkloadProxyTest, AHeadHasTheLengthOfItsGet) {
  const net::Response answer = Do(Method::kHead, StrCat(kPods, "/p/proxy/x"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.Get("content-length"), "6");
  EXPECT_EQ(answer.body, "");
}

TEST_F(WorkloadProxyTest, AnAnswerIsNotReadFasterThanTheClientReads) {
  constexpr std::size_t kBytes = 64u << 20;
  Hold();
  net::testing::RecordingSink sink;
  net::ClientRequest request;
  request.url = StrCat(access_.server, kPods, "/p/proxy/big");
  streams_.push_back(Http1().Stream(std::move(request), sink));
  RunUntil([&] { return held_.size() == 1; });
  held_[0]->StartStream(200, {});
  RunUntil([&] { return sink.status == 200; });
  streams_[0]->SetReading(false);
  held_[0]->Write(net::MakeSegment(std::string(kBytes, 'x')));
  held_[0]->Finish();
  // What is missing is in the buffers of the kernel, of two connections.
  for (int i = 0; i < 300; ++i) RunOnce();
  EXPECT_GT(held_[0]->pending_bytes(), kBytes / 2);
  streams_[0]->SetReading(true);
  RunUntil([&] { return sink.data.size() == kBytes; });
  EXPECT_TRUE(net::testing::Await(sink.ended.get_future()).ok());
}

TEST_F(WorkloadProxyTest, AnAnswerThatBreaksIsNotCompletedAndAPodThatIsGoneIsAnError) {
  Hold();
  net::testing::RecordingSink sink;
  net::ClientRequest request;
  request.url = StrCat(access_.server, kPods, "/p/proxy/x");
  streams_.push_back(http_->Stream(std::move(request), sink));
  RunUntil([&] { return held_.size() == 1; });
  held_[0]->StartStream(200, {});
  held_[0]->Write(net::MakeSegment("half"));
  RunUntil([&] { return sink.data == "half"; });
  held_[0]->Abort();
  std::future<Result<void>> ended = sink.ended.get_future();
  RunUntil([&] { return ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_FALSE(ended.get().ok());
  const std::uint16_t port = pod_->port();
  pod_.reset();
  EXPECT_THAT(Message(Do(Method::kGet, StrCat(kPods, "/p:", port, "/proxy/x"))),
              ::testing::MatchesRegex("503 error trying to reach service: GET .*refused"));
}

TEST_F(WorkloadProxyTest, OneUserCannotHoldAllPlaces) {
  Hold();
  std::vector<std::unique_ptr<net::testing::RecordingSink>> sinks;
  for (std::size_t i = 0; i < RequestForwarder::kMaxOpenPerUser; ++i) {
    net::ClientRequest request;
    request.url = StrCat(access_.server, kPods, "/p/proxy/x");
    sinks.push_back(std::make_unique<net::testing::RecordingSink>());
    streams_.push_back(http_->Stream(std::move(request), *sinks.back()));
  }
  RunUntil([&] { return held_.size() == RequestForwarder::kMaxOpenPerUser; });
  EXPECT_EQ(Do(Method::kGet, StrCat(kPods, "/p/proxy/x")).status, 429);
  streams_.clear();
  held_.clear();
  for (int i = 0; i < 20; ++i) RunOnce();
  handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(200, {}, std::string());
  };
  EXPECT_EQ(Do(Method::kGet, StrCat(kPods, "/p/proxy/x")).status, 200) << "the places are free";
}

TEST_F(WorkloadProxyTest, BytesGoBothWaysAfterAnUpgrade) {
  handler_.function = [&](net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
    EXPECT_EQ(request.raw_path, "/socket");
    EXPECT_EQ(request.headers.Find("authorization"), nullptr);
    EXPECT_EQ(request.headers.Get("sec-websocket-protocol"), "chat");
    pod_end_ = std::move(
        writer->Upgrade({{"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", "x"}}).value());
    pod_end_->Start([&](std::string_view bytes) { pod_end_->Write(StrCat("<", bytes, ">")); },
                    [] {});
  };
  net::ClientRequest request;
  request.url = StrCat(access_.server, kServices, "/s:web/proxy/socket");
  request.headers = {{"Connection", "Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Authorization", "Bearer secret"},
                     {"Sec-WebSocket-Protocol", "chat"}};
  std::optional<Result<net::UpgradedConnection>> answer;
  auto handle = http_->Upgrade(
      request, [&](Result<net::UpgradedConnection> upgraded) { answer = std::move(upgraded); });
  RunUntil([&] { return answer.has_value(); });
  ASSERT_TRUE(answer->ok());
  ASSERT_EQ((*answer)->response.status, 101) << (*answer)->response.body;
  EXPECT_EQ((*answer)->response.headers.Get("sec-websocket-accept"), "x");
  client_end_ = std::move((*answer)->stream);
  std::string heard;
  client_end_->Start([&](std::string_view bytes) { heard += bytes; }, [] {});
  client_end_->Write("hi");
  RunUntil([&] { return heard == "<hi>"; });

  // A client that reads nothing does not fill the server's memory.
  static_assert(RequestForwarder::kMaxOpen * 2 * kMaxUnsentInTunnel <= 128u << 20);
  constexpr std::size_t kBytes = 64u << 20;
  client_end_->SetReading(false);
  pod_end_->Write(std::string(kBytes, 'x'));
  for (int i = 0; i < 300; ++i) RunOnce();
  EXPECT_GT(pod_end_->pending_bytes(), kBytes / 2);
  client_end_->SetReading(true);
  RunUntil([&] { return heard.size() == 4 + kBytes; });
}

// A pod that does not answer, with a limit that a test can wait for.
TEST_F(WorkloadProxyTest, AnAnswerMustBeginInTime) {
  Hold();
  RequestForwarder forwarder(loop_, {}, std::chrono::milliseconds(20));
  struct Patient final : SubresourceProxy {
    void Serve(const RequestInfo& info, Target, net::ServerRequest request,
               std::shared_ptr<net::ResponseWriter> writer) override {
      forwarder->Forward({url, {}}, info, "jane", std::move(request), std::move(writer));
    }
    RequestForwarder* forwarder = nullptr;
    std::string url;
  } patient;
  patient.forwarder = &forwarder;
  patient.url = StrCat("http://127.0.0.1:", pod_->port());
  server_.reset();
  frontend_.reset();
  adjust_ = [&](Frontend::Options& options) { options.proxies = {{"pods/proxy", &patient}}; };
  http_.reset();
  Serve();
  EXPECT_EQ(Message(Do(Method::kGet, StrCat(kPods, "/p/proxy/x"))),
            "504 Timeout: the server behind did not begin to answer within 0 seconds");
  server_.reset();
  RunOnce();
  frontend_.reset();
  RunOnce();
}

}  // namespace
}  // namespace drakkar::apiserver
