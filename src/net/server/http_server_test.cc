#include "net/server/http_server.h"

#include <unistd.h>

#include "net/testing/loopback.h"

namespace drakkar::net {
namespace {

using testing::Await;
using testing::Loopback;
using testing::RecordingSink;
using testing::TestCertificates;
using testing::TestServerTls;

enum class Mode { kPlainHttp1, kPlainHttp2, kTlsHttp1, kTlsHttp2 };

class HttpServerTest : public ::testing::TestWithParam<Mode> {
 protected:
  static bool IsTls() { return GetParam() == Mode::kTlsHttp1 || GetParam() == Mode::kTlsHttp2; }
  static bool IsHttp2() { return GetParam() == Mode::kPlainHttp2 || GetParam() == Mode::kTlsHttp2; }

  static HttpServerOptions ServerOptions() {
    HttpServerOptions options;
    if (IsTls()) options.tls = TestServerTls(IsHttp2());
    return options;
  }
  static HttpClientOptions ClientOptions() {
    HttpClientOptions options;
    options.http2_prior_knowledge = IsHttp2();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, HttpServerTest,
                         ::testing::Values(Mode::kPlainHttp1, Mode::kPlainHttp2, Mode::kTlsHttp1,
                                           Mode::kTlsHttp2),
                         [](const auto& parameter) {
                           switch (parameter.param) {
                             case Mode::kPlainHttp1:
                               return "PlainHttp1";
                             case Mode::kPlainHttp2:
                               return "PlainHttp2";
                             case Mode::kTlsHttp1:
                               return "TlsHttp1";
                             default:
                               return "TlsHttp2";
                           }
                         });

TEST_P(HttpServerTest, ParsesAllPartsOfARequest) {
  Loopback net(ServerOptions(), ClientOptions());
  bool http2 = false;
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    http2 = request.connection->is_http2;
    EXPECT_EQ(request.connection->is_tls, IsTls());
    EXPECT_EQ(request.path, "/api/v1/a b");
    EXPECT_EQ(request.query()->Get("watch"), "true");
    EXPECT_EQ(request.headers.Get("X-Test"), "yes");
    EXPECT_TRUE(request.headers.Get("host").starts_with("127.0.0.1:"));
    writer->Send(201, Headers{{"Content-Type", "text/plain"}},
                 StrCat(MethodName(request.method), " ", request.body));
  };
  ClientRequest request;
  request.method = Method::kPut;
  request.url = net.Url("/api/v1/a%20b?watch=true");
  request.headers.Add("X-Test", "yes");
  request.body = "the body";
  const Result<Response> response = net.Do(request);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "PUT the body");
  EXPECT_EQ(response->headers.Get("content-type"), "text/plain");
  EXPECT_EQ(response->headers.Get("content-length"), "12");
  EXPECT_TRUE(response->headers.Get("date").ends_with(" GMT"));
  EXPECT_EQ(http2, IsHttp2());
}

TEST_P(HttpServerTest, ReusesOneConnectionForSequentialRequests) {
  Loopback net(ServerOptions(), ClientOptions());
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, std::string("x"));
  };
  for (int i = 0; i < 20; ++i) ASSERT_EQ(net.Get("/").value().status, 200);
  HttpServer::Stats stats;
  net.RunSync([&] { stats = net.server->stats(); });
  EXPECT_EQ(stats.accepted, 1u);
  EXPECT_EQ(stats.requests, 20u);
}

TEST_P(HttpServerTest, SendsSharedSegmentsOfALargeListInOrder) {
  Loopback net(ServerOptions(), ClientOptions());
  const Segment item = MakeSegment(std::string(1000, 'i') + "\n");
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, Body(5000, item));
  };
  const Response response = net.Get("/list").value();
  ASSERT_EQ(response.body.size(), 5000u * 1001);
  for (std::size_t i = 0; i < response.body.size(); i += 1001) {
    ASSERT_EQ(response.body.compare(i, 1001, *item), 0);
  }
}

