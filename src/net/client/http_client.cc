#include "net/client/http_client.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/text/text.h"
#include "net/client/connection.h"
#include "net/http/status.h"
#include "net/tls/certificate_source.h"

namespace drakkar::net {

using client::Call;
using client::CallPtr;
using client::Connection;

class HttpClient::Impl final : public client::ConnectionOwner {
 public:
  Impl(UvLoop& loop, HttpClientOptions options)
      : loop_(loop), options_(std::move(options)), flushes_(loop) {
    ArmCheck();
  }

  void Shutdown() {
    check_.reset();
    last_host_ = nullptr;
    auto hosts = std::move(hosts_);
    hosts_.clear();
    for (auto& [key, host] : hosts) {
      for (CallPtr& call : host.queue) Drop(*call);
      for (auto& connection : host.connections) connection->Abandon();
    }
  }

  // Returns null after reporting an invalid request.
  CallPtr Begin(ClientRequest request, StreamSink* sink, std::unique_ptr<StreamSink> owned,
                bool upgrade, std::function<void(std::unique_ptr<RawStream>)> on_upgrade) {
    loop_.AssertInLoop();
    auto call = std::make_shared<Call>();
    call->sink = sink;
    call->owned_sink = std::move(owned);
    call->url = std::move(request.url);
    call->method = request.method;
    call->on_upgrade = std::move(on_upgrade);
    call->request.method = request.method;
    call->request.headers = std::move(request.headers);
    call->request.body = std::move(request.body);
    Result<Host*> host = Resolve(call->url, request.peer, upgrade, call->request);
    if (!host.ok()) {
      FailLater(call, host.error());
      return call;
    }
    if (const auto& proxy = (*host)->proxy; proxy && (*host)->url.scheme == "http") {
      // The proxy makes the request itself.
      call->request.target = StrCat("http://", (*host)->url.Authority(), call->request.target);
      if (!proxy->authorization.empty()) {
        call->request.headers.Add("Proxy-Authorization", proxy->authorization);
      }
    }
    if ((*host)->queue.size() >= options_.max_queued_requests) {
      FailLater(call, Error{ErrorCode::kResourceExhausted, "too many queued requests"});
      return call;
    }
    if (request.timeout > Duration(0)) {
      call->timeout = loop_.RunAfter(request.timeout, [weak = std::weak_ptr<Call>(call)] {
        if (CallPtr late = weak.lock()) {
          Detach(*late);
          late->End(Error{ErrorCode::kDeadlineExceeded, "timed out waiting for the response"});
        }
      });
    }
    (*host)->queue.push_back(call);
    Dispatch(**host);
    return call;
  }

  void Cancel(const CallPtr& call) {
    Detach(*call);
    Drop(*call);
  }

  std::size_t open_connections() const {
    std::size_t count = 0;
    for (const auto& [key, host] : hosts_) {
      for (const auto& connection : host.connections) count += connection->is_ready() ? 1 : 0;
    }
    return count;
  }

 private:
  struct Host {
    Url url;
    std::string peer;
    std::shared_ptr<const TlsContext> tls;
    std::optional<HttpProxy> proxy;
    bool http1_only = false;  // for upgrades, or learned from ALPN
    bool protocol_known = false;
    std::vector<std::shared_ptr<Connection>> connections;
    std::deque<CallPtr> queue;  // finished calls are skipped
  };

  FlushQueue& flush_queue() override { return flushes_; }

  static void Drop(Call& call) {
    call.over = true;
    call.sink = nullptr;
    call.timeout.reset();
  }

  // Removes a call from its connection; a queued call is skipped once it is over.
  static void Detach(Call& call) {
    if (call.connection) call.connection->Cancel(call);
  }

  void FailLater(const CallPtr& call, Error error) {
    loop_.Post([call, error = std::move(error)] { call->End(error); });
  }

  // The host of `url`; sets the target and Host of `request`.
  Result<Host*> Resolve(const std::string& url, const std::string& peer, bool upgrade,
                        Request& request) {
    // Most clients talk to one server, so do not parse the start of its URLs each time.
    const bool same = !upgrade && peer.empty() && last_host_ != nullptr &&
                      url.starts_with(last_base_) && url.size() > last_base_.size() &&
                      url[last_base_.size()] == '/';
    const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
    const auto rest = url.begin() + static_cast<std::ptrdiff_t>(same ? last_base_.size() : 0);
    if (same && std::all_of(rest, url.end(), is_plain)) {
      request.target.assign(rest, url.end());
      if (!request.headers.Find("host")) request.headers.Add("Host", last_authority_);
      return last_host_;
    }
    ASSIGN_OR_RETURN(Url parsed, ParseUrl(url));
    request.target = parsed.target;
    if (!request.headers.Find("host")) request.headers.Add("Host", parsed.Authority());
    ASSIGN_OR_RETURN(Host * host, FindHost(parsed, peer, upgrade));
    if (!upgrade && peer.empty()) {
      last_base_ = url.substr(0, url.find_first_of("/?", parsed.scheme.size() + 3));
      last_authority_ = parsed.Authority();
      last_host_ = host;
    }
    return host;
  }

