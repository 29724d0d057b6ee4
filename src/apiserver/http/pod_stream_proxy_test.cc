#include "apiserver/http/pod_stream_proxy.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "features/gates/feature_gates.h"
#include "net/testing/loopback.h"
#include "net/websocket/handshake.h"
#include "storage/memory/memory_store.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr char kKey[] = "dGhlIHNhbXBsZSBub25jZQ==";

// An API server and a stand-in for a node's agent on one real loop.
class PodStreamProxyTest : public ::testing::Test {
 protected:
  PodStreamProxyTest() {
    const net::testing::TestCertificates& certificates = net::testing::TestCertificates::Get();
    net::HttpServerOptions options;
    options.address.host = "127.0.0.1";
    options.tls = net::testing::TestServerTls();
    node_ = std::make_unique<net::HttpServer>(loop_, options, node_handler_);
    EXPECT_TRUE(node_->Start().ok());
    store_ = storage::OpenMemoryStore(loop_, disk_);
    core_ = std::make_unique<Core>(Core::Options{
        .loop = loop_, .random = random_, .store = *store_, .gates = gates_});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()); });
    net::TlsClientOptions tls;
    tls.ca_pem = certificates.ca.certificate_pem;
    proxy_ = std::make_unique<PodStreamProxy>(loop_, *core_, tls);
    frontend_ = std::make_unique<Frontend>(Frontend::Options{
        .core = *core_, .authenticator = authenticator_, .metrics = metrics_,
        .proxies = {{"pods/exec", proxy_.get()}}});
    server_ = std::make_unique<net::HttpServer>(loop_, options, *frontend_);
    EXPECT_TRUE(server_->Start().ok());
    access_.server = StrCat("https://127.0.0.1:", server_->port());
    access_.ca_pem = certificates.ca.certificate_pem;
    access_.client_certificate_pem = certificates.client.certificate_pem;
    access_.client_key_pem = certificates.client.key_pem;
    http_ = std::make_unique<net::HttpClient>(loop_, client::HttpOptionsFor(access_));
    Create("/api/v1/namespaces", R"({"metadata":{"name":"default"}})");
    MakeNode("ours", "v1.37.0-drakkar", "[]");
    MakeNode("old", "v1.35.0", "[]");
    MakeNode("new", "v1.37.0", R"(["ExtendWebSocketsToKubelet"])");
    MakePod("p", "ours");
  }
  ~PodStreamProxyTest() override {
    client_end_.reset();
    node_end_.reset();
    http_.reset();
    server_.reset();
    node_.reset();
    RunOnce();
    frontend_.reset();
    proxy_.reset();
    RunOnce();
  }

  template <typename Condition>
  void RunUntil(Condition done) {
    TimerHandle limit = loop_.RunAfter(std::chrono::seconds(10), [&] {
      ADD_FAILURE() << "nothing happened for ten seconds";
      loop_.Stop();
    });
    while (!done() && !HasFailure()) RunOnce();
  }
  void RunOnce() {
    loop_.Post([this] { step_ = loop_.RunAfter(std::chrono::milliseconds(1), [this] { loop_.Stop(); }); });
    loop_.Run();
    step_.reset();
  }

  net::Response Do(net::Method method, const std::string& path, std::string body = "",
                   net::Headers headers = {}) {
    net::ClientRequest request;
    request.method = method;
    request.url = access_.server + path;
    request.headers = std::move(headers);
    request.body = std::move(body);
    std::optional<Result<net::Response>> answer;
    http_->Do(std::move(request), [&](Result<net::Response> response) { answer = std::move(response); });
    RunUntil([&] { return answer.has_value(); });
    return answer && answer->ok() ? **answer : net::Response{};
  }
  void Create(const std::string& path, const std::string& body) {
    net::Response made = Do(net::Method::kPost, path, body, {{"Content-Type", "application/json"}});
    ASSERT_EQ(made.status, 201) << made.body;
  }
  void MakeNode(const std::string& name, const std::string& version, const std::string& features) {
    Create("/api/v1/nodes",
           StrCat(R"({"metadata":{"name":")", name, R"("},"status":{"addresses":[{"type":"InternalIP",)",
                  R"("address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":)", node_->port(),
                  R"(}},"nodeInfo":{"kubeletVersion":")", version, R"("},"declaredFeatures":)", features, "}}"));
  }
  void MakePod(const std::string& name, const std::string& node, const std::string& more = "") {
    Create("/api/v1/namespaces/default/pods",
           StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"nodeName":")", node,
                  R"(","containers":[{"name":"c","image":"i:1"})", more, "]}}"));
  }
  static std::string Path(const std::string& pod, const std::string& query) {
    return StrCat("/api/v1/namespaces/default/pods/", pod, "/exec?", query);
  }
  // The answer to a WebSocket's handshake; with 101, client_end_ is the stream.
  net::Response Upgrade(const std::string& path, net::Headers headers) {
    net::ClientRequest request;
    request.url = access_.server + path;
    request.headers = std::move(headers);
    std::optional<Result<net::UpgradedConnection>> answer;
    auto handle = http_->Upgrade(request, [&](Result<net::UpgradedConnection> upgraded) {
      answer = std::move(upgraded);
    });
    RunUntil([&] { return answer.has_value(); });
    if (!answer || !answer->ok()) return {};
    client_end_ = std::move((*answer)->stream);
    return (*answer)->response;
  }
  net::Response WebSocket(const std::string& path) {
    return Upgrade(path, net::websocket::RequestHeaders(kKey, "v5.channel.k8s.io, v4.channel.k8s.io"));
  }
  static std::string Message(const net::Response& response) {
    Result<api::TreePtr> tree = api::ParseJson(response.body);
    return tree.ok() ? std::string((*tree)->root()["message"].str()) : response.body;
  }
  // The node repeats whatever it gets, in capitals.
  void NodeEchoes() {
    node_handler_.function = [this](net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
      asked_ = StrCat(request.path, "?", request.raw_query);
      const std::string_view spoken[] = {"v5.channel.k8s.io"};
      auto accepted = net::websocket::Accept(request.headers, spoken);
      ASSERT_TRUE(accepted.ok()) << accepted.error().message;
      node_end_ = std::move(writer->Upgrade(accepted->headers).value());
      node_end_->Start([this](std::string_view bytes) { node_end_->Write(ToUpper(bytes)); },
                       [this] { node_saw_end_ = true; });
    };
  }
  static std::string ToUpper(std::string_view text) {
    std::string upper(text);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return upper;
  }

  UvLoop loop_;
  SeededRandom random_{1};
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  Metrics metrics_;
  Authenticator authenticator_;
  net::testing::FunctionHandler node_handler_;
  std::unique_ptr<net::HttpServer> node_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<PodStreamProxy> proxy_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<net::HttpServer> server_;
  client::ClusterAccess access_;
  std::unique_ptr<net::HttpClient> http_;
  std::unique_ptr<net::RawStream> client_end_, node_end_;
  std::string asked_;
  bool node_saw_end_ = false;
  TimerHandle step_;
};