TEST_P(HttpServerTest, AnswersHeadWithoutABody) {
  Loopback net(ServerOptions(), ClientOptions());
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, std::string("hidden"));
  };
  ClientRequest request;
  request.method = Method::kHead;
  request.url = net.Url("/");
  const Response response = net.Do(request).value();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(response.headers.Get("content-length"), "6");
  EXPECT_EQ(net.Get("/").value().body, "hidden");
}

TEST_P(HttpServerTest, StreamsAResponsePieceByPiece) {
  Loopback net(ServerOptions(), ClientOptions());
  std::shared_ptr<ResponseWriter>& held = net.held;
  std::promise<bool> closed;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    held = std::move(writer);
    held->OnClosed([&](bool completed) { closed.set_value(completed); });
    held->StartStream(200, Headers{{"Content-Type", "application/json"}});
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(request, sink);
  });
  EXPECT_EQ(Await(sink.started.get_future()), 200);
  for (std::string piece : {"one", "two", "three"}) {
    std::promise<void> arrived;
    net.RunSync([&] {
      sink.on_data = [&] { arrived.set_value(); };
      held->Write(MakeSegment(piece));
    });
    Await(arrived.get_future());
  }
  net.RunSync([&] { held->Finish(); });
  EXPECT_TRUE(Await(sink.ended.get_future()).ok());
  EXPECT_TRUE(Await(closed.get_future()));
  EXPECT_EQ(sink.data, "onetwothree");
  net.RunSync([&] { handle.reset(); });
}

TEST_P(HttpServerTest, NotifiesTheWriterWhenTheClientCancels) {
  Loopback net(ServerOptions(), ClientOptions());
  std::shared_ptr<ResponseWriter>& held = net.held;
  std::promise<bool> closed;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    held = std::move(writer);
    held->OnClosed([&](bool completed) { closed.set_value(completed); });
    held->StartStream(200, {});
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(request, sink);
  });
  Await(sink.started.get_future());
  net.RunSync([&] { handle.reset(); });
  EXPECT_FALSE(Await(closed.get_future()));
  net.RunSync([&] {
    EXPECT_TRUE(held->is_closed());
    held->Write(MakeSegment("into the void"));
    held->Finish();
  });
}

TEST_P(HttpServerTest, AnAbortedStreamIsAnErrorAtTheClient) {
  Loopback net(ServerOptions(), ClientOptions());
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->StartStream(200, {});
    writer->Write(MakeSegment("half"));
    // Dropped without Finish.
  };
  const Result<Response> response = net.Get("/");
  EXPECT_FALSE(response.ok());
}

TEST_P(HttpServerTest, ADroppedRequestGets500) {
  Loopback net(ServerOptions(), ClientOptions());
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter>) {};
  EXPECT_EQ(net.Get("/").value().status, 500);
}

TEST_P(HttpServerTest, RejectsABodyOverTheLimitWith413) {
  HttpServerOptions options = ServerOptions();
  options.limits.max_body_bytes = 100'000;
  Loopback net(std::move(options), ClientOptions());
  net.handler.function = [](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, std::to_string(request.body.size()));
  };
  ClientRequest request;
  request.method = Method::kPost;
  request.url = net.Url("/");
  request.body = std::string(100'000, 'b');
  EXPECT_EQ(net.Do(request).value().body, "100000");
  request.body = std::string(100'001, 'b');
  EXPECT_EQ(net.Do(request).value().status, 413);
  request.body = std::string(5'000'000, 'b');
  EXPECT_EQ(net.Do(request).value().status, 413);
  EXPECT_EQ(net.Get("/").value().body, "0");
}

TEST_P(HttpServerTest, AWriterSeesWhatASlowClientHasNotRead) {
  Loopback net(ServerOptions(), ClientOptions());
  std::shared_ptr<ResponseWriter>& held = net.held;
  std::promise<void> drained;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    held = std::move(writer);
    held->StartStream(200, {});
    const Segment big = MakeSegment(std::string(1 << 20, 'w'));
    for (int i = 0; i < 32; ++i) held->Write(big);
    // Nothing can have been sent yet: one loop iteration sends a bounded part.
    EXPECT_GE(held->pending_bytes(), 31u << 20);
    held->OnDrained([&] { drained.set_value(); });
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(request, sink);
  });
  Await(drained.get_future());
  net.RunSync([&] {
    EXPECT_EQ(held->pending_bytes(), 0u);
    held->Finish();
  });
  EXPECT_TRUE(Await(sink.ended.get_future()).ok());
  EXPECT_EQ(sink.data.size(), 32u << 20);
  net.RunSync([&] { handle.reset(); });
}