  Result<Host*> FindHost(const Url& url, const std::string& peer, bool upgrade) {
    const std::string key =
        StrCat(upgrade ? "upgrade+" : "", url.scheme, "://", url.host, ":", url.port, " ", peer);
    auto found = hosts_.find(key);
    if (found != hosts_.end()) return &found->second;
    if (hosts_.size() >= kMaxHosts) {
      last_host_ = nullptr;
      std::erase_if(hosts_, [](const auto& entry) {
        return entry.second.connections.empty() && entry.second.queue.empty();
      });
    }
    if (hosts_.size() >= kMaxHosts) {
      return Error{ErrorCode::kResourceExhausted, "too many different hosts"};
    }
    Host host;
    host.url = url;
    host.peer = peer;
    host.http1_only = upgrade;
    host.protocol_known = upgrade;
    if (options_.proxy_of) host.proxy = options_.proxy_of(url);
    if (url.scheme == "https") {
      auto& context = upgrade ? upgrade_tls_ : tls_;
      if (!context) {
        TlsClientOptions options = options_.tls;
        if (upgrade) options.offer_http2 = false;
        ASSIGN_OR_RETURN(context, TlsContext::Client(options));
      }
      host.tls = context;
    } else if (!options_.http2_prior_knowledge) {
      host.http1_only = true;
      host.protocol_known = true;
    }
    return &hosts_.emplace(key, std::move(host)).first->second;
  }

  // Map entries do not move until the connection is released.
  static Host* HostOf(const Connection& connection) {
    return static_cast<Host*>(connection.pool_entry);
  }

  void Dispatch(Host& host) {
    while (!host.queue.empty()) {
      if (host.queue.front()->over) {
        host.queue.pop_front();
        continue;
      }
      Connection* chosen = nullptr;
      for (const auto& connection : host.connections) {
        if (!connection->is_retired && connection->CanSubmit()) {
          chosen = connection.get();
          break;
        }
      }
      if (!chosen) break;
      CallPtr call = std::move(host.queue.front());
      host.queue.pop_front();
      chosen->Submit(std::move(call));
    }
    if (!host.queue.empty()) OpenConnections(host);
  }

  // With HTTP/2, or while the protocol is unknown, open one connection at a time.
  void OpenConnections(Host& host) {
    std::size_t connecting = 0;
    for (const auto& connection : host.connections) connecting += connection->is_ready() ? 0 : 1;
    const std::size_t wanted = host.protocol_known && host.http1_only ? host.queue.size() : 1;
    while (connecting < wanted && host.connections.size() < options_.max_connections_per_host) {
      auto connection =
          std::make_shared<Connection>(loop_, options_, *this, host.url, host.peer, host.tls);
      connection->pool_entry = &host;
      connection->proxy = host.proxy;
      if (options_.tls.source != nullptr) connection->certificate = options_.tls.source->Current();
      host.connections.push_back(connection);
      connection->Start();
      ++connecting;
    }
  }

  void OnConnectionReady(Connection& connection) override {
    Host* host = HostOf(connection);
    if (!host) return;
    host->protocol_known = true;
    host->http1_only = !connection.is_http2();
    Dispatch(*host);
  }

  void OnConnectionRoom(Connection& connection) override {
    if (Host* host = HostOf(connection)) Dispatch(*host);
  }

  void OnRetry(Connection& connection, CallPtr call) override {
    Host* host = HostOf(connection);
    if (!host) return FailLater(call, Unavailable("the client is closed"));
    host->queue.push_front(std::move(call));
  }

  void OnConnectionClosed(Connection& connection, const Error* error) override {
    Host* host = HostOf(connection);
    if (!host) return;
    std::erase_if(host->connections, [&](const auto& each) { return each.get() == &connection; });
    connection.pool_entry = nullptr;
    if (error && host->connections.empty()) {
      for (CallPtr& call : std::exchange(host->queue, {})) FailLater(call, *error);
    }
    Dispatch(*host);
  }

  void ArmCheck() {
    const Duration shortest =
        std::min({options_.idle_timeout, options_.ping_after, options_.ping_timeout});
    const Duration interval =
        std::clamp<Duration>(shortest / 4, std::chrono::milliseconds(5), std::chrono::seconds(5));
    check_ = loop_.RunAfter(interval, [this] {
      const MonotonicTime now = loop_.clock().Monotonic();
      std::vector<std::shared_ptr<Connection>> all;
      for (auto& [key, host] : hosts_) {
        all.insert(all.end(), host.connections.begin(), host.connections.end());
      }
      // A server may refuse the old certificate once it has expired, on open connections too.
      const auto current =
          options_.tls.source == nullptr ? nullptr : options_.tls.source->Current();
      for (const auto& connection : all) {
        connection->is_retired = connection->is_retired || connection->certificate != current;
        connection->Check(now);
      }
      ArmCheck();
    });
  }

