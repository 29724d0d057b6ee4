#include "apiserver/http/scheduler_proxy.h"

#include "apiserver/http/encode.h"
#include "base/text/text.h"
#include "net/http/url.h"
#include "net/socket/address_kind.h"

namespace drakkar::apiserver {
namespace {

// A question takes milliseconds, in the largest clusters about a second.
constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr std::size_t kMaxBytes = 64u << 20;

void Refuse(net::ResponseWriter& writer, const Failure& failure) {
  EncodedBody encoded = EncodeFailure(Negotiated{}, failure);
  writer.Send(failure.code, {{"Content-Type", encoded.content_type}}, std::move(encoded.body));
}

// Splits "https://10.0.0.7:10259" or "https://[::1]:10259".
struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
std::optional<HostAndPort> ParseUrl(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return std::nullopt;
  url.remove_prefix(kScheme.size());
  const std::size_t colon = url.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> port = ParseInt64(url.substr(colon + 1));
  if (!port || *port <= 0 || *port > 65535) return std::nullopt;
  std::string_view host = url.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HostAndPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace

SchedulerProxy::SchedulerProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own)
    : loop_(loop), tls_(std::move(tls)), is_own_(std::move(is_own)) {}
SchedulerProxy::~SchedulerProxy() = default;

std::shared_ptr<net::HttpClient> SchedulerProxy::ClientFor(const std::string& ca_pem) {
  if (http_ != nullptr && ca_pem == ca_pem_) return http_;
  net::HttpClientOptions options;
  options.tls = tls_;
  if (!ca_pem.empty()) options.tls.ca_pem = ca_pem;
  ca_pem_ = ca_pem;
  http_ = std::make_shared<net::HttpClient>(loop_, std::move(options));
  return http_;
}

void SchedulerProxy::Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                           std::shared_ptr<net::ResponseWriter> writer) {
  if (request.method != net::Method::kGet) {
    return Refuse(*writer,
                  MethodNotAllowedFailure(*info.kind, ToLower(net::MethodName(request.method))));
  }
  const api::Value data = target.scheduler == nullptr ? api::Value() : (*target.scheduler)["data"];
  const std::string url(data["statusURL"].str());
  if (url.empty()) {
    return Refuse(*writer, api::StatusServiceUnavailable(
                               "no active scheduler has published where it answers questions"));
  }
  const std::optional<HostAndPort> address = ParseUrl(url);
  const net::AddressKind kind =
      address ? net::KindOfAddress(address->host) : net::AddressKind::kNoAddress;
  if ((kind != net::AddressKind::kOther && kind != net::AddressKind::kLoopback) ||
      (is_own_ && is_own_(address->host, address->port))) {
    return Refuse(*writer, api::StatusServiceUnavailable(
                               StrCat("the scheduler has published the address ", Quote(url),
                                      ", which is not usable: it must be https://IP:PORT")));
  }
  net::ClientRequest ask;
  ask.url = StrCat(url, "/why/", info.resource, "/", net::PercentEncode(info.namespace_), "/",
                   net::PercentEncode(info.name));
  if (!request.raw_query.empty()) ask.url += "?" + request.raw_query;
  ask.timeout = kTimeout;
  ask.max_response_bytes = kMaxBytes;
  ask.headers.Add("X-Remote-User", net::PercentEncode(target.user.name));
  ask.headers.Add("X-Remote-Uid", net::PercentEncode(target.user.uid));
  for (const std::string& group : target.user.groups) {
    ask.headers.Add("X-Remote-Group", net::PercentEncode(group));
  }
  std::shared_ptr<net::HttpClient> http = ClientFor(std::string(data["statusCA"].str()));
  net::HttpClient& client = *http;
  client.Do(std::move(ask), [this, writer,
                             http = std::move(http)](Result<net::Response> response) mutable {
    // Posted, because the client must not be destroyed inside its own callback.
    loop_.Post([kept = std::move(http)]() mutable { kept.reset(); });
    if (!response.ok()) {
      return Refuse(*writer, api::StatusServiceUnavailable(
                                 StrCat("ask the scheduler: ", response.error().message)));
    }
    if (response->status == 200) {
      return writer->Send(200, {{"Content-Type", "application/json"}}, std::move(response->body));
    }
    std::string message(Trim(response->body));
    switch (response->status) {
      case 400:
        return Refuse(*writer, api::StatusBadRequest(std::move(message)));
      case 404: {
        Failure failure = api::StatusBadRequest(std::move(message));
        failure.code = 404;
        failure.reason = "NotFound";
        return Refuse(*writer, failure);
      }
      case 429:
        return Refuse(*writer, api::StatusTooManyRequests(std::move(message), 1));
      default:
        return Refuse(*writer, api::StatusServiceUnavailable(StrCat(
                                   "the scheduler answered ", response->status, ": ", message)));
    }
  });
}

}  // namespace drakkar::apiserver