TEST_P(HttpServerTest, StopWaitsForOpenRequestsAndThenCloses) {
  Loopback net(ServerOptions(), ClientOptions());
  std::shared_ptr<ResponseWriter>& held = net.held;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    held = std::move(writer);
    held->StartStream(200, {});
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(request, sink);
  });
  Await(sink.started.get_future());
  std::promise<void> stopped;
  std::promise<void> stopped_again;
  net.RunSync([&] {
    net.server->Stop([&] { stopped.set_value(); });
    net.server->Stop([&] { stopped_again.set_value(); });
    held->Write(MakeSegment("last words"));
    held->Finish();
  });
  EXPECT_TRUE(Await(sink.ended.get_future()).ok());
  EXPECT_EQ(sink.data, "last words");
  Await(stopped.get_future());
  Await(stopped_again.get_future());
  const Result<Response> refused = net.Get("/");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("connection refused"));
  net.RunSync([&] { handle.reset(); });
}

TEST_P(HttpServerTest, StopAbortsStreamsThatDoNotEndInTime) {
  HttpServerOptions options = ServerOptions();
  options.drain_timeout = std::chrono::milliseconds(20);
  Loopback net(std::move(options), ClientOptions());
  std::shared_ptr<ResponseWriter>& held = net.held;
  std::promise<bool> closed;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    held = std::move(writer);
    held->OnClosed([&](bool completed) { closed.set_value(completed); });
    held->StartStream(200, {});
  };
  RecordingSink sink;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/watch");
    handle = net.client->Stream(request, sink);
  });
  Await(sink.started.get_future());
  std::promise<void> stopped;
  net.RunSync([&] { net.server->Stop([&] { stopped.set_value(); }); });
  Await(stopped.get_future());
  EXPECT_FALSE(Await(closed.get_future()));
  EXPECT_FALSE(Await(sink.ended.get_future()).ok());
  net.RunSync([&] { handle.reset(); });
}

TEST_P(HttpServerTest, ClosesIdleConnections) {
  HttpServerOptions options = ServerOptions();
  options.idle_timeout = std::chrono::milliseconds(20);
  Loopback net(std::move(options), ClientOptions());
  net.handler.function = [](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, std::string("x"));
  };
  ASSERT_EQ(net.Get("/").value().status, 200);
  // The pool notices, and the next request uses a new connection.
  std::size_t open = 1;
  const MonotonicTime deadline = RealClock().Monotonic() + std::chrono::seconds(10);
  while (open > 0 && RealClock().Monotonic() < deadline) {
    net.RunSync([&] { open = net.client->open_connections(); });
  }
  EXPECT_EQ(open, 0u);
  ASSERT_EQ(net.Get("/").value().status, 200);
}

TEST_P(HttpServerTest, ServesAThousandStreamsAtOnce) {
  HttpServerOptions options = ServerOptions();
  HttpClientOptions client_options = ClientOptions();
  client_options.max_connections_per_host = 1000;
  const std::size_t streams = IsHttp2() ? 1000 : 200;
  Loopback net(std::move(options), std::move(client_options));
  std::vector<std::shared_ptr<ResponseWriter>>& writers = net.writers;
  std::promise<void> all_open;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->StartStream(200, {});
    writers.push_back(std::move(writer));
    if (writers.size() == streams) all_open.set_value();
  };
  std::vector<std::unique_ptr<RecordingSink>> sinks;
  std::vector<std::unique_ptr<RequestHandle>> handles;
  net.RunSync([&] {
    for (std::size_t i = 0; i < streams; ++i) {
      ClientRequest request;
      request.url = net.Url(StrCat("/watch/", i));
      sinks.push_back(std::make_unique<RecordingSink>());
      handles.push_back(net.client->Stream(request, *sinks.back()));
    }
  });
  Await(all_open.get_future());
  net.RunSync([&] {
    const Segment event = MakeSegment("event");
    for (auto& writer : writers) {
      writer->Write(event);
      writer->Finish();
    }
  });
  for (auto& sink : sinks) {
    EXPECT_TRUE(Await(sink->ended.get_future()).ok());
    EXPECT_EQ(sink->data, "event");
  }
  if (IsHttp2()) {
    HttpServer::Stats stats;
    net.RunSync([&] { stats = net.server->stats(); });
    EXPECT_LE(stats.accepted, 11u);
  }
  net.RunSync([&] { handles.clear(); });
}

