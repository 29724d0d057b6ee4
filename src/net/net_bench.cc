// Requests per second over loopback, including the client; server and client have a loop thread
// each.
#include <benchmark/benchmark.h>

#include <future>

#include "base/text/text.h"
#include "net/client/http_client.h"
#include "net/server/http_server.h"
#include "net/tls/certificates.h"

namespace drakkar::net {
namespace {

class Responder final : public RequestHandler {
 public:
  void Handle(ServerRequest, std::shared_ptr<ResponseWriter> writer) override {
    writer->Send(200, headers_, Body{body_});
  }

 private:
  const Headers headers_{{"Content-Type", "application/json"}};
  const Segment body_ = MakeSegment(std::string(900, 'x'));
};

struct Certificates {
  CertificateAndKey ca, server;
  Certificates() {
    const WallTime now = RealClock().Now();
    const Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(1)};
    ca = CreateCa("ca", validity).value();
    server =
        IssueCertificate(ca, {"server", {}, {}, {"127.0.0.1"}}, CertificateUse::kServer, validity)
            .value();
  }
};

// Keeps `depth` requests in flight on each of `connections` connections until `total` are done.
class Load {
 public:
  Load(UvLoop& loop, const HttpClientOptions& options, std::string url, int connections, int depth)
      : url_(std::move(url)), depth_(depth) {
    for (int i = 0; i < connections; ++i) {
      clients_.push_back(std::make_unique<HttpClient>(loop, options));
    }
  }
  void Start(std::int64_t total, std::promise<void>* done) {
    left_ = waiting_ = total;
    done_ = done;
    for (auto& client : clients_) {
      for (int i = 0; i < depth_; ++i) Next(*client);
    }
  }

 private:
  void Next(HttpClient& client) {
    if (left_ == 0) return;
    --left_;
    ClientRequest request;
    request.url = url_;
    client.Do(std::move(request), [this, &client](Result<Response> response) {
      if (!response.ok() || response->status != 200) std::abort();
      if (--waiting_ == 0) return done_->set_value();
      Next(client);
    });
  }

  const std::string url_;
  const int depth_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
  std::int64_t left_ = 0;
  std::int64_t waiting_ = 0;
  std::promise<void>* done_ = nullptr;
};

void RunLoad(benchmark::State& state, bool tls, bool http2) {
  static const Certificates certificates;
  const int connections = static_cast<int>(state.range(0));
  const int depth = static_cast<int>(state.range(1));
  LoopThread server_thread("server");
  LoopThread client_thread("client");
  Responder responder;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Load> load;
  server_thread.RunSync([&] {
    HttpServerOptions options;
    options.address.host = "127.0.0.1";
    if (tls) {
      TlsServerOptions tls_options;
      tls_options.certificate_pem = certificates.server.certificate_pem;
      tls_options.key_pem = certificates.server.key_pem;
      tls_options.offer_http2 = http2;
      options.tls = TlsContext::Server(tls_options).value();
    }
    server = std::make_unique<HttpServer>(server_thread.loop(), options, responder);
    if (!server->Start().ok()) std::abort();
  });
  client_thread.RunSync([&] {
    HttpClientOptions options;
    options.tls.ca_pem = certificates.ca.certificate_pem;
    options.http2_prior_knowledge = http2;
    options.max_connections_per_host = 1;
    load = std::make_unique<Load>(
        client_thread.loop(), options,
        StrCat(tls ? "https" : "http", "://127.0.0.1:", server->port(),
               "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a"),
        connections, depth);
  });
  auto run = [&](std::int64_t total) {
    std::promise<void> done;
    client_thread.RunSync([&] { load->Start(total, &done); });
    done.get_future().wait();
  };
  run(2000);
  constexpr std::int64_t kBatch = 20'000;
  for (auto _ : state) run(kBatch);
  state.SetItemsProcessed(state.iterations() * kBatch);
  client_thread.RunSync([&] { load.reset(); });
  server_thread.RunSync([&] { server.reset(); });
}

void BM_TlsHttp2(benchmark::State& state) {
  RunLoad(state, true, true);
}
void BM_TlsHttp1(benchmark::State& state) {
  RunLoad(state, true, false);
}
void BM_PlainHttp2(benchmark::State& state) {
  RunLoad(state, false, true);
}
void BM_PlainHttp1(benchmark::State& state) {
  RunLoad(state, false, false);
}

BENCHMARK(BM_TlsHttp2)
    ->Args({32, 1})
    ->Args({32, 8})
    ->Args({1, 100})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_TlsHttp1)->Args({32, 1})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlainHttp2)->Args({32, 8})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlainHttp1)->Args({32, 1})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace drakkar::net
