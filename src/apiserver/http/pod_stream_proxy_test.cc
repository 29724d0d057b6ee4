#include "apiserver/http/pod_stream_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "apiserver/testing/https_fixture.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "net/spdy/session.h"
#include "net/websocket/handshake.h"
#include "net/websocket/session.h"

namespace drakkar::apiserver {
namespace {

constexpr char kKey[] = "dGhlIHNhbXBsZSBub25jZQ==";

// An API server and a fake node agent on one real loop.
class PodStreamProxyTest : public HttpsTest {
 protected:
  PodStreamProxyTest() {
    node_ = std::make_unique<net::HttpServer>(loop_, LoopbackOptions(), node_handler_);
    EXPECT_TRUE(node_->Start().ok());
    net::TlsClientOptions tls;
    tls.ca_pem = net::testing::TestCertificates::Get().ca.certificate_pem;
    proxy_ = std::make_unique<PodStreamProxy>(loop_, tls, OwnAddress(own_port_));
    log_proxy_ = std::make_unique<PodLogProxy>(loop_, tls, OwnAddress(own_port_));
    node_proxy_ = std::make_unique<NodeProxy>(loop_, tls, OwnAddress(own_port_));
    Serve({{"pods/exec", proxy_.get()},
           {"pods/portforward", proxy_.get()},
           {"pods/log", log_proxy_.get()},
           {"nodes/proxy", node_proxy_.get()}});
    *own_port_ = server_->port();
    MakeNode("ours", "v1.37.0-drakkar", R"(["ExtendWebSocketsToKubelet"])");
    MakeNode("silent", "v1.37.0-drakkar", "[]");
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
    log_proxy_.reset();
    node_proxy_.reset();
    RunOnce();
  }