TEST_F(PodStreamProxyTest, PassesBytesBothWaysUntilTheClientLeaves) {
  NodeEchoes();
  net::Response answer = WebSocket(
      Path("p", "command=echo&command=a%20b&stdin=true&stdout=true&stderr=false&tty=1"));
  ASSERT_EQ(answer.status, 101) << answer.body;
  EXPECT_EQ(asked_, "/exec/default/p/c?command=echo&command=a%20b&input=1&output=1&tty=1");
  EXPECT_EQ(net::websocket::CheckAnswer(answer.headers, kKey).value(), "v5.channel.k8s.io");
  std::string heard;
  client_end_->Start([&](std::string_view bytes) { heard.append(bytes); }, [] {});
  const std::string sent(3u << 20, 'x');
  client_end_->Write(sent);
  RunUntil([&] { return heard.size() == sent.size(); });
  EXPECT_EQ(heard, ToUpper(sent));
  client_end_.reset();
  RunUntil([&] { return node_saw_end_; });
}

TEST_F(PodStreamProxyTest, TellsTheClientWhenTheNodeLeaves) {
  NodeEchoes();
  ASSERT_EQ(WebSocket(Path("p", "command=x&stdout=true")).status, 101);
  std::string heard;
  bool closed = false;
  client_end_->Start([&](std::string_view bytes) { heard.append(bytes); }, [&] { closed = true; });
  node_end_->Write("last words");
  node_end_.reset();
  RunUntil([&] { return closed; });
  EXPECT_EQ(heard, "last words");
}

