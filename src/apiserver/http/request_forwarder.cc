#include "apiserver/http/request_forwarder.h"

#include <optional>

#include "api/meta/status.h"
#include "apiserver/http/forwarding.h"
#include "apiserver/http/tunnel.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

Failure Unreachable(std::string_view why) {
  return api::StatusServiceUnavailable(StrCat("error trying to reach service: ", why));
}

// A path as in a URL: what RFC 3986 allows in a segment stays, also a slash.
std::string EncodePath(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    if (std::string_view("/:@!$&'()*+,;=").find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += net::PercentEncode(std::string_view(&c, 1));
    }
  }
  return encoded;
}

// The part of the request's path that stands for the root of the backend, without a slash at its
// end. Segments behind it are only names, so the first "/proxy" after the name is ours.
std::string PrefixOf(const RequestInfo& info) {
  std::string prefix = info.group.empty() ? "/api" : StrCat("/apis/", info.group);
  prefix += StrCat("/", info.version);
  if (!info.namespace_.empty()) prefix += StrCat("/namespaces/", info.namespace_);
  return EncodePath(StrCat(prefix, "/", info.resource, "/", info.name, "/", info.subresource));
}

bool IsCrossOrigin(std::string_view name) {
  return ToLower(name).starts_with("access-control-allow-");
}

// Copies one answer. Owns itself until either side is done.
class Answer final : public net::StreamSink, public std::enable_shared_from_this<Answer> {
 public:
  struct Options {
    EventLoop& loop;
    bool is_head = false;
    std::string prefix;
    std::string backend_host;  // as the answer may name it in a redirect
    std::string client_host;   // the same
    std::shared_ptr<net::ResponseWriter> writer;
    std::shared_ptr<const void> place;
  };
  explicit Answer(Options options) : options_(std::move(options)) {}

  void Start(net::HttpClient& http, net::ClientRequest request, Duration head_timeout) {
    self_ = shared_from_this();
    options_.writer->OnClosed([weak = weak_from_this()](bool) {
      if (auto self = weak.lock()) self->End();
    });
    options_.writer->OnDrained([weak = weak_from_this()] {
      if (auto self = weak.lock(); self && self->handle_) self->handle_->SetReading(true);
    });
    head_timer_ = options_.loop.RunAfter(head_timeout, [this, head_timeout] {
      handle_.reset();
      Refuse(*options_.writer,
             api::StatusTimeout(
                 StrCat("the server behind did not begin to answer within ",
                        std::chrono::duration_cast<std::chrono::seconds>(head_timeout).count(),
                        " seconds"),
                 0));
      End();
    });
    handle_ = http.Stream(std::move(request), *this);
  }

 private:
  bool HasStream() const { return status_ != 0 && !options_.is_head && !HasNoBody(status_); }

  void OnResponse(int status, const net::Headers& headers) override {
    head_timer_.reset();
    status_ = status;
    for (const auto& [name, value] : HeadersOfAnswer(headers)) {
      if (IsCrossOrigin(name)) continue;
      headers_.Add(name, net::EqualsIgnoreCase(name, "location")
                             ? RewrittenLocation(value, options_.prefix,
                                                 {options_.backend_host, options_.client_host})
                             : value);
    }
    if (HasStream()) return options_.writer->StartStream(status, headers_);
    // How long the answer to GET would be.
    if (const std::string* length = headers.Find("content-length"); length && options_.is_head) {
      headers_.Set("Content-Length", *length);
    }
  }
  void OnData(std::string_view bytes) override {
    if (!HasStream()) return;
    options_.writer->Write(net::MakeSegment(std::string(bytes)));
    if (options_.writer->pending_bytes() > RequestForwarder::kMaxUnread) {
      handle_->SetReading(false);
    }
  }
  void OnEnd(Result<void> result) override {
    if (HasStream()) {
      if (result.ok()) {
        options_.writer->Finish();
      } else {
        options_.writer->Abort();
      }
    } else if (status_ != 0 && result.ok()) {
      options_.writer->Send(status_, headers_, std::string());
    } else {
      Refuse(*options_.writer, Unreachable(result.ok() ? "no answer" : result.error().message));
    }
    End();
  }

