#include "net/client/http_client.h"

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

}  // namespace
}  // namespace drakkar::net
