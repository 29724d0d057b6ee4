#include "apiserver/aggregation/http_backend_client.h"

#include <set>
#include <utility>

#include "net/client/http_client.h"

namespace drakkar::apiserver {

// The open calls, on the client's thread.
struct HttpBackendClient::Open {
  std::set<std::shared_ptr<net::HttpClient>> clients;
};

HttpBackendClient::HttpBackendClient(EventLoop& core_loop,
                                     std::shared_ptr<net::CertificateSource> certificate)
    : core_loop_(core_loop), certificate_(std::move(certificate)) {}

HttpBackendClient::~HttpBackendClient() {
  lifetime_.End();
  if (thread_ == nullptr) return;
  thread_->RunSync([this] { open_.reset(); });
  thread_->Stop();
}

void HttpBackendClient::Get(Call call, std::function<void(Result<net::Response>)> done) {
  if (thread_ == nullptr) {
    thread_ = std::make_unique<LoopThread>("aggregator");
    thread_->RunSync([this] { open_ = std::make_unique<Open>(); });
  }
  UvLoop& loop = thread_->loop();
  loop.Post(
      [this, &loop, call = std::move(call), done = lifetime_.Guard(std::move(done))]() mutable {
        const auto answer = [core = &core_loop_](auto then, Result<net::Response> response) {
          core->Post([then = std::move(then), response = std::move(response)]() mutable {
            then(std::move(response));
          });
        };
        if (open_->clients.size() >= kMaxOpen) {
          return answer(std::move(done), Unavailable("too many servers are being asked"));
        }
        net::HttpClientOptions options;
        options.tls.ca_pem = call.ca_pem;
        options.tls.server_name = call.server_name;
        options.tls.insecure = call.insecure;
        options.tls.source = certificate_;
        options.tls.offer_http2 = false;
        auto client = std::make_shared<net::HttpClient>(loop, std::move(options));
        net::ClientRequest request;
        request.url = std::move(call.url);
        request.headers = std::move(call.headers);
        request.timeout = call.timeout;
        request.max_response_bytes = call.max_bytes;
        open_->clients.insert(client);
        client->Do(std::move(request),
                   [this, &loop, weak = std::weak_ptr(client), answer,
                    done = std::move(done)](Result<net::Response> response) mutable {
                     answer(std::move(done), std::move(response));
                     // Posted, because the client must not be destroyed inside its own callback.
                     loop.Post([this, client = weak.lock()] {
                       if (open_ != nullptr) open_->clients.erase(client);
                     });
                   });
      });
}

}  // namespace drakkar::apiserver
