#include "apiserver/webhook/http_transport.h"

#include <map>
#include <string>
#include <utility>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "base/text/truncate.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kMaxShownBytes = 1024;  // of an answer that is quoted in an error
constexpr std::size_t kMaxTreeBytes = std::size_t{32} << 20;  // of a parsed answer

WebhookTransport::Answer FailedCall(int code, std::string_view url, std::string_view why) {
  return {.document = nullptr,
          .failed = {.code = code, .reason = StrCat("Post ", Quote(url), ": ", why)}};
}

// "webhook.default.svc:443" of "https://webhook.default.svc:443/path".
std::string AuthorityOf(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  url.remove_prefix(std::min(url.size(), kScheme.size()));
  return std::string(url.substr(0, url.find('/')));
}

WebhookTransport::Answer Read(const std::string& url, Result<net::Response> response) {
  if (!response.ok()) {
    const Error& error = response.error();
    // In Go's words, which people search for.
    if (error.code == ErrorCode::kDeadlineExceeded) {
      return FailedCall(503, url, "context deadline exceeded");
    }
    return FailedCall(503, url, error.message);
  }
  if (response->status != 200) {
    const std::string body = TruncateMessage(response->body, kMaxShownBytes);
    const int code = response->status >= 400 ? response->status : 503;
    return {.document = nullptr,
            .failed = {.code = code,
                       .reason = response->status == 404
                                     ? "the server could not find the requested resource"
                                     : StrCat("the server answered with status ", response->status,
                                              ": ", Trim(body))}};
  }
  Result<api::TreePtr> document = api::ParseJson(response->body, {.refuse_duplicates = false});
  if (!document.ok()) {
    return FailedCall(503, url, StrCat("the answer is not JSON: ", document.error().message));
  }
  if ((*document)->size_bytes() > kMaxTreeBytes) {
    return FailedCall(503, url, "the answer has too many values");
  }
  return {.document = *std::move(document), .failed = {}};
}

}  // namespace

// The connections, on the transport's thread.
class HttpWebhookTransport::Clients {
 public:
  explicit Clients(UvLoop& loop) : loop_(loop) {}
  // Open calls hold their entry.
  ~Clients();

  struct Entry {
    std::unique_ptr<net::HttpClient> client;
    std::uint64_t used = 0;
    std::size_t open = 0;  // calls without an answer
  };

  std::map<Exchange*, std::shared_ptr<Exchange>> exchanges;  // the open calls
  std::size_t answer_bytes = 0;                              // of all calls, received so far

  // Null: all are in use.
  std::shared_ptr<Entry> For(const WebhookTarget& target) {
    const auto key = std::pair(target.server_name, target.ca_pem);
    auto found = clients_.find(key);
    if (found == clients_.end()) {
      if (clients_.size() >= kMaxClients && !DropOldest()) return nullptr;
      net::HttpClientOptions options;
      options.tls.ca_pem = target.ca_pem;
      options.tls.server_name = target.server_name;
      // One request per connection, so that the endpoints of a Service share the load.
      options.tls.offer_http2 = false;
      options.max_connections_per_host = kMaxConnectionsPerHost;
      options.max_queued_requests = kMaxQueuedPerHost;
      found = clients_.emplace(key, std::make_shared<Entry>()).first;
      found->second->client = std::make_unique<net::HttpClient>(loop_, std::move(options));
    }
    found->second->used = ++clock_;
    return found->second;
  }

 private:
  bool DropOldest() {
    auto oldest = clients_.end();
    for (auto each = clients_.begin(); each != clients_.end(); ++each) {
      if (each->second->open > 0) continue;
      if (oldest == clients_.end() || each->second->used < oldest->second->used) oldest = each;
    }
    if (oldest == clients_.end()) return false;
    clients_.erase(oldest);
    return true;
  }

  UvLoop& loop_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Entry>> clients_;
  std::uint64_t clock_ = 0;
};

