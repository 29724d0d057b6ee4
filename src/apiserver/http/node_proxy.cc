#include "apiserver/http/node_proxy.h"

#include <set>

#include "api/scheme/scheme.h"
#include "apiserver/http/forwarding.h"
#include "apiserver/http/pod_containers.h"
#include "apiserver/http/proxy_target.h"
#include "base/text/text.h"
#include "net/http/url.h"
#include "net/socket/address_kind.h"

namespace drakkar::apiserver {
namespace {

constexpr std::int64_t kDefaultNodePort = 10250;

// Copies one response, no faster than the client reads. Owns itself until either side is done.
class LogStream final : public net::StreamSink, public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(std::shared_ptr<net::ResponseWriter> writer, std::string node,
            std::shared_ptr<const void> place)
      : writer_(std::move(writer)), node_(std::move(node)), place_(std::move(place)) {}

  void Start(net::HttpClient& http, EventLoop& loop, net::ClientRequest request) {
    loop_ = &loop;
    self_ = shared_from_this();
    writer_->OnClosed([weak = weak_from_this()](bool) {
      if (auto self = weak.lock()) self->End();
    });
    writer_->OnDrained([weak = weak_from_this()] {
      if (auto self = weak.lock(); self && self->handle_) self->handle_->SetReading(true);
    });
    handle_ = http.Stream(std::move(request), *this);
  }

 private:
  void OnResponse(int status, const net::Headers& headers) override {
    status_ = status;
    const std::string_view type = headers.Get("content-type");
    if (status == 200) {
      writer_->StartStream(200,
                           {{"Content-Type", type.empty() ? "text/plain" : std::string(type)}});
    }
  }
  void OnData(std::string_view bytes) override {
    if (status_ != 200) {
      if (error_text_.size() < 4096) error_text_ += bytes;
      return;
    }
    writer_->Write(net::MakeSegment(std::string(bytes)));
    if (writer_->pending_bytes() > PodLogProxy::kMaxUnread) handle_->SetReading(false);
  }
  void OnEnd(Result<void> result) override {
    if (status_ == 200) {
      if (result.ok()) {
        writer_->Finish();
      } else {
        writer_->Abort();
      }
    } else if (status_ != 0) {
      Failure failure = api::StatusBadRequest(std::string(Trim(error_text_)));
      if (status_ == 404) {
        failure.code = 404;
        failure.reason = "NotFound";
      }
      Refuse(*writer_, failure);
    } else {
      Refuse(*writer_,
             api::StatusInternalError(StrCat("ask node ", node_, ": ",
                                             result.ok() ? "no answer" : result.error().message)));
    }
    End();
  }

  void End() {
    // Posted, because we may be inside a call of the request that this destroys.
    if (self_ == nullptr) return;
    loop_->Post([self = std::move(self_)] {
      self->handle_.reset();
      self->writer_.reset();
      self->place_.reset();
    });
    self_ = nullptr;
  }

  std::shared_ptr<net::ResponseWriter> writer_;
  const std::string node_;
  std::shared_ptr<const void> place_;
  EventLoop* loop_ = nullptr;
  int status_ = 0;
  std::string error_text_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::shared_ptr<LogStream> self_;
};

net::HttpClientOptions ClientOptions(net::TlsClientOptions tls) {
  net::HttpClientOptions options;
  options.tls = std::move(tls);
  options.tls.check_peer = CheckNodeCertificate;
  return options;
}

}  // namespace

IsOwnAddress OwnAddress(std::shared_ptr<const std::atomic<std::uint16_t>> port) {
  return [port = std::move(port)](const std::string& host, std::uint16_t asked) {
    return asked == port->load() && net::IsThisMachine(host);
  };
}

IsOwnAddress OwnAddressOr(IsOwnAddress is_own,
                          const std::vector<std::pair<std::string, std::uint16_t>>& others) {
  std::set<std::pair<std::string, std::uint16_t>> known;
  for (const auto& [host, port] : others) {
    if (std::string plain = net::PlainAddress(host); !plain.empty()) {
      known.emplace(std::move(plain), port);
    }
  }
  return [is_own = std::move(is_own), known = std::move(known)](const std::string& host,
                                                                std::uint16_t port) {
    return is_own(host, port) || known.contains({net::PlainAddress(host), port});
  };
}

Result<void> CheckNodeCertificate(const net::PeerIdentity& server, const std::string& node) {
  constexpr std::string_view kNodeUser = "system:node:";
  if (!server.common_name.starts_with(kNodeUser) || server.common_name == StrCat(kNodeUser, node)) {
    return Ok();
  }
  return FailedPrecondition(StrCat("it was issued to ", Quote(server.common_name),
                                   ", and this should be node ", Quote(node)));
}

