#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apiserver/http/frontend.h"
#include "client/http_client.h"
#include "features/gates/feature_gates.h"
#include "net/client/http_client.h"
#include "net/testing/loopback.h"
#include "storage/memory/memory_store.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

// The API server over HTTPS on a real loop, which the test runs until it has its response.
class HttpsTest : public ::testing::Test {
 protected:
  HttpsTest() {
    store_ = storage::OpenMemoryStore(loop_, disk_);
    core_ = std::make_unique<Core>(
        Core::Options{.loop = loop_, .random = random_, .store = *store_, .gates = gates_});
    core_->Start([](Result<void> ready) { ASSERT_TRUE(ready.ok()); });
  }

  static net::HttpServerOptions LoopbackOptions() {
    net::HttpServerOptions options;
    options.address.host = "127.0.0.1";
    options.tls = net::testing::TestServerTls();
    return options;
  }
  // Afterwards `access_` and `http_` reach the server, and it has the namespace "default".
  void Serve(std::map<std::string, SubresourceProxy*> proxies = {}) {
    Frontend::Options options{.core = *core_,
                              .authenticator = authenticator_,
                              .metrics = metrics_,
                              .proxies = std::move(proxies)};
    if (adjust_) adjust_(options);
    frontend_ = std::make_unique<Frontend>(std::move(options));
    server_ = std::make_unique<net::HttpServer>(loop_, LoopbackOptions(), *frontend_);
    EXPECT_TRUE(server_->Start().ok());
    const net::testing::TestCertificates& certificates = net::testing::TestCertificates::Get();
    access_.server = "https://127.0.0.1:" + std::to_string(server_->port());
    access_.ca_pem = certificates.ca.certificate_pem;
    access_.client_certificate_pem = certificates.client.certificate_pem;
    access_.client_key_pem = certificates.client.key_pem;
    http_ = std::make_unique<net::HttpClient>(loop_, client::HttpOptionsFor(access_));
    Post("/api/v1/namespaces", R"({"metadata":{"name":"default"}})");
  }

  // Runs the loop until `done` returns true, within a time limit.
  template <typename Condition>
  void RunUntil(Condition done) {
    TimerHandle limit = loop_.RunAfter(std::chrono::seconds(10), [&] {
      ADD_FAILURE() << "nothing happened for ten seconds";
      loop_.Stop();
    });
    while (!done() && !HasFailure()) RunOnce();
  }
  void RunOnce() {
    loop_.Post(
        [this] { step_ = loop_.RunAfter(std::chrono::milliseconds(1), [this] { loop_.Stop(); }); });
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
    http_->Do(std::move(request),
              [&](Result<net::Response> response) { answer = std::move(response); });
    RunUntil([&] { return answer.has_value(); });
    EXPECT_TRUE(answer && answer->ok());
    return answer && answer->ok() ? **answer : net::Response{};
  }
  net::Response Post(const std::string& path, std::string body) {
    return Do(net::Method::kPost, path, std::move(body), {{"Content-Type", "application/json"}});
  }

  // Called with the frontend's options before Serve uses them. May be null.
  std::function<void(Frontend::Options&)> adjust_;
  UvLoop loop_;
  SeededRandom random_{1};
  storage::MemoryDisk disk_;
  FeatureGates gates_;
  Metrics metrics_;
  Authenticator authenticator_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<net::HttpServer> server_;
  client::ClusterAccess access_;
  std::unique_ptr<net::HttpClient> http_;
  TimerHandle step_;
};

}  // namespace drakkar::apiserver