  void Create(const std::string& path, const std::string& body) {
    const net::Response made = Post(path, body);
    ASSERT_EQ(made.status, 201) << made.body;
  }
  void MakeNode(const std::string& name, const std::string& version, const std::string& features,
                const std::string& address = "127.0.0.1", int port = 0) {
    Create("/api/v1/nodes",
           StrCat(R"({"metadata":{"name":")", name,
                  R"("},"status":{"addresses":[{"type":"InternalIP",)", R"("address":")", address,
                  R"("}],"daemonEndpoints":{"kubeletEndpoint":{"Port":)",
                  port == 0 ? node_->port() : port, R"(}},"nodeInfo":{"kubeletVersion":")", version,
                  R"("},"declaredFeatures":)", features, "}}"));
  }
  void MakePod(const std::string& name, const std::string& node, const std::string& more = "") {
    Create("/api/v1/namespaces/default/pods",
           StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"nodeName":")", node,
                  R"(","containers":[{"name":"c","image":"i:1"})", more, "]}}"));
  }
  static std::string Path(const std::string& pod, const std::string& query) {
    return StrCat("/api/v1/namespaces/default/pods/", pod, "/exec?", query);
  }
  // The response to a WebSocket handshake; after 101, client_end_ is the stream.
  net::Response Upgrade(const std::string& path, net::Headers headers) {
    net::ClientRequest request;
    request.url = access_.server + path;
    request.headers = std::move(headers);
    std::optional<Result<net::UpgradedConnection>> answer;
    auto handle = http_->Upgrade(
        request, [&](Result<net::UpgradedConnection> upgraded) { answer = std::move(upgraded); });
    RunUntil([&] { return answer.has_value(); });
    if (!answer || !answer->ok()) return {};
    client_end_ = std::move((*answer)->stream);
    return (*answer)->response;
  }
  net::Response WebSocket(const std::string& path) {
    return Upgrade(path,
                   net::websocket::RequestHeaders(kKey, "v5.channel.k8s.io, v4.channel.k8s.io"));
  }
  static std::string Message(const net::Response& response) {
    Result<api::TreePtr> tree = api::ParseJson(response.body);
    return tree.ok() ? std::string((*tree)->root()["message"].str()) : response.body;
  }
  // The node echoes what it receives in upper case.
  void NodeEchoes() {
    node_handler_.function = [this](net::ServerRequest request,
                                    std::shared_ptr<net::ResponseWriter> writer) {
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

  net::testing::FunctionHandler node_handler_;
  std::unique_ptr<net::HttpServer> node_;
  const std::shared_ptr<std::atomic<std::uint16_t>> own_port_ =
      std::make_shared<std::atomic<std::uint16_t>>(0);
  std::unique_ptr<PodStreamProxy> proxy_;
  std::unique_ptr<PodLogProxy> log_proxy_;
  std::unique_ptr<NodeProxy> node_proxy_;
  std::unique_ptr<net::RawStream> client_end_, node_end_;
  std::string asked_;
  bool node_saw_end_ = false;
};

TEST_F(PodStreamProxyTest, ForwardsBytesBothWaysUntilTheClientDisconnects) {
  NodeEchoes();
  net::Response answer =
      WebSocket(Path("p", "command=echo&command=a%20b&stdin=true&stdout=true&stderr=false&tty=1"));
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

TEST_F(PodStreamProxyTest, ClosesTheClientWhenTheNodeDisconnects) {
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

TEST_F(PodStreamProxyTest, ANodeCannotRedirectTheServerToItselfOrToAHostName) {
  node_handler_.function = [this](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    asked_ = "asked";
    writer->Send(200, {}, std::string());
  };
  int number = 0;
  auto refusals = [&](const std::string& address, int port) {
    const std::string name = StrCat("liar", ++number);
    MakeNode(name, "v1.37.0-drakkar", R"(["ExtendWebSocketsToKubelet"])", address, port);
    MakePod(name, name);
    const std::string pod = StrCat("/api/v1/namespaces/default/pods/", name);
    const std::string expected = Message(Do(net::Method::kGet, pod + "/log"));
    EXPECT_EQ(
        Message(Do(net::Method::kGet, StrCat("/api/v1/nodes/", name, "/proxy/api/v1/secrets"))),
        expected);
    EXPECT_EQ(Message(WebSocket(Path(name, "command=x&stdout=true"))), expected);
    return expected;
  };
  const int own = server_->port();
  for (const char* address : {"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"}) {
    const std::string message = refusals(address, own);
    EXPECT_EQ(message,
              StrCat("Internal error occurred: node liar", number, " reports its agent at ",
                     address, ":", own, ", which is this API server"));
  }
  for (const char* address :
       {"localhost", "kubernetes.default.svc", "0.0.0.0", "::", "169.254.169.254", "fe80::1",
        "127.1", "127.0.0.1:1/x", "user@127.0.0.1", "224.0.0.1"}) {
    const std::string message = refusals(address, 0);
    EXPECT_EQ(message,
              StrCat("Internal error occurred: node liar", number, " reports the address \"",
                     address, "\", which is not a usable IP address"));
  }
  // NAME:PORT does not select another port of the node.
  EXPECT_EQ(Message(Do(net::Method::kGet, StrCat("/api/v1/nodes/ours:", own, "/proxy/metrics"))),
            StrCat("port \"", own, "\" is not that of the agent of node \"ours\""));
  EXPECT_EQ(Message(Do(net::Method::kGet, "/api/v1/nodes/http:ours:0/proxy/metrics")),
            "port \"0\" is not that of the agent of node \"ours\"");
  EXPECT_EQ(asked_, "") << "no request was sent";
  EXPECT_EQ(Do(net::Method::kGet, StrCat("/api/v1/nodes/ours:", node_->port(), "/proxy/x")).status,
            200);
  EXPECT_EQ(asked_, "asked");
}

TEST_F(PodStreamProxyTest, PassesRequestsOnToANodeWithTheirMethodAndItsAnswer) {
  node_handler_.function = [this](net::ServerRequest request,
                                  std::shared_ptr<net::ResponseWriter> writer) {
    asked_ = StrCat(net::MethodName(request.method), " ", request.raw_path, "?", request.raw_query,
                    " ", request.body, request.headers.Get("authorization"));
    writer->Send(404, {{"Content-Type", "text/x"}}, std::string("no such page"));
  };
  const net::Response answer = Do(net::Method::kPut, "/api/v1/nodes/ours/proxy/a/b/?limit=many",
                                  "body", {{"Authorization", "Bearer secret"}});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.headers.Get("content-type"), "text/x");
  EXPECT_EQ(answer.body, "no such page");
  EXPECT_EQ(asked_, "PUT /a/b/?limit=many body");
  EXPECT_EQ(Message(Do(net::Method::kGet, "/api/v1/nodes/none/proxy/x")),
            "nodes \"none\" not found");
}

TEST_F(PodStreamProxyTest, AnUpgradeOnANodeNeedsTheVerbCreate) {
  net::ServerRequest request;
  EXPECT_EQ(node_proxy_->AlsoNeeds(request), std::nullopt);
  request.headers = net::websocket::RequestHeaders(kKey, "v5.channel.k8s.io");
  for (const net::Method method : {net::Method::kGet, net::Method::kHead, net::Method::kPut,
                                   net::Method::kPatch, net::Method::kDelete}) {
    request.method = method;
    EXPECT_EQ(node_proxy_->AlsoNeeds(request), Verb::kCreate) << net::MethodName(method);
  }
}

TEST_F(PodStreamProxyTest, ACertificateOfAnotherNodeIsRefused) {
  const net::testing::TestCertificates& made = net::testing::TestCertificates::Get();
  const net::CertificateAndKey serving =
      net::IssueCertificate(made.ca, {"system:node:mallory", {"system:nodes"}, {}, {"127.0.0.1"}},
                            net::CertificateUse::kServer, net::testing::TestValidity())
          .value();
  net::TlsServerOptions tls;
  tls.certificate_pem = serving.certificate_pem;
  tls.key_pem = serving.key_pem;
  net::HttpServerOptions options = LoopbackOptions();
  options.tls = net::TlsContext::Server(tls).value();
  net::testing::FunctionHandler handler;
  handler.function = [this](net::ServerRequest request,
                            std::shared_ptr<net::ResponseWriter> writer) {
    asked_ += request.path + " ";
    writer->Send(200, {}, std::string("from mallory"));
  };
  auto liar = std::make_unique<net::HttpServer>(loop_, std::move(options), handler);
  ASSERT_TRUE(liar->Start().ok());
  // The port is mallory's, whatever the Node says. Both have the same address.
  const std::string features = R"(["ExtendWebSocketsToKubelet"])";
  MakeNode("alice", "v1.37.0-drakkar", features, "127.0.0.1", liar->port());
  MakeNode("mallory", "v1.37.0-drakkar", features, "127.0.0.1", liar->port());
  MakePod("of-alice", "alice");
  MakePod("of-mallory", "mallory");
  const auto log = [&](const std::string& pod) {
    return Do(net::Method::kGet, StrCat("/api/v1/namespaces/default/pods/", pod, "/log"));
  };
  // In this order: alice must not get mallory's open connection.
  EXPECT_EQ(log("of-mallory").body, "from mallory");
  const char kReason[] =
      "TLS: certificate: it was issued to \"system:node:mallory\", and this should be node "
      "\"alice\"";
  EXPECT_THAT(Message(log("of-alice")), ::testing::HasSubstr(kReason));
  EXPECT_THAT(Message(Do(net::Method::kGet, "/api/v1/nodes/alice/proxy/pods")),
              ::testing::HasSubstr(kReason));
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/nodes/mallory/proxy/pods").body, "from mallory");
  EXPECT_THAT(Message(WebSocket(Path("of-alice", "command=x&stdout=true"))),
              ::testing::HasSubstr(kReason));
  EXPECT_EQ(asked_, "/containerLogs/default/of-mallory/c /pods ");
  liar.reset();
  RunOnce();
}

TEST_F(PodStreamProxyTest, ALogIsNotReadFasterThanTheClientReads) {
  constexpr std::size_t kBytes = 64u << 20;
  std::shared_ptr<net::ResponseWriter> log;
  node_handler_.function = [&](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    log = std::move(writer);
    log->StartStream(200, {});
  };
  net::HttpClientOptions options = client::HttpOptionsFor(access_);
  options.tls.offer_http2 = false;
  net::HttpClient http(loop_, std::move(options));
  net::testing::RecordingSink sink;
  net::ClientRequest request;
  request.url = access_.server + "/api/v1/namespaces/default/pods/p/log?follow=true";
  const auto handle = http.Stream(std::move(request), sink);
  RunUntil([&] { return sink.status == 200; });
  handle->SetReading(false);
  log->Write(net::MakeSegment(std::string(kBytes, 'x')));
  log->Finish();
  // What is missing is in the buffers of the kernel, of two connections.
  for (int i = 0; i < 300; ++i) RunOnce();
  EXPECT_GT(log->pending_bytes(), kBytes / 2);
  handle->SetReading(true);
  RunUntil([&] { return sink.data.size() == kBytes; });
  EXPECT_TRUE(net::testing::Await(sink.ended.get_future()).ok());
}

TEST_F(PodStreamProxyTest, OneUserCannotReadAllLogs) {
  std::vector<std::shared_ptr<net::ResponseWriter>> held;
  node_handler_.function = [&](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    held.push_back(std::move(writer));
    held.back()->StartStream(200, {});
  };
  const std::string log = "/api/v1/namespaces/default/pods/p/log";
  std::vector<std::unique_ptr<net::testing::RecordingSink>> sinks;
  std::vector<std::unique_ptr<net::RequestHandle>> streams;
  for (std::size_t i = 0; i < PodLogProxy::kMaxOpenPerUser; ++i) {
    net::ClientRequest request;
    request.url = StrCat(access_.server, log, "?follow=true");
    sinks.push_back(std::make_unique<net::testing::RecordingSink>());
    streams.push_back(http_->Stream(std::move(request), *sinks.back()));
  }
  RunUntil([&] { return held.size() == PodLogProxy::kMaxOpenPerUser; });
  EXPECT_EQ(Do(net::Method::kGet, log).status, 429);
  streams.clear();
  held.clear();
  for (int i = 0; i < 20; ++i) RunOnce();
  node_handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(200, {}, std::string("text"));
  };
  EXPECT_EQ(Do(net::Method::kGet, log).body, "text") << "the places are free";
}

TEST_F(PodStreamProxyTest, OneUserCannotHoldAllSessionsOfANode) {
  std::vector<std::unique_ptr<net::RawStream>> ends, clients;
  node_handler_.function = [&](net::ServerRequest request,
                               std::shared_ptr<net::ResponseWriter> writer) {
    const std::string_view spoken[] = {"v5.channel.k8s.io"};
    auto accepted = net::websocket::Accept(request.headers, spoken);
    ASSERT_TRUE(accepted.ok()) << accepted.error().message;
    ends.push_back(std::move(writer->Upgrade(accepted->headers).value()));
    ends.back()->Start([](std::string_view) {}, [] {});
  };
  net::HttpClientOptions options = client::HttpOptionsFor(access_);
  options.max_connections_per_host = 2 * PodStreamProxy::kMaxStreamsPerUser;
  http_ = std::make_unique<net::HttpClient>(loop_, std::move(options));
  for (std::size_t i = 0; i < PodStreamProxy::kMaxStreamsPerUser; ++i) {
    ASSERT_EQ(WebSocket(Path("p", "command=x&stdout=true")).status, 101) << i;
    clients.push_back(std::move(client_end_));
    clients.back()->Start([](std::string_view) {}, [] {});
  }
  EXPECT_EQ(WebSocket(Path("p", "command=x&stdout=true")).status, 429);
  clients.clear();
  RunUntil([&] { return WebSocket(Path("p", "command=x&stdout=true")).status == 101; });
  client_end_.reset();
  ends.clear();
}

TEST_F(PodStreamProxyTest, ForwardsAnErrorOfTheNode) {
  node_handler_.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(500, {{"Content-Type", "text/plain"}}, std::string("container not found (\"c\")"));
  };
  net::Response answer = WebSocket(Path("p", "command=x&stdout=true"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "container not found (\"c\")");
}

TEST_F(PodStreamProxyTest, ReportsErrorsBeforeItConnectsToTheNode) {
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
            "400 node old does not declare the feature ExtendWebSocketsToKubelet: exec over "
            "a WebSocket needs an agent that speaks it (Kubernetes 1.36 or newer, with the feature "
            "gates NodeDeclaredFeatures and ExtendWebSocketsToKubelet on); SPDY works");
  MakePod("undeclared", "silent");
  EXPECT_EQ(refusal("undeclared", "command=x").substr(0, 48),
            "400 node silent does not declare the feature Ext")
      << "whatever its version says";
}

