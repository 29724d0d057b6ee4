#include "apiserver/http/aggregation_proxy.h"

#include <optional>

#include "api/meta/status.h"
#include "apiserver/http/forwarding.h"
#include "apiserver/http/request_info.h"
#include "apiserver/http/tunnel.h"
#include "apiserver/request/identity_headers.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Counts how often a request has been passed on, so that servers that point at each other do not
// pass it on for ever.
constexpr char kHops[] = "X-Drakkar-Aggregator-Hops";
constexpr Duration kUpgradeTimeout = std::chrono::seconds(30);
// An answer with fewer unread bytes than this is not aborted for them.
constexpr std::size_t kFreePendingBytes = std::size_t{128} << 10;

Failure Unreachable(const AggregatedApi& api, std::string_view why) {
  return api::StatusServiceUnavailable(
      StrCat("ask the server of APIService ", api.name, ": ", why));
}

// Our own words about who asks take the place of the caller's.
net::Headers HeadersFor(const net::ServerRequest& request, const AggregatedApi& api,
                        const UserInfo& user, std::int64_t hops) {
  net::Headers headers = HeadersToForward(request);
  headers.Set("Host", StrCat(api.ServerName(), ":", api.port));
  AddIdentity(user, headers);
  headers.Set(kHops, std::to_string(hops + 1));
  return headers;
}

// Whether the answer may go on for ever. Only reads: a body is kept in memory as long as its
// request is open.
bool IsLong(const net::ServerRequest& request) {
  if (request.method != net::Method::kGet) return false;
  const Result<net::Query>& query = request.query();
  if (!query.ok()) return false;
  return IsTrueParameter(query->Find("watch")) || IsTrueParameter(query->Find("follow"));
}

}  // namespace

struct AggregationProxy::Client {
  std::unique_ptr<net::HttpClient> http;
  std::uint64_t used = 0;
  std::size_t open = 0;
};