  static constexpr std::size_t kMaxHosts = 10'000;

  UvLoop& loop_;
  const HttpClientOptions options_;
  FlushQueue flushes_;
  std::shared_ptr<const TlsContext> tls_;
  std::shared_ptr<const TlsContext> upgrade_tls_;
  std::map<std::string, Host> hosts_;
  std::string last_base_;       // of the last request: "https://127.0.0.1:6443"
  std::string last_authority_;  // of the last request
  Host* last_host_ = nullptr;   // of the last request, or null
  TimerHandle check_;
};

namespace {

// Collects a response for Do.
class Collector final : public StreamSink {
 public:
  Collector(std::function<void(Result<Response>)> callback, std::size_t max_bytes)
      : callback_(std::move(callback)), max_bytes_(max_bytes) {}

  void OnResponse(int status, const Headers& headers) override {
    response_.status = status;
    response_.headers = headers;
  }
  void OnData(std::string_view bytes) override {
    if (response_.body.size() + bytes.size() > max_bytes_) {
      too_large_ = true;
      return;
    }
    response_.body.append(bytes);
  }
  void OnEnd(Result<void> result) override {
    auto callback = std::move(callback_);
    if (!result.ok()) {
      callback(std::move(result).error());
    } else if (too_large_) {
      callback(Error{ErrorCode::kResourceExhausted,
                     StrCat("the response is larger than ", max_bytes_, " bytes")});
    } else {
      callback(std::move(response_));
    }
  }

 private:
  std::function<void(Result<Response>)> callback_;
  const std::size_t max_bytes_;
  Response response_;
  bool too_large_ = false;
};

class UpgradeSink final : public StreamSink {
 public:
  explicit UpgradeSink(std::function<void(Result<UpgradedConnection>)> callback)
      : callback_(std::move(callback)) {}

  void OnResponse(int status, const Headers& headers) override {
    response_.status = status;
    response_.headers = headers;
  }
  void OnData(std::string_view bytes) override {
    if (response_.body.size() + bytes.size() <= kMaxErrorBytes) response_.body.append(bytes);
  }
  void OnEnd(Result<void> result) override {
    auto callback = std::move(callback_);
    if (!result.ok()) return callback(std::move(result).error());
    callback(UpgradedConnection{std::move(response_), nullptr});
  }
  void Upgraded(std::unique_ptr<RawStream> stream) {
    auto callback = std::move(callback_);
    callback(UpgradedConnection{std::move(response_), std::move(stream)});
  }

 private:
  static constexpr std::size_t kMaxErrorBytes = 16 * 1024;
  std::function<void(Result<UpgradedConnection>)> callback_;
  Response response_;
};

}  // namespace

HttpClient::HttpClient(UvLoop& loop, HttpClientOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}

HttpClient::~HttpClient() {
  impl_->Shutdown();
}

namespace {

template <typename Owner>
class Handle final : public RequestHandle {
 public:
  Handle(std::weak_ptr<Owner> owner, CallPtr call)
      : owner_(std::move(owner)), call_(std::move(call)) {}
  ~Handle() override {
    if (auto owner = owner_.lock()) {
      owner->Cancel(call_);
    } else {
      call_->over = true;
      call_->sink = nullptr;
    }
  }
  void SetReading(bool reading) override {
    if (call_->connection != nullptr) call_->connection->SetReading(*call_, reading);
  }

 private:
  std::weak_ptr<Owner> owner_;
  CallPtr call_;
};

}  // namespace

void HttpClient::Do(ClientRequest request, std::function<void(Result<Response>)> callback) {
  auto sink = std::make_unique<Collector>(std::move(callback), request.max_response_bytes);
  StreamSink* raw = sink.get();
  impl_->Begin(std::move(request), raw, std::move(sink), false, nullptr);
}

std::unique_ptr<RequestHandle> HttpClient::Stream(ClientRequest request, StreamSink& sink) {
  return std::make_unique<Handle<Impl>>(
      impl_, impl_->Begin(std::move(request), &sink, nullptr, false, nullptr));
}

std::unique_ptr<RequestHandle> HttpClient::Upgrade(
    ClientRequest request, std::function<void(Result<UpgradedConnection>)> callback) {
  auto sink = std::make_unique<UpgradeSink>(std::move(callback));
  UpgradeSink* raw = sink.get();
  return std::make_unique<Handle<Impl>>(
      impl_,
      impl_->Begin(std::move(request), raw, std::move(sink), true,
                   [raw](std::unique_ptr<RawStream> stream) { raw->Upgraded(std::move(stream)); }));
}

std::size_t HttpClient::open_connections() const {
  return impl_->open_connections();
}

}  // namespace drakkar::net