TEST(HttpServer, IdentifiesTheOwnerOfTheClientCertificate) {
  HttpServerOptions options;
  options.tls = TestServerTls();
  HttpClientOptions client_options;
  client_options.tls.certificate_pem = TestCertificates::Get().client.certificate_pem;
  client_options.tls.key_pem = TestCertificates::Get().client.key_pem;
  Loopback net(std::move(options), std::move(client_options));
  std::optional<PeerIdentity> peer;
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    peer = request.connection->peer;
    writer->Send(200, {}, std::string());
  };
  ASSERT_EQ(net.Get("/").value().status, 200);
  EXPECT_EQ(peer, (PeerIdentity{"jane", {"dev", "ops"}}));
}

TEST(HttpServer, AClientCertificateOfAnotherAuthorityIsRejected) {
  HttpServerOptions options;
  options.tls = TestServerTls();
  HttpClientOptions client_options;
  client_options.tls.certificate_pem = TestCertificates::Get().stranger.certificate_pem;
  client_options.tls.key_pem = TestCertificates::Get().stranger.key_pem;
  Loopback net(std::move(options), std::move(client_options));
  std::optional<PeerIdentity> peer;
  std::string error;
  net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    peer = request.connection->peer;
    error = request.connection->peer_error;
    writer->Send(200, {}, std::string());
  };
  ASSERT_EQ(net.Get("/").value().status, 200);
  EXPECT_FALSE(peer.has_value());
  EXPECT_NE(error, "");
}

TEST(HttpServer, ReportsWhyItCannotListen) {
  Loopback net;
  net.RunSync([&] {
    HttpServerOptions options;
    options.address = {"127.0.0.1", net.port, ""};
    HttpServer second(net.loop(), options, net.handler);
    const Result<void> started = second.Start();
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().message,
              StrCat("listen on 127.0.0.1:", net.port, ": address already in use"));
    options.address = {"not-an-address", 1, ""};
    HttpServer third(net.loop(), options, net.handler);
    EXPECT_EQ(third.Start().error().message, "listen on not-an-address:1: not an IP address");
  });
}

TEST(HttpServer, SeveralServersShareAPortWithReusePort) {
  HttpServerOptions options;
  options.reuse_port = true;
  Loopback net(options);
  net.RunSync([&] {
    options.address = {"127.0.0.1", net.port, ""};
    HttpServer second(net.loop(), options, net.handler);
    EXPECT_TRUE(second.Start().ok());
    second.Stop();
    EXPECT_TRUE(second.Start().ok());
  });
}

TEST(HttpServer, ClosesConnectionsBeyondTheLimit) {
  HttpServerOptions options;
  options.max_connections = 0;
  Loopback net(options);
  EXPECT_FALSE(net.Get("/").ok());
  net.RunSync([&] { EXPECT_GE(net.server->stats().rejected, 1u); });
}