  void End() {
    // Posted, because we may be inside a call of the request that this destroys.
    if (self_ == nullptr) return;
    head_timer_.reset();
    options_.loop.Post([self = std::move(self_)] {
      self->handle_.reset();
      self->options_.writer.reset();
      self->options_.place.reset();
    });
    self_ = nullptr;
  }

  Options options_;
  TimerHandle head_timer_;
  int status_ = 0;
  net::Headers headers_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::shared_ptr<Answer> self_;
};

}  // namespace

std::string RewrittenLocation(const std::string& location, const std::string& prefix,
                              std::initializer_list<std::string_view> hosts) {
  std::string_view path = location;
  if (path.starts_with("//") || path.find("://") < path.find_first_of("/?#")) {
    std::string_view rest = path.substr(path.find("//") + 2);
    const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
    bool is_known = false;
    for (const std::string_view each : hosts) is_known = is_known || host == each;
    if (!is_known) return location;
    rest.remove_prefix(host.size());
    path = rest;
    if (!path.starts_with('/')) return StrCat(prefix, "/", path);
  } else if (!path.starts_with('/')) {
    return location;  // relative to the path of the request, so it stays below the prefix
  }
  const bool has_prefix =
      path.starts_with(prefix) &&
      (path.size() == prefix.size() || path.substr(prefix.size()).find_first_of("/?#") == 0);
  return has_prefix ? std::string(path) : StrCat(prefix, path);
}

RequestForwarder::RequestForwarder(UvLoop& loop, net::TlsClientOptions tls, Duration head_timeout)
    : loop_(loop), head_timeout_(head_timeout), http_(loop, [&] {
        net::HttpClientOptions options;
        options.tls = std::move(tls);
        // The back-pressure of an answer needs a connection of its own.
        options.tls.offer_http2 = false;
        options.max_connections_per_host = kMaxOpenPerBackend;
        return options;
      }()) {}
RequestForwarder::~RequestForwarder() = default;

void RequestForwarder::Forward(Backend backend, const RequestInfo& info, const std::string& user,
                               net::ServerRequest request,
                               std::shared_ptr<net::ResponseWriter> writer) {
  const bool is_upgrade = IsUpgrade(request.headers);
  const bool is_head = request.method == net::Method::kHead;
  const std::string prefix = PrefixOf(info);
  if (info.rest.empty() && !is_upgrade && (is_head || request.method == net::Method::kGet)) {
    // Relative links of the answer need a slash at the end of the path.
    std::string location = StrCat(prefix, "/");
    if (!request.raw_query.empty()) location += StrCat("?", request.raw_query);
    return writer->Send(301, {{"Location", location}}, std::string());
  }
  std::shared_ptr<const void> place = open_.Enter(backend.url, user);
  if (place == nullptr) {
    return Refuse(*writer, api::StatusTooManyRequests(
                               "too many requests wait for the server behind this path, please "
                               "try again later",
                               /*retry_after_seconds=*/1));
  }
  net::ClientRequest ask;
  ask.method = request.method;
  ask.peer = std::move(backend.peer);
  ask.url = StrCat(backend.url, info.rest.empty() ? "/" : EncodePath(info.rest));
  if (!request.raw_query.empty()) ask.url += StrCat("?", request.raw_query);
  ask.headers = HeadersToForward(request);
  if (!backend.keeps_host) ask.headers.Remove("host");
  if (is_upgrade) {
    ask.headers.Set("Connection", "Upgrade");
    ask.headers.Set("Upgrade", std::string(request.headers.Get("upgrade")));
    if (request.method == net::Method::kPost) ask.headers.Set("Content-Length", "0");
    ask.timeout = head_timeout_;
    return OpenTunnel({.loop = loop_,
                       .http = http_,
                       .request = std::move(ask),
                       .writer = std::move(writer),
                       .unreachable = Unreachable,
                       .place = std::move(place)});
  }
  ask.body = std::move(request.body);
  const std::string backend_host = backend.url.substr(backend.url.find("//") + 2);
  const std::string client_host(request.headers.Get("host"));
  auto answer = std::make_shared<Answer>(Answer::Options{.loop = loop_,
                                                         .is_head = is_head,
                                                         .prefix = prefix,
                                                         .backend_host = backend_host,
                                                         .client_host = client_host,
                                                         .writer = std::move(writer),
                                                         .place = std::move(place)});
  answer->Start(http_, std::move(ask), head_timeout_);
}

}  // namespace drakkar::apiserver