TEST_F(PodStreamProxyTest, PassesTheNodesRefusalOn) {
  node_handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(500, {{"Content-Type", "text/plain"}}, std::string("container not found (\"c\")"));
  };
  net::Response answer = WebSocket(Path("p", "command=x&stdout=true"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "container not found (\"c\")");
}

TEST_F(PodStreamProxyTest, SaysWhatIsWrongBeforeItAsksTheNode) {
  MakePod("unbound", "");
  MakePod("two", "ours", R"(,{"name":"d","image":"i:1"})");
  MakePod("elsewhere", "gone");
  MakePod("behind", "old");
  auto refusal = [&](const std::string& pod, const std::string& query) {
    net::Response answer = WebSocket(Path(pod, query));
    return StrCat(answer.status, " ", Message(answer));
  };
  EXPECT_EQ(refusal("none", "command=x"), "404 pods \"none\" not found");
  EXPECT_EQ(refusal("p", "container=z"), "400 container z is not valid for pod p");
  EXPECT_EQ(refusal("two", "command=x"),
            "400 a container name must be specified for pod two, choose one of: [c d]");
  EXPECT_EQ(refusal("unbound", "command=x"), "400 pod unbound does not have a host assigned");
  EXPECT_EQ(refusal("elsewhere", "command=x"), "404 nodes \"gone\" not found");
  EXPECT_EQ(refusal("behind", "command=x"),
            "400 node old does not declare the feature ExtendWebSocketsToKubelet: exec needs an agent that "
            "speaks WebSocket (Kubernetes 1.36 or newer)");
}

TEST_F(PodStreamProxyTest, AsksNodesThatAreNotOursIfTheyDeclareTheFeature) {
  NodeEchoes();
  MakePod("theirs", "new");
  EXPECT_EQ(WebSocket(Path("theirs", "command=x&stdout=true")).status, 101);
}

TEST_F(PodStreamProxyTest, RefusesOtherProtocolsLast) {
  const net::Headers spdy = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}};
  EXPECT_EQ(Message(Upgrade(Path("p", "container=z"), spdy)), "container z is not valid for pod p");
  EXPECT_EQ(Upgrade(Path("p", "command=x"), spdy).body, "container not found (\"c\")") << "it does not run";
  net::Response running = Do(net::Method::kPatch, "/api/v1/namespaces/default/pods/p/status",
                             R"({"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":true,)"
                             R"("restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})",
                             {{"Content-Type", "application/merge-patch+json"}});
  ASSERT_EQ(running.status, 200) << running.body;
  net::Response answer = Upgrade(Path("p", "command=x"), spdy);
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(Message(answer).find("SPDY/3.1 is not spoken here, only WebSocket"), std::string::npos);
  EXPECT_EQ(Message(Do(net::Method::kGet, Path("p", "command=x"))), "Upgrade request required");
  EXPECT_EQ(Do(net::Method::kDelete, Path("p", "command=x")).status, 405);
}

}  // namespace
}  // namespace drakkar::apiserver