struct AggregationProxy::Place {
  Place(std::shared_ptr<const void> c, std::shared_ptr<Client> used)
      : counted(std::move(c)), client(std::move(used)) {
    ++client->open;
  }
  ~Place() { --client->open; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::shared_ptr<const void> counted;
  const std::shared_ptr<Client> client;
};

// Copies one answer. Owns itself until either side is done.
class AggregationProxy::Copy final : public net::StreamSink,
                                     public std::enable_shared_from_this<Copy> {
 public:
  Copy(EventLoop& loop, AggregatedApiPtr api, std::string user, std::shared_ptr<const Place> place,
       bool is_head, std::shared_ptr<net::ResponseWriter> writer,
       std::shared_ptr<std::set<Copy*>> all)
      : loop_(loop),
        api_(std::move(api)),
        user_(std::move(user)),
        place_(std::move(place)),
        is_head_(is_head),
        writer_(std::move(writer)),
        all_(std::move(all)) {
    all_->insert(this);
  }
  ~Copy() override { all_->erase(this); }

  void Start(net::ClientRequest request) {
    self_ = shared_from_this();
    writer_->OnClosed([weak = weak_from_this()](bool) {
      if (auto self = weak.lock()) self->End();
    });
    handle_ = place_->client->http->Stream(std::move(request), *this);
  }

 private:
  bool HasStream() const {
    return status_ != 0 && !is_redirect_ && !is_head_ && !HasNoBody(status_);
  }

  void OnResponse(int status, const net::Headers& headers) override {
    status_ = status;
    is_redirect_ = status >= 300 && status < 400 && status != 304;
    headers_ = HeadersOfAnswer(headers);
    if (HasStream()) writer_->StartStream(status, headers_);
  }
  void OnData(std::string_view bytes) override {
    if (!HasStream()) return;
    writer_->Write(net::MakeSegment(std::string(bytes)));
    if (writer_->pending_bytes() > kFreePendingBytes) MakeRoom();
  }
  void OnEnd(Result<void> result) override {
    if (HasStream()) {
      if (result.ok()) {
        writer_->Finish();
      } else {
        writer_->Abort();
      }
    } else if (is_redirect_) {
      Failure failure = api::StatusServiceUnavailable(
          "the backend attempted to redirect this request, which is not permitted");
      failure.code = 502;
      Refuse(*writer_, failure);
    } else if (status_ != 0 && result.ok()) {
      writer_->Send(status_, headers_, std::string());
    } else if (!result.ok() && result.error().code == ErrorCode::kDeadlineExceeded) {
      Refuse(*writer_,
             api::StatusTimeout("request did not complete within the allotted timeout", 0));
    } else {
      Refuse(*writer_, Unreachable(*api_, result.ok() ? "no answer" : result.error().message));
    }
    End();
  }

  std::size_t pending() const {
    return self_ == nullptr || writer_ == nullptr ? 0 : writer_->pending_bytes();
  }

  // Aborts what the greediest user does not read.
  void MakeRoom() {
    std::map<std::string_view, std::size_t> by_user;
    std::size_t total = 0;
    for (const Copy* each : *all_) {
      by_user[each->user_] += each->pending();
      total += each->pending();
    }
    if (total <= kMaxPendingBytes) return;
    Copy* worst = this;
    for (Copy* each : *all_) {
      const std::pair bytes(by_user[each->user_], each->pending());
      if (bytes > std::pair(by_user[worst->user_], worst->pending())) worst = each;
    }
    const std::shared_ptr<Copy> alive = worst->shared_from_this();
    worst->writer_->Abort();
    worst->End();
  }

  void End() {
    // Posted, because we may be inside a call of the request that this destroys.
    if (self_ == nullptr) return;
    loop_.Post([self = std::move(self_)] {
      self->handle_.reset();
      self->writer_.reset();
      self->place_.reset();
    });
    self_ = nullptr;
  }

  EventLoop& loop_;
  const AggregatedApiPtr api_;
  const std::string user_;
  std::shared_ptr<const Place> place_;
  const bool is_head_;
  std::shared_ptr<net::ResponseWriter> writer_;
  const std::shared_ptr<std::set<Copy*>> all_;
  int status_ = 0;
  bool is_redirect_ = false;
  net::Headers headers_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::shared_ptr<Copy> self_;
};

AggregationProxy::AggregationProxy(UvLoop& loop,
                                   std::shared_ptr<net::CertificateSource> certificate)
    : loop_(loop), certificate_(std::move(certificate)) {}

AggregationProxy::~AggregationProxy() {
  // Open requests hold their client.
  for (const auto& [key, client] : clients_) client->http.reset();
}

bool AggregationProxy::DropOldest() {
  auto oldest = clients_.end();
  for (auto each = clients_.begin(); each != clients_.end(); ++each) {
    if (each->second->open > 0) continue;
    if (oldest == clients_.end() || each->second->used < oldest->second->used) oldest = each;
  }
  if (oldest == clients_.end()) return false;
  clients_.erase(oldest);
  return true;
}

std::shared_ptr<AggregationProxy::Client> AggregationProxy::ClientFor(const AggregatedApi& api) {
  const Key key(api.ServerName(), api.ca_pem, api.insecure);
  auto found = clients_.find(key);
  if (found == clients_.end()) {
    if (clients_.size() >= kMaxClients && !DropOldest()) return nullptr;
    net::HttpClientOptions options;
    options.tls.ca_pem = api.ca_pem;
    options.tls.server_name = api.ServerName();
    options.tls.insecure = api.insecure;
    options.tls.source = certificate_;
    options.max_connections_per_host = kMaxOpenPerApi;
    found = clients_.emplace(key, std::make_shared<Client>()).first;
    found->second->http = std::make_unique<net::HttpClient>(loop_, std::move(options));
  }
  found->second->used = ++uses_;
  return found->second;
}

void AggregationProxy::Serve(Target target, net::ServerRequest request,
                             std::shared_ptr<net::ResponseWriter> writer) {
  const AggregatedApi& api = *target.api;
  const std::string_view given = request.headers.Get(kHops);
  const std::optional<std::int64_t> hops = given.empty() ? 0 : ParseInt64(given);
  if (!hops || *hops < 0 || *hops >= kMaxHops) {
    return Refuse(*writer, Unreachable(api, "it leads back to this server"));
  }
  if (!FitsIntoHeaders(target.user)) {
    return Refuse(*writer, api::StatusBadRequest(StrCat(
                               "the server of APIService ", api.name,
                               " cannot be told who you are: a name, group or other part of your "
                               "identity has control characters, or spaces at its ends")));
  }
  std::shared_ptr<const void> counted = open_.Enter(api.name, target.user.name);
  std::shared_ptr<Client> client;
  if (counted != nullptr) client = ClientFor(api);
  if (client == nullptr) {
    return Refuse(*writer, api::StatusTooManyRequests(
                               StrCat("too many requests wait for the server of APIService ",
                                      api.name, ", please try again later"),
                               /*retry_after_seconds=*/1));
  }
  auto place = std::make_shared<const Place>(std::move(counted), std::move(client));
  net::ClientRequest ask;
  ask.method = request.method;
  ask.url = StrCat("https://", target.host, request.raw_path);
  if (!request.raw_query.empty()) ask.url += StrCat("?", request.raw_query);
  ask.headers = HeadersFor(request, api, target.user, *hops);
  if (IsUpgrade(request.headers)) {
    ask.headers.Set("Connection", "Upgrade");
    ask.headers.Set("Upgrade", std::string(request.headers.Get("upgrade")));
    if (request.method == net::Method::kPost) ask.headers.Set("Content-Length", "0");
    ask.timeout = kUpgradeTimeout;
    net::HttpClient& http = *place->client->http;
    OpenTunnel(
        {.loop = loop_,
         .http = http,
         .request = std::move(ask),
         .writer = std::move(writer),
         .unreachable = [api = target.api](std::string_view why) { return Unreachable(*api, why); },
         .place = std::move(place)});
    return;
  }
  ask.body = std::move(request.body);
  if (!IsLong(request)) ask.timeout = kRequestTimeout;
  std::make_shared<Copy>(loop_, std::move(target.api), std::move(target.user.name),
                         std::move(place), request.method == net::Method::kHead, std::move(writer),
                         copies_)
      ->Start(std::move(ask));
}

}  // namespace drakkar::apiserver