TEST(HttpServer, UpgradesToARawStream) {
  for (const bool tls : {false, true}) {
    HttpServerOptions options;
    if (tls) options.tls = TestServerTls();
    Loopback net(std::move(options));
    std::unique_ptr<RawStream> server_end;
    std::promise<void> server_closed;
    net.handler.function = [&](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
      EXPECT_EQ(request.headers.Get("upgrade"), "echo");
      Result<std::unique_ptr<RawStream>> raw = writer->Upgrade(Headers{{"Upgrade", "echo"}});
      ASSERT_TRUE(raw.ok());
      server_end = std::move(*raw);
      server_end->Start([&](std::string_view bytes) { server_end->Write(StrCat("echo ", bytes)); },
                        [&] { server_closed.set_value(); });
    };
    std::unique_ptr<RawStream> client_end;
    std::unique_ptr<RequestHandle> handle;
    std::promise<std::string> echoed;
    std::string seen;
    net.RunSync([&] {
      ClientRequest request;
      request.url = net.Url("/exec");
      request.headers = Headers{{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
      handle = net.client->Upgrade(request, [&](Result<UpgradedConnection> upgraded) {
        ASSERT_TRUE(upgraded.ok()) << upgraded.error().message;
        EXPECT_EQ(upgraded->response.status, 101);
        client_end = std::move(upgraded->stream);
        client_end->Start(
            [&](std::string_view bytes) {
              seen.append(bytes);
              if (seen.size() == 10) echoed.set_value(seen);
            },
            [] {});
        client_end->Write("hello");
      });
    });
    EXPECT_EQ(Await(echoed.get_future()), "echo hello");
    net.RunSync([&] { client_end.reset(); });
    Await(server_closed.get_future());
    net.RunSync([&] {
      server_end.reset();
      handle.reset();
    });
  }
}

TEST(HttpServer, ARawStreamReportsPendingBytesAndWhenTheyAreSent) {
  Loopback net;
  constexpr std::size_t kBytes = 32u << 20;
  std::unique_ptr<RawStream> server_end, client_end;
  std::promise<void> drained;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    server_end = std::move(writer->Upgrade(Headers{{"Upgrade", "x"}}).value());
    server_end->Start([](std::string_view) {}, [] {});
    server_end->OnDrained([&] { drained.set_value(); });
    server_end->Write(std::string(kBytes, 'a'));
    EXPECT_GE(server_end->pending_bytes(), kBytes);
  };
  std::size_t seen = 0;
  std::promise<void> all;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/");
    request.headers = Headers{{"Connection", "Upgrade"}, {"Upgrade", "x"}};
    handle = net.client->Upgrade(request, [&](Result<UpgradedConnection> upgraded) {
      client_end = std::move(upgraded->stream);
      client_end->Start(
          [&](std::string_view bytes) {
            seen += bytes.size();
            if (seen == kBytes) all.set_value();
          },
          [] {});
    });
  });
  Await(all.get_future());
  Await(drained.get_future());
  net.RunSync([&] {
    EXPECT_EQ(server_end->pending_bytes(), 0u);
    client_end.reset();
    server_end.reset();
    handle.reset();
  });
}

TEST(HttpServer, ARejectedUpgradeReturnsTheResponse) {
  Loopback net;
  net.handler.function = [&](ServerRequest, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(403, {}, std::string("not you\n"));
  };
  std::promise<Response> refused;
  std::unique_ptr<RequestHandle> handle;
  net.RunSync([&] {
    ClientRequest request;
    request.url = net.Url("/exec");
    request.headers = Headers{{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
    handle = net.client->Upgrade(request, [&](Result<UpgradedConnection> upgraded) {
      EXPECT_EQ(upgraded->stream, nullptr);
      refused.set_value(upgraded->response);
    });
  });
  const Response answer = Await(refused.get_future());
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "not you\n");
  net.RunSync([&] { handle.reset(); });
}

TEST(HttpServer, ServesOverAUnixSocket) {
  const std::string path = StrCat(::testing::TempDir(), "net_", ::getpid(), ".sock");
  HttpServerOptions options;
  options.address.unix_path = path;
  HttpClientOptions client_options;
  client_options.unix_path = path;
  Loopback net(std::move(options), std::move(client_options));
  net.handler.function = [](ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
    writer->Send(200, {}, request.connection->remote_address);
  };
  ClientRequest request;
  request.url = "http://local/";
  EXPECT_EQ(net.Do(request).value().body, "@");
}

}  // namespace
}  // namespace drakkar::net
