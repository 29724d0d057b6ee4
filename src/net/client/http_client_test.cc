#include "net/client/http_client.h"

#include "net/socket/socket.h"
#include "net/testing/loopback.h"
#include "net/tls/certificate_source.h"

namespace drakkar::net {
namespace {

using testing::Await;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Loopback;
using testing::RecordingSink;
using testing::TestServerTls;

void Greet(ServerRequest, std::shared_ptr<ResponseWriter> writer) {
  writer->Send(200, {}, std::string("hello"));
}

TEST(HttpClient, NamesTheRequestAndTheReasonInItsErrors) {
  Loopback net;
  ClientRequest request;
  request.url = "http://127.0.0.1:1/x";
  EXPECT_EQ(net.Do(request).error().message,
            "GET http://127.0.0.1:1/x: connect to 127.0.0.1:1: connection refused");
  request.url = "nonsense";
  EXPECT_EQ(net.Do(request).error().code, ErrorCode::kInvalidArgument);
  request.url = net.Url("/");
  request.headers.Add("X", "a\nb");
  EXPECT_THAT(net.Do(request).error().message, HasSubstr("header \"X\" cannot be sent"));
}

TEST(HttpClient, ResolvesNames) {
  Loopback net;
  net.handler.function = Greet;
  ClientRequest request;
  request.url = StrCat("http://localhost:", net.port, "/");
  EXPECT_EQ(net.Do(request).value().body, "hello");
  request.url = StrCat("http://no-such-host.invalid:", net.port, "/");
  EXPECT_FALSE(net.Do(request).ok());
}

TEST(HttpClient, ReportsAServerItCannotTrust) {
  HttpServerOptions options;
  options.tls = TestServerTls();
  HttpClientOptions client_options;
  client_options.tls.ca_pem = testing::TestCertificates::Get().other_ca.certificate_pem;
  Loopback net(std::move(options), std::move(client_options));
  EXPECT_THAT(net.Get("/").error().message, HasSubstr("TLS: certificate: "));
}

TEST(HttpClient, TimesOut) {
  for (const bool http2 : {false, true}) {
    HttpClientOptions client_options;
    client_options.http2_prior_knowledge = http2;
    Loopback net({}, std::move(client_options));
    net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
      net.writers.push_back(std::move(writer));  // never answered
    };
    ClientRequest request;
    request.url = net.Url("/");
    request.timeout = std::chrono::milliseconds(20);
    const Error error = net.Do(request).error();
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.message, EndsWith("timed out waiting for the response"));
    net.handler.function = Greet;
    EXPECT_EQ(net.Get("/").value().body, "hello");
  }
}

TEST(HttpClient, BoundsTheResponse) {
  Loopback net;
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, std::string(1000, 'x'));
  };
  ClientRequest request;
  request.url = net.Url("/");
  request.max_response_bytes = 999;
  EXPECT_EQ(net.Do(request).error().code, ErrorCode::kResourceExhausted);
}

TEST(HttpClient, RetriesAnIdempotentRequestWhenAPooledConnectionBreaks) {
  for (const bool http2 : {false, true}) {
    HttpServerOptions options;
    options.drain_timeout = std::chrono::milliseconds(1);
    HttpClientOptions client_options;
    client_options.http2_prior_knowledge = http2;
    Loopback net(std::move(options), std::move(client_options));
    net.handler.function = Greet;
    ASSERT_EQ(net.Get("/").value().body, "hello");
    // The first request on the pooled connection gets no response: the server closes instead.
    int calls = 0;
    net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
      if (++calls > 1) return Greet(std::move(request), std::move(writer));
      net.held = std::move(writer);
      net.server->Stop([&] { EXPECT_TRUE(net.server->Start().ok()); });
    };
    // The server listens on another port after its restart, so the retry fails. What matters is
    // that it was tried on a new connection.
    const Result<Response> result = net.Get("/");
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("connection refused"));
    EXPECT_EQ(calls, 1);
  }
}

TEST(HttpClient, DoesNotRetryAPost) {
  HttpServerOptions options;
  options.drain_timeout = std::chrono::milliseconds(1);
  Loopback net(std::move(options));
  net.handler.function = Greet;
  ASSERT_EQ(net.Get("/").value().body, "hello");
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    net.held = std::move(writer);
    net.server->Stop();
  };
  ClientRequest request;
  request.method = Method::kPost;
  request.url = net.Url("/");
  EXPECT_THAT(net.Do(request).error().message, EndsWith("the server closed the connection"));
}

TEST(HttpClient, OpensAnotherHttp2ConnectionAtTheStreamLimit) {
  HttpServerOptions options;
  options.tls = TestServerTls();
  options.limits.max_concurrent_streams = 10;
  Loopback net(std::move(options));
  std::promise<void> all_open;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    net.writers.push_back(std::move(writer));
    if (net.writers.size() == 25) all_open.set_value();
  };
  std::vector<std::unique_ptr<RecordingSink>> sinks;
  std::vector<std::unique_ptr<RequestHandle>> handles;
  net.RunSync([&] {
    for (int i = 0; i < 25; ++i) {
      ClientRequest request;
      request.url = net.Url("/");
      sinks.push_back(std::make_unique<RecordingSink>());
      handles.push_back(net.client->Stream(request, *sinks.back()));
    }
  });
  Await(all_open.get_future());
  net.RunSync([&] {
    EXPECT_EQ(net.client->open_connections(), 3u);
    handles.clear();
  });
}