Result<std::string> NodeAgentUrl(const api::Object& node, const IsOwnAddress& is_own) {
  std::string host;
  for (api::Value address : node["status"]["addresses"].elements()) {
    if (address["type"].str() == "InternalIP" && host.empty()) host = address["address"].str();
  }
  if (host.empty()) {
    return FailedPrecondition(StrCat("node ", node.name(), " has no internal address"));
  }
  std::int64_t port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].integer();
  if (port <= 0 || port > 65535) port = kDefaultNodePort;
  switch (net::KindOfAddress(host)) {
    case net::AddressKind::kOther:
    case net::AddressKind::kLoopback:
      break;
    default:
      return FailedPrecondition(StrCat("node ", node.name(), " reports the address ", Quote(host),
                                       ", which is not a usable IP address"));
  }
  if (is_own && is_own(host, static_cast<std::uint16_t>(port))) {
    return FailedPrecondition(StrCat("node ", node.name(), " reports its agent at ", host, ":",
                                     port, ", which is this API server"));
  }
  if (host.find(':') != std::string::npos) host = StrCat("[", host, "]");
  return StrCat("https://", host, ":", port);
}

PodLogProxy::PodLogProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own)
    : loop_(loop), is_own_(std::move(is_own)), http_(loop, [&] {
        net::HttpClientOptions options = ClientOptions(std::move(tls));
        // The back-pressure of a log needs a connection of its own.
        options.tls.offer_http2 = false;
        options.max_connections_per_host = kMaxOpenPerNode;
        return options;
      }()) {}
PodLogProxy::~PodLogProxy() = default;

void PodLogProxy::Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                        std::shared_ptr<net::ResponseWriter> writer) {
  if (request.method != net::Method::kGet) {
    return Refuse(*writer,
                  MethodNotAllowedFailure(*info.kind, ToLower(net::MethodName(request.method))));
  }
  const api::ObjectPtr& pod = target.pod;
  if (pod == nullptr) return Refuse(*writer, NotFoundFailure(*info.kind, info.name));
  std::string container(request.query()->Get("container"));
  if (std::optional<Failure> failure = ChooseContainer(*pod, container)) {
    return Refuse(*writer, *failure);
  }
  const std::string node_name(pod->root()["spec"]["nodeName"].str());
  if (node_name.empty()) {
    return Refuse(*writer, api::StatusBadRequest(
                               StrCat("pod ", info.name, " does not have a host assigned")));
  }
  const api::ObjectPtr& node = target.node;
  if (node == nullptr) {
    return Refuse(*writer, NotFoundFailure(*api::FindKind("", "v1", "Node"), node_name));
  }
  Result<std::string> url = NodeAgentUrl(*node, is_own_);
  if (!url.ok()) return Refuse(*writer, api::StatusInternalError(url.error().message));
  std::shared_ptr<const void> place = open_.Enter(node_name, target.user.name);
  if (place == nullptr) {
    return Refuse(*writer,
                  api::StatusTooManyRequests("too many logs are being read, please try again later",
                                             /*retry_after_seconds=*/1));
  }
  net::ClientRequest ask;
  ask.peer = node_name;
  ask.url = StrCat(*url, "/containerLogs/", net::PercentEncode(info.namespace_), "/",
                   net::PercentEncode(info.name), "/", net::PercentEncode(container));
  if (!request.raw_query.empty()) ask.url += "?" + request.raw_query;
  std::make_shared<LogStream>(std::move(writer), node_name, std::move(place))
      ->Start(http_, loop_, std::move(ask));
}

NodeProxy::NodeProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own)
    : is_own_(std::move(is_own)), forwarder_(loop, ClientOptions(std::move(tls)).tls) {}
NodeProxy::~NodeProxy() = default;

std::optional<Verb> NodeProxy::AlsoNeeds(const net::ServerRequest& request) const {
  // A WebSocket starts with a GET, but permission to read must not be enough to run commands; nor
  // must that of another method, which an agent may take for one.
  if (request.method == net::Method::kPost || !IsUpgrade(request.headers)) return std::nullopt;
  return Verb::kCreate;
}

void NodeProxy::Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                      std::shared_ptr<net::ResponseWriter> writer) {
  const ProxyName asked = ParseProxyName(info.name).value_or(ProxyName{});
  const api::ObjectPtr& node = target.node;
  if (node == nullptr) return Refuse(*writer, NotFoundFailure(*info.kind, asked.name));
  Result<std::string> url = NodeAgentUrl(*node, is_own_);
  if (!url.ok()) return Refuse(*writer, api::StatusInternalError(url.error().message));
  // Who may use the agent need not be allowed to reach everything on its machine.
  if (!asked.port.empty() && !url->ends_with(StrCat(":", asked.port))) {
    return Refuse(*writer, api::StatusBadRequest(StrCat("port ", Quote(asked.port),
                                                        " is not that of the agent of node ",
                                                        Quote(node->name()))));
  }
  forwarder_.Forward({*std::move(url), std::string(node->name())}, info, target.user.name,
                     std::move(request), std::move(writer));
}

}  // namespace drakkar::apiserver