// One call, on the transport's thread. Clients own it until its answer is complete.
class HttpWebhookTransport::Exchange final : public net::StreamSink,
                                             public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(UvLoop& loop, Clients& clients, std::shared_ptr<Clients::Entry> entry,
           std::size_t max_bytes, std::function<void(Result<net::Response>)> done)
      : loop_(loop),
        clients_(clients),
        entry_(std::move(entry)),
        max_bytes_(max_bytes),
        done_(std::move(done)) {
    ++entry_->open;
  }

  void Start(net::ClientRequest request) {
    clients_.exchanges.emplace(this, shared_from_this());
    handle_ = entry_->client->Stream(std::move(request), *this);
  }

 private:
  void OnResponse(int status, const net::Headers&) override { response_.status = status; }
  void OnData(std::string_view bytes) override {
    if (is_over_) return;
    if (response_.body.size() + bytes.size() > max_bytes_) {
      return End(Error{ErrorCode::kResourceExhausted,
                       StrCat("the response is larger than ", max_bytes_, " bytes")});
    }
    if (clients_.answer_bytes + bytes.size() > kMaxAnswersBytes) {
      return End(Error{ErrorCode::kResourceExhausted,
                       "the answers of all webhooks together are too large"});
    }
    clients_.answer_bytes += bytes.size();
    response_.body.append(bytes);
  }
  void OnEnd(Result<void> result) override {
    if (is_over_) return;
    if (!result.ok()) return End(std::move(result).error());
    End(Ok());
  }

  void End(Result<void> result) {
    clients_.answer_bytes -= response_.body.size();
    --entry_->open;
    if (result.ok()) {
      done_(std::move(response_));
    } else {
      done_(std::move(result).error());
    }
    is_over_ = true;
    // Posted, because this may be inside a call of the request that it destroys.
    loop_.Post([self = shared_from_this()] { self->handle_.reset(); });
    clients_.exchanges.erase(this);
  }

  UvLoop& loop_;
  Clients& clients_;
  const std::shared_ptr<Clients::Entry> entry_;
  const std::size_t max_bytes_;
  const std::function<void(Result<net::Response>)> done_;
  net::Response response_;
  bool is_over_ = false;
  std::unique_ptr<net::RequestHandle> handle_;
};

HttpWebhookTransport::Clients::~Clients() {
  for (const auto& [key, entry] : clients_) entry->client.reset();
}

HttpWebhookTransport::HttpWebhookTransport(EventLoop& core_loop) : core_loop_(core_loop) {}

HttpWebhookTransport::~HttpWebhookTransport() {
  lifetime_.End();
  if (thread_ == nullptr) return;
  thread_->RunSync([this] { clients_.reset(); });
  thread_->Stop();
}

void HttpWebhookTransport::Post(Call call, std::function<void(Answer)> done) {
  if (thread_ == nullptr) {
    thread_ = std::make_unique<LoopThread>("webhooks");
    thread_->RunSync([this] { clients_ = std::make_unique<Clients>(thread_->loop()); });
  }
  thread_->loop().Post(
      [this, call = std::move(call), done = lifetime_.Guard(std::move(done))]() mutable {
        const std::shared_ptr<Clients::Entry> entry = clients_->For(call.target);
        if (entry == nullptr) {
          return core_loop_.Post([done = std::move(done), url = call.target.shown_url]() mutable {
            done(FailedCall(503, url, "too many different webhooks are being called"));
          });
        }
        net::ClientRequest request;
        request.method = net::Method::kPost;
        request.url = call.target.url;
        if (!call.target.server_name.empty()) {
          request.headers.Add("Host", AuthorityOf(call.target.shown_url));
        }
        request.headers.Add("Content-Type", "application/json");
        request.headers.Add("Accept", "application/json, */*");
        request.headers.Add("User-Agent", "kube-apiserver-admission");
        request.body = std::move(call.body);
        request.timeout = call.timeout;
        const auto answer = [this, url = call.target.shown_url,
                             done = std::move(done)](Result<net::Response> response) {
          core_loop_.Post([answer = Read(url, std::move(response)), done]() mutable {
            done(std::move(answer));
          });
        };
        std::make_shared<Exchange>(thread_->loop(), *clients_, entry, call.max_answer_bytes, answer)
            ->Start(std::move(request));
      });
}

}  // namespace drakkar::apiserver