TEST(HttpClient, QueuesBeyondTheConnectionLimitAndRejectsBeyondTheQueueLimit) {
  HttpClientOptions client_options;
  client_options.max_connections_per_host = 2;
  client_options.max_queued_requests = 5;
  Loopback net({}, std::move(client_options));
  net.handler.function = Greet;
  std::vector<std::promise<bool>> done(7);
  net.RunSync([&] {
    for (auto& each : done) {
      ClientRequest request;
      request.url = net.Url("/");
      net.client->Do(request, [&each](Result<Response> result) { each.set_value(result.ok()); });
    }
  });
  int served = 0;
  for (auto& each : done) served += Await(each.get_future()) ? 1 : 0;
  EXPECT_EQ(served, 5);
}

TEST(HttpClient, ClosesAConnectionThatDoesNotAnswerPings) {
  // A listener that accepts but never sends anything.
  HttpClientOptions client_options;
  client_options.http2_prior_knowledge = true;
  client_options.ping_after = std::chrono::milliseconds(20);
  client_options.ping_timeout = std::chrono::milliseconds(20);
  Loopback net({}, std::move(client_options));
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Socket>> accepted;
  std::uint16_t port = 0;
  net.RunSync([&] {
    Listener::Options options;
    options.address.host = "127.0.0.1";
    listener = Listener::Create(net.loop(), options, [&](std::unique_ptr<Socket> socket) {
                 accepted.push_back(std::move(socket));
               }).value();
    port = listener->port();
  });
  ClientRequest request;
  request.url = StrCat("http://127.0.0.1:", port, "/");
  EXPECT_THAT(net.Do(request).error().message, EndsWith("the server did not answer a ping"));
  net.RunSync([&] {
    listener.reset();
    accepted.clear();
  });
}

TEST(HttpClient, ARenewedCertificateIsUsedThoughAnOldConnectionIsStillBusy) {
  const auto& certificates = testing::TestCertificates::Get();
  const auto source = std::make_shared<ReplaceableCertificate>(certificates.client);
  HttpServerOptions options;
  options.tls = TestServerTls();
  HttpClientOptions client_options;
  client_options.tls.source = source;
  client_options.ping_after = std::chrono::milliseconds(20);  // also how often it is looked at
  Loopback net(std::move(options), std::move(client_options));
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    if (request.path == "/watch") {
      net.writers.push_back(std::move(writer));  // stays open
      return;
    }
    writer->Send(200, {}, request.connection->peer->common_name);
  };
  RecordingSink watch;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(std::move(request), watch);
  });
  EXPECT_EQ(net.Get("/").value().body, "jane");
  source->Set(IssueCertificate(certificates.ca, {"joan", {}, {}, {}}, CertificateUse::kClient,
                               testing::TestValidity())
                  .value());
  std::string name = "jane";
  for (int i = 0; i < 100'000 && name == "jane"; ++i) name = net.Get("/").value().body;
  EXPECT_EQ(name, "joan");
  net.RunSync([&] { handle.reset(); });
}

TEST(HttpClient, CanBeDestroyedWithRequestsInFlight) {
  Loopback net;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    net.writers.push_back(std::move(writer));
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    for (int i = 0; i < 10; ++i) {
      ClientRequest request;
      request.url = net.Url("/");
      request.timeout = std::chrono::milliseconds(1);
      net.client->Do(request, [](Result<Response>) { ADD_FAILURE() << "called"; });
    }
    ClientRequest request;
    request.url = net.Url("/");
    handle = net.client->Stream(request, sink);
    net.client.reset();
  });
  net.RunSync([&] { handle.reset(); });
}

// A proxy on the loop of a Loopback. It answers requests that are not CONNECT with their first
// line.
class FakeProxy {
 public:
  explicit FakeProxy(Loopback& net) : net_(net) {
    net_.RunSync([this] {
      auto listener = Listener::Create(net_.loop(), {.address = {"127.0.0.1", 0, ""}},
                                       [this](std::unique_ptr<Socket> socket) {
                                         pairs_.push_back(std::make_unique<Pair>(*this));
                                         pairs_.back()->Start(std::move(socket));
                                       });
      ASSERT_TRUE(listener.ok());
      listener_ = *std::move(listener);
    });
  }
  ~FakeProxy() {
    net_.RunSync([this] {
      pairs_.clear();
      listener_.reset();
    });
  }
  std::uint16_t port() const { return listener_->port(); }

  std::string answer = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n";  // to CONNECT
  std::vector<std::string> heads;

