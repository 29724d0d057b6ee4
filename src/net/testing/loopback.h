#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "net/client/http_client.h"
#include "net/server/http_server.h"
#include "net/tls/certificates.h"

namespace drakkar::net::testing {

inline Validity TestValidity() {
  const WallTime now = RealClock().Now();
  return {now - std::chrono::hours(1), now + std::chrono::hours(24)};
}

// One CA, one server and one client certificate for all tests of a binary.
struct TestCertificates {
  CertificateAndKey ca, other_ca, server, client, stranger;

  static const TestCertificates& Get() {
    static const TestCertificates* const kMade = [] {
      auto* made = new TestCertificates;
      made->ca = CreateCa("test-ca", TestValidity()).value();
      made->other_ca = CreateCa("other-ca", TestValidity()).value();
      made->server = IssueCertificate(made->ca, {"server", {}, {"localhost"}, {"127.0.0.1", "::1"}},
                                      CertificateUse::kServer, TestValidity())
                         .value();
      made->client = IssueCertificate(made->ca, {"jane", {"dev", "ops"}, {}, {}},
                                      CertificateUse::kClient, TestValidity())
                         .value();
      made->stranger = IssueCertificate(made->other_ca, {"mallory", {"system:masters"}, {}, {}},
                                        CertificateUse::kClient, TestValidity())
                           .value();
      return made;
    }();
    return *kMade;
  }
};

inline std::shared_ptr<const TlsContext> TestServerTls(bool http2 = true) {
  const TestCertificates& certificates = TestCertificates::Get();
  TlsServerOptions options;
  options.certificate_pem = certificates.server.certificate_pem;
  options.key_pem = certificates.server.key_pem;
  options.client_ca_pem = certificates.ca.certificate_pem;
  options.offer_http2 = http2;
  return TlsContext::Server(options).value();
}

class FunctionHandler final : public RequestHandler {
 public:
  using Function = std::function<void(ServerRequest, std::shared_ptr<ResponseWriter>)>;
  void Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) override {
    function(std::move(request), std::move(writer));
  }
  Function function;
};

// Collects a streamed response. Lives on the loop; tests read it through the futures.
class RecordingSink final : public StreamSink {
 public:
  void OnResponse(int code, const Headers&) override {
    status = code;
    started.set_value(code);
  }
  void OnData(std::string_view bytes) override {
    data.append(bytes);
    if (on_data) on_data();
  }
  void OnEnd(Result<void> result) override { ended.set_value(std::move(result)); }

  int status = 0;
  std::string data;
  std::function<void()> on_data;
  std::promise<int> started;
  std::promise<Result<void>> ended;
};

template <typename T>
T Await(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    ADD_FAILURE() << "nothing happened within 20 seconds";
    std::abort();
  }
  return future.get();
}

// A server and a client on one loop with its own thread.
class Loopback {
 public:
  explicit Loopback(HttpServerOptions options = {}, HttpClientOptions client_options = {})
      : thread_("loopback") {
    if (options.address.unix_path.empty()) options.address.host = "127.0.0.1";
    scheme_ = options.tls ? "https" : "http";
    if (client_options.tls.ca_pem.empty()) {
      client_options.tls.ca_pem = TestCertificates::Get().ca.certificate_pem;
    }
    thread_.RunSync([&] {
      server = std::make_unique<HttpServer>(thread_.loop(), std::move(options), handler);
      const Result<void> started = server->Start();
      EXPECT_TRUE(started.ok()) << started.error().message;
      port = server->port();
      client = std::make_unique<HttpClient>(thread_.loop(), std::move(client_options));
    });
  }
  ~Loopback() {
    thread_.RunSync([&] {
      held.reset();
      writers.clear();
      client.reset();
      server.reset();
    });
  }

  UvLoop& loop() { return thread_.loop(); }
  void RunSync(Task task) { thread_.RunSync(std::move(task)); }
  std::string Url(std::string_view target) const {
    return StrCat(scheme_, "://127.0.0.1:", port, target);
  }

  Result<Response> Do(ClientRequest request) {
    std::promise<Result<Response>> promise;
    auto future = promise.get_future();
    RunSync([&] {
      client->Do(std::move(request),
                 [&promise](Result<Response> result) { promise.set_value(std::move(result)); });
    });
    return Await(std::move(future));
  }
  Result<Response> Get(std::string_view target) {
    ClientRequest request;
    request.url = Url(target);
    return Do(std::move(request));
  }

  FunctionHandler handler;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client;
  std::uint16_t port = 0;
  // Kept by a handler; dropped on the loop.
  std::shared_ptr<ResponseWriter> held;
  std::vector<std::shared_ptr<ResponseWriter>> writers;

 private:
  LoopThread thread_;
  std::string scheme_;
};

}  // namespace drakkar::net::testing
