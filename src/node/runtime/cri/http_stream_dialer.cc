#include "node/runtime/cri/http_stream_dialer.h"

#include <utility>

#include "base/text/text.h"
#include "net/client/http_client.h"

namespace drakkar::node {
namespace {

class HttpDial final : public PendingDial {
 public:
  HttpDial(std::shared_ptr<net::HttpClient> client, const std::string& url, net::Headers headers,
           absl::AnyInvocable<void(Result<std::unique_ptr<net::RawStream>>)> done)
      : client_(std::move(client)), done_(std::move(done)) {
    net::ClientRequest request;
    request.method = net::Method::kPost;
    request.url = url;
    request.headers = std::move(headers);
    request.headers.Set("Content-Length", "0");
    handle_ = client_->Upgrade(std::move(request), [this](Result<net::UpgradedConnection> answer) {
      auto finish = std::move(done_);
      if (!answer.ok()) return finish(std::move(answer).error());
      if (answer->stream == nullptr) {
        return finish(Internal(StrCat("the container runtime refused to stream with status ",
                                      answer->response.status)));
      }
      finish(std::move(answer->stream));
    });
  }

 private:
  const std::shared_ptr<net::HttpClient> client_;
  absl::AnyInvocable<void(Result<std::unique_ptr<net::RawStream>>)> done_;
  std::unique_ptr<net::RequestHandle> handle_;
};

}  // namespace

StreamDialer MakeHttpStreamDialer(UvLoop& loop) {
  auto client = std::make_shared<net::HttpClient>(loop, net::HttpClientOptions{});
  return [client](const std::string& url, net::Headers headers,
                  absl::AnyInvocable<void(Result<std::unique_ptr<net::RawStream>>)> done) {
    return std::make_unique<HttpDial>(client, url, std::move(headers), std::move(done));
  };
}

}  // namespace drakkar::node