TEST_F(PodStreamProxyTest, ConnectsToForeignNodesIfTheyDeclareTheFeature) {
  NodeEchoes();
  MakePod("theirs", "new");
  EXPECT_EQ(WebSocket(Path("theirs", "command=x&stdout=true")).status, 101);
}

// A node that speaks SPDY: the bytes pass through as they are.
TEST_F(PodStreamProxyTest, ForwardsSpdyToNodesThatDeclareNothing) {
  node_handler_.function = [this](net::ServerRequest request,
                                  std::shared_ptr<net::ResponseWriter> writer) {
    asked_ = StrCat(net::MethodName(request.method), " ", request.path, "?", request.raw_query, " ",
                    request.headers.Get("upgrade"), " ",
                    request.headers.Get("x-stream-protocol-version"));
    node_end_ = std::move(
        writer
            ->Upgrade({{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", "v4.channel.k8s.io"}})
            .value());
    node_end_->Start([this](std::string_view bytes) { node_end_->Write(ToUpper(bytes)); },
                     [this] { node_saw_end_ = true; });
  };
  MakePod("behind", "old");
  const net::Headers spdy = {{"Connection", "Upgrade"},
                             {"Upgrade", "SPDY/3.1"},
                             {"X-Stream-Protocol-Version", "v4.channel.k8s.io"}};
  const net::Response answer = Upgrade(Path("behind", "command=x&stdout=true"), spdy);
  ASSERT_EQ(answer.status, 101) << answer.body;
  EXPECT_EQ(answer.headers.Get("x-stream-protocol-version"), "v4.channel.k8s.io");
  EXPECT_EQ(asked_, "POST /exec/default/behind/c?command=x&output=1 SPDY/3.1 v4.channel.k8s.io");
  std::string received;
  client_end_->Start([&](std::string_view bytes) { received += bytes; }, [] {});
  client_end_->Write("frames");
  RunUntil([&] { return received == "FRAMES"; });
  EXPECT_EQ(received, "FRAMES");
}

// What kubectl 1.30 and later send: a WebSocket whose messages carry SPDY.
TEST_F(PodStreamProxyTest, UnpacksATunnelForThePortForwardOfANode) {
  node_handler_.function = [this](net::ServerRequest request,
                                  std::shared_ptr<net::ResponseWriter> writer) {
    asked_ = StrCat(request.path, " ", request.headers.Get("upgrade"), " ",
                    request.headers.Get("x-stream-protocol-version"));
    node_end_ = std::move(writer->Upgrade({{"Upgrade", "SPDY/3.1"}}).value());
    node_end_->Start([this](std::string_view bytes) { node_end_->Write(ToUpper(bytes)); },
                     [this] { node_saw_end_ = true; });
  };
  const std::string path = "/api/v1/namespaces/default/pods/p/portforward";
  const net::Response answer =
      Upgrade(path, net::websocket::RequestHeaders(kKey, "SPDY/3.1+portforward.k8s.io"));
  ASSERT_EQ(answer.status, 101) << answer.body;
  EXPECT_EQ(*net::websocket::CheckAnswer(answer.headers, kKey), "SPDY/3.1+portforward.k8s.io");
  EXPECT_EQ(asked_, "/portForward/default/p SPDY/3.1 portforward.k8s.io");
  struct Client final : net::websocket::Session::Events {
    void OnMessage(net::websocket::MessageType, std::string_view payload) override {
      received += payload;
    }
    void OnClose(std::uint16_t code, std::string_view) override { closed = code; }
    std::string received;
    int closed = 0;
  } events;
  SeededRandom random(1);
  net::websocket::Session session(net::websocket::Role::kClient, random, events);
  client_end_->Start([&](std::string_view bytes) { session.Receive(bytes); }, [] {});
  session.Send(net::websocket::MessageType::kBinary, "frames");
  client_end_->Write(session.TakeOutput());
  RunUntil([&] { return events.received == "FRAMES"; });
  EXPECT_EQ(events.received, "FRAMES");
  node_end_.reset();
  RunUntil([&] { return events.closed != 0; });
  EXPECT_EQ(events.closed, net::websocket::kNormalClosure);
}

// What Java clients send: a channel per port and direction, with the ports in the query.
TEST_F(PodStreamProxyTest, TurnsChannelsOfPortsIntoStreamsOfANode) {
  struct Node final : net::spdy::Session::Events {
    void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override {
      opened.push_back(StrCat(headers.Get("streamtype"), " ", headers.Get("port")));
      session->Reply(stream);
      if (headers.Get("streamtype") == "error") errors.push_back(stream);
    }
    void OnReply(net::spdy::StreamId) override {}
    void OnData(net::spdy::StreamId stream, std::string_view bytes) override {
      if (bytes != "fail") return session->Send(stream, ToUpper(bytes));
      session->Send(errors.back(), "no");
      session->Finish(errors.back());
      session->Finish(stream);
    }
    void OnFinish(net::spdy::StreamId stream) override {
      // The client writes nothing to a stream for errors.
      if (std::ranges::find(errors, stream) == errors.end()) session->Finish(stream);
    }
    void OnReset(net::spdy::StreamId) override {}
    void OnGoAway() override {}
    net::spdy::Session* session = nullptr;
    std::vector<std::string> opened;
    std::vector<net::spdy::StreamId> errors;
  } node;
  net::spdy::Session node_session(net::spdy::Role::kServer, node);
  node.session = &node_session;
  node_handler_.function = [&](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    node_end_ = std::move(writer->Upgrade({{"Upgrade", "SPDY/3.1"}}).value());
    node_end_->Start(
        [&](std::string_view bytes) {
          EXPECT_TRUE(node_session.Receive(bytes).ok());
          node_end_->Write(node_session.TakeOutput());
        },
        [this] { node_saw_end_ = true; });
  };
  const std::string path = "/api/v1/namespaces/default/pods/p/portforward";
  const net::Headers headers = net::websocket::RequestHeaders(kKey, "v4.channel.k8s.io");
  EXPECT_EQ(Message(Upgrade(path, headers)), "query parameter \"ports\" is required");
  EXPECT_EQ(Upgrade(path + "?ports=0", headers).status, 400);
  const net::Response answer = Upgrade(path + "?ports=80,443", headers);
  ASSERT_EQ(answer.status, 101) << answer.body;
  EXPECT_EQ(*net::websocket::CheckAnswer(answer.headers, kKey), "v4.channel.k8s.io");
  struct Client final : net::websocket::Session::Events {
    void OnMessage(net::websocket::MessageType, std::string_view payload) override {
      received[payload[0]] += payload.substr(1);
    }
    void OnClose(std::uint16_t code, std::string_view) override { closed = code; }
    std::map<int, std::string> received;  // by channel
    int closed = 0;
  } events;
  SeededRandom random(1);
  net::websocket::Session session(net::websocket::Role::kClient, random, events);
  client_end_->Start([&](std::string_view bytes) { session.Receive(bytes); }, [] {});
  const auto send = [&](char channel, std::string_view text) {
    session.Send(net::websocket::MessageType::kBinary, {&channel, 1}, text);
    client_end_->Write(session.TakeOutput());
  };
  const std::string http("\x50\x00", 2);
  const std::string https("\xbb\x01", 2);
  send(2, "hello");
  send(3, "ignored");
  RunUntil([&] { return events.received[2] == https + "HELLO"; });
  EXPECT_EQ(events.received[0], http);
  EXPECT_EQ(events.received[1], http);
  EXPECT_EQ(events.received[3], https);
  EXPECT_THAT(node.opened, testing::ElementsAre("error 80", "data 80", "error 443", "data 443"));
  send(2, "fail");
  RunUntil([&] { return events.received[3] == https + "no"; });
  EXPECT_EQ(events.closed, 0) << "the other port is still open";
  client_end_.reset();
  RunUntil([&] { return node_saw_end_; });
}

TEST_F(PodStreamProxyTest, RejectsOtherProtocolsAfterAllOtherChecks) {
  const net::Headers other = {{"Connection", "Upgrade"}, {"Upgrade", "telnet"}};
  EXPECT_EQ(Message(Upgrade(Path("p", "container=z"), other)),
            "container z is not valid for pod p");
  EXPECT_EQ(Message(Upgrade(Path("p", "command=x"), other)), "Upgrade request required");
  EXPECT_EQ(Message(Do(net::Method::kGet, Path("p", "command=x"))), "Upgrade request required");
  EXPECT_EQ(Do(net::Method::kDelete, Path("p", "command=x")).status, 405);
}

}  // namespace
}  // namespace drakkar::apiserver