 private:
  struct Pair {
    explicit Pair(FakeProxy& owner) : proxy(owner) {}
    void Start(std::unique_ptr<Socket> socket) {
      client = std::move(socket);
      client->Start(from_client);
    }
    void OnHead() {
      proxy.heads.push_back(head);
      std::string reply = proxy.answer;
      if (!head.starts_with("CONNECT ")) {
        const std::string line = head.substr(0, head.find("\r\n"));
        reply = StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", line.size(), "\r\n\r\n", line);
        client->Write(reply);
        return;
      }
      connector = Connector::Start(proxy.net_.loop(), {"127.0.0.1", proxy.net_.port, ""},
                                   [this, reply](Result<std::unique_ptr<Socket>> socket) mutable {
                                     server = std::move(socket).value();
                                     server->Start(from_server);
                                     client->Write(reply);
                                   });
    }

    struct FromClient final : Socket::Handler {
      explicit FromClient(Pair& owner) : pair(owner) {}
      void OnSocketData(std::string_view bytes) override {
        std::string copy(bytes);
        if (pair.server) return pair.server->Write(copy);
        pair.head += copy;
        if (pair.head.ends_with("\r\n\r\n")) pair.OnHead();
      }
      void OnSocketClosed(const Error*) override { pair.server.reset(); }
      void OnSocketDrained() override {}
      Pair& pair;
    };
    struct FromServer final : Socket::Handler {
      explicit FromServer(Pair& owner) : pair(owner) {}
      void OnSocketData(std::string_view bytes) override {
        std::string copy(bytes);
        pair.client->Write(copy);
      }
      void OnSocketClosed(const Error*) override { pair.client.reset(); }
      void OnSocketDrained() override {}
      Pair& pair;
    };

    FakeProxy& proxy;
    std::string head;
    FromClient from_client{*this};
    FromServer from_server{*this};
    std::unique_ptr<Socket> client, server;
    std::unique_ptr<Connector> connector;
  };

  Loopback& net_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

// Options of a client whose proxy gets its port later.
HttpClientOptions Proxied(const std::shared_ptr<std::uint16_t>& port) {
  HttpClientOptions options;
  options.proxy_of = [port](const Url&) {
    return HttpProxy{.host = "127.0.0.1", .port = *port, .authorization = "Basic bWU6cHc="};
  };
  return options;
}

TEST(HttpClientProxy, HttpsGoesThroughOneTunnelWithItsOwnTls) {
  for (const bool http2 : {false, true}) {
    auto port = std::make_shared<std::uint16_t>();
    HttpServerOptions options;
    options.tls = TestServerTls(http2);
    Loopback net(std::move(options), Proxied(port));
    net.handler.function = Greet;
    FakeProxy proxy(net);
    *port = proxy.port();
    for (int i = 0; i < 3; ++i) {
      const auto response = net.Get("/x");
      ASSERT_TRUE(response.ok()) << response.error().message;
      EXPECT_EQ(response->body, "hello");
    }
    const std::string server = StrCat("127.0.0.1:", net.port);
    ASSERT_EQ(proxy.heads.size(), 1u) << "the tunnel is kept";
    EXPECT_EQ(proxy.heads[0], StrCat("CONNECT ", server, " HTTP/1.1\r\nHost: ", server,
                                     "\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n"));
  }
}

TEST(HttpClientProxy, HttpIsRequestedFromTheProxy) {
  auto port = std::make_shared<std::uint16_t>();
  Loopback net({}, Proxied(port));
  FakeProxy proxy(net);
  *port = proxy.port();
  ClientRequest request;
  request.url = "http://example.com/a?b=c";
  for (int i = 0; i < 2; ++i) {
    const auto response = net.Do(request);
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "GET http://example.com/a?b=c HTTP/1.1");
  }
  EXPECT_THAT(proxy.heads[0], HasSubstr("Proxy-Authorization: Basic bWU6cHc=\r\n"));
  EXPECT_THAT(proxy.heads[0], HasSubstr("Host: example.com\r\n"));
}

TEST(HttpClientProxy, AProxyThatRefusesOrIsNoneIsNamedInTheError) {
  const std::pair<std::string, const char*> cases[] = {
      {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "it answered 407, which means"},
      {"HTTP/1.0 503 No\r\nX: y\r\n\r\n", "it answered 503"},
      {"SSH-2.0-x\r\n\r\n", "it is not an HTTP proxy"},
      {"HTTP/1.1 200 OK\r\n\r\nhello", "it sent more than an answer"},
      {std::string(30'000, 'x'), "its answer is too long"},
  };
  for (const auto& [answer, why] : cases) {
    auto port = std::make_shared<std::uint16_t>();
    HttpServerOptions options;
    options.tls = TestServerTls();
    Loopback net(std::move(options), Proxied(port));
    FakeProxy proxy(net);
    *port = proxy.port();
    proxy.answer = answer;
    const auto response = net.Get("/x");
    ASSERT_FALSE(response.ok()) << answer;
    EXPECT_THAT(response.error().message,
                HasSubstr(StrCat("through proxy 127.0.0.1:", proxy.port(), ": ", why)));
  }
}

}  // namespace
}  // namespace drakkar::net
