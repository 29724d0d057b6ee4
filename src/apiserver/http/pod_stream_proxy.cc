#include "apiserver/http/pod_stream_proxy.h"

#include "api/scheme/scheme.h"
#include "apiserver/http/encode.h"
#include "apiserver/http/pod_containers.h"
#include "apiserver/http/port_forward_channels.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "net/http/url.h"
#include "net/websocket/handshake.h"
#include "net/websocket/session.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kMaxPending = 256 << 10;
constexpr Duration kUpgradeTimeout = std::chrono::seconds(30);
constexpr std::string_view kFeature = "ExtendWebSocketsToKubelet";

void Refuse(net::ResponseWriter& writer, const Failure& failure) {
  EncodedBody encoded = EncodeFailure(Negotiated{}, failure);
  writer.Send(failure.code, {{"Content-Type", encoded.content_type}}, std::move(encoded.body));
}

bool DeclaresWebSocket(const api::Object& node) {
  for (api::Value feature : node["status"]["declaredFeatures"].elements()) {
    if (feature.str() == kFeature) return true;
  }
  return false;
}

constexpr std::string_view kSpdy = "SPDY/3.1";
constexpr std::string_view kStreamVersion = "x-stream-protocol-version";
constexpr char kPortForward[] = "portforward.k8s.io";
// A WebSocket whose messages carry the bytes of a SPDY connection, and the older protocol, whose
// messages belong to channels.
constexpr std::string_view kForwardProtocols[] = {"SPDY/3.1+portforward.k8s.io", kPortChannels};

bool IsSpdyUpgrade(const net::Headers& headers) {
  return headers.HasToken("connection", "upgrade") &&
         net::EqualsIgnoreCase(headers.Get("upgrade"), kSpdy);
}

// The query for a kubelet's /exec and /attach, from that of the API.
std::string NodeQuery(const net::Query& query) {
  std::string text;
  auto add = [&](std::string_view name, std::string_view value) {
    text += StrCat(text.empty() ? "?" : "&", name, "=", net::PercentEncode(value));
  };
  for (const auto& [name, value] : query) {
    const bool is_set = value == "true" || value == "1";
    if (name == "command") add("command", value);
    if (name == "stdin" && is_set) add("input", "1");
    if (name == "stdout" && is_set) add("output", "1");
    if (name == "stderr" && is_set) add("error", "1");
    if (name == "tty" && is_set) add("tty", "1");
  }
  return text;
}

// One client and one node. Owns itself until either side is done. With `tunnel`, the client's
// WebSocket carries the bytes that the node exchanges; with `ports`, their connections in channels.
class Bridge final : public std::enable_shared_from_this<Bridge>,
                     private net::websocket::Session::Events {
 public:
  Bridge(EventLoop& loop, std::shared_ptr<net::ResponseWriter> writer, std::string node,
         std::shared_ptr<PodStreamProxy::Count> open, std::shared_ptr<const void> place,
         std::optional<net::websocket::Accepted> tunnel, std::vector<std::uint16_t> ports)
      : loop_(loop),
        writer_(std::move(writer)),
        node_(std::move(node)),
        open_(std::move(open)),
        place_(std::move(place)),
        tunnel_(std::move(tunnel)),
        ports_(std::move(ports)),
        // Server frames are not masked, so this randomness is never used.
        session_(net::websocket::Role::kServer, RealRandom(), *this) {
    ++*open_;
  }
  ~Bridge() override { --*open_; }

  void Start(net::HttpClient& http, net::ClientRequest request) {
    self_ = shared_from_this();
    writer_->OnClosed([weak = weak_from_this()](bool) {
      if (auto self = weak.lock(); self && !self->client_ && !self->channels_) self->End();
    });
    handle_ = http.Upgrade(std::move(request), [this](Result<net::UpgradedConnection> upgraded) {
      OnAnswer(std::move(upgraded));
    });
  }

 private:
  void OnAnswer(Result<net::UpgradedConnection> upgraded) {
    if (!upgraded.ok()) {
      Refuse(*writer_,
             api::StatusInternalError(StrCat("ask node ", node_, ": ", upgraded.error().message)));
      return End();
    }
    const net::Response& answer = upgraded->response;
    if (!upgraded->stream) {
      // The node's own status and message: clients know how to handle them.
      const std::string_view type = answer.headers.Get("content-type");
      writer_->Send(answer.status >= 400 ? answer.status : 502,
                    {{"Content-Type", type.empty() ? "text/plain" : std::string(type)}},
                    answer.body);
      return End();
    }
    net::Headers headers;
    if (tunnel_) {
      headers = tunnel_->headers;
    } else {
      for (const auto& [name, value] : answer.headers) {
        if (net::EqualsIgnoreCase(name, "upgrade") || net::EqualsIgnoreCase(name, kStreamVersion) ||
            ToLower(name).starts_with("sec-websocket-")) {
          headers.Add(name, value);
        }
      }
    }
    Result<std::unique_ptr<net::RawStream>> client = writer_->Upgrade(headers);
    if (!client.ok()) {
      Refuse(*writer_, api::StatusBadRequest(client.error().message));
      return End();
    }
    if (!ports_.empty()) {
      channels_ = std::make_unique<PortForwardChannels>(
          std::move(*client), std::move(upgraded->stream), ports_, [this] { End(); });
      return channels_->Start();
    }
    client_ = std::move(*client);
    node_stream_ = std::move(upgraded->stream);
    if (tunnel_) return ConnectTunnel();
    Connect(*client_, *node_stream_);
    Connect(*node_stream_, *client_);
  }

  void ConnectTunnel() {
    node_stream_->OnDrained([this] { client_->SetReading(true); });
    client_->OnDrained([this] { node_stream_->SetReading(true); });
    client_->Start(
        [this](std::string_view bytes) {
          session_.Receive(bytes);
          FlushTunnel();
          if (node_stream_->pending_bytes() > kMaxPending) client_->SetReading(false);
        },
        [this] { End(); });
    node_stream_->Start(
        [this](std::string_view bytes) {
          session_.Send(net::websocket::MessageType::kBinary, bytes);
          FlushTunnel();
          if (client_->pending_bytes() > kMaxPending) node_stream_->SetReading(false);
        },
        [this] {
          session_.Close(net::websocket::kNormalClosure);
          FlushTunnel();
          End();
        });
  }
  void OnMessage(net::websocket::MessageType, std::string_view payload) override {
    node_stream_->Write(payload);
  }
  void OnClose(std::uint16_t, std::string_view) override {
    FlushTunnel();
    End();
  }
  bool MayAnswerPing() const override { return client_->pending_bytes() < kMaxPending; }
  void FlushTunnel() {
    if (session_.has_output()) client_->Write(session_.TakeOutput());
  }

  // Forwards bytes from `from` to `to`, no faster than `to` reads.
  void Connect(net::RawStream& from, net::RawStream& to) {
    to.OnDrained([&from] { from.SetReading(true); });
    from.Start(
        [&from, &to](std::string_view bytes) {
          to.Write(bytes);
          if (to.pending_bytes() > kMaxPending) from.SetReading(false);
        },
        [this] { End(); });
  }

  void End() {
    if (self_ == nullptr) return;
    // Posted, because we may be inside a call of the object that this destroys.
    loop_.Post([self = std::move(self_)] {
      self->handle_.reset();
      self->channels_.reset();
      self->client_.reset();
      self->node_stream_.reset();
      self->writer_.reset();
    });
    self_ = nullptr;
  }

  EventLoop& loop_;
  std::shared_ptr<net::ResponseWriter> writer_;
  const std::string node_;
  const std::shared_ptr<PodStreamProxy::Count> open_;
  const std::shared_ptr<const void> place_;
  const std::optional<net::websocket::Accepted> tunnel_;
  const std::vector<std::uint16_t> ports_;
  std::unique_ptr<PortForwardChannels> channels_;
  net::websocket::Session session_;  // of the tunnel
  std::unique_ptr<net::RequestHandle> handle_;
  std::unique_ptr<net::RawStream> client_;
  std::unique_ptr<net::RawStream> node_stream_;
  std::shared_ptr<Bridge> self_;
};

}  // namespace

PodStreamProxy::PodStreamProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own,
                               std::shared_ptr<Count> open)
    : loop_(loop),
      is_own_(std::move(is_own)),
      http_(loop,
            [&] {
              net::HttpClientOptions options;
              options.tls = std::move(tls);
              options.tls.check_peer = CheckNodeCertificate;
              options.max_connections_per_host = kMaxStreamsPerNode;
              return options;
            }()),
      open_(std::move(open)) {}
PodStreamProxy::~PodStreamProxy() = default;

std::optional<Verb> PodStreamProxy::AlsoNeeds(const net::ServerRequest& request) const {
  // A WebSocket starts with a GET, but permission to read must not be enough to run commands.
  if (request.method != net::Method::kGet) return std::nullopt;
  const bool upgrades =
      net::websocket::IsUpgrade(request.headers) || IsSpdyUpgrade(request.headers);
  return upgrades ? std::optional(Verb::kCreate) : std::nullopt;
}

void PodStreamProxy::Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                           std::shared_ptr<net::ResponseWriter> writer) {
  auto refuse = [&](const Failure& failure) { Refuse(*writer, failure); };
  if (request.method != net::Method::kGet && request.method != net::Method::kPost) {
    return refuse(MethodNotAllowedFailure(*info.kind, ToLower(net::MethodName(request.method))));
  }
  const bool is_web_socket = net::websocket::IsUpgrade(request.headers);
  const bool forwards_ports = info.subresource == "portforward";
  const api::ObjectPtr& pod = target.pod;
  if (pod == nullptr) return refuse(NotFoundFailure(*info.kind, info.name));
  std::string container(request.query()->Get("container"));
  if (!forwards_ports) {
    if (std::optional<Failure> failure = ChooseContainer(*pod, container)) return refuse(*failure);
  }
  const std::string node_name(pod->root()["spec"]["nodeName"].str());
  if (node_name.empty()) {
    return refuse(
        api::StatusBadRequest(StrCat("pod ", info.name, " does not have a host assigned")));
  }
  const api::ObjectPtr& node = target.node;
  if (node == nullptr) {
    return refuse(NotFoundFailure(*api::FindKind("", "v1", "Node"), node_name));
  }
  if (!is_web_socket && !IsSpdyUpgrade(request.headers)) {
    return refuse(api::StatusBadRequest("Upgrade request required"));
  }
  // If nodes cannot declare features, the node's own response decides. Every node speaks SPDY.
  if (is_web_socket && !forwards_ports && target.nodes_declare_features &&
      !DeclaresWebSocket(*node)) {
    return refuse(api::StatusBadRequest(StrCat(
        "node ", node_name, " does not declare the feature ", kFeature, ": ", info.subresource,
        " over a WebSocket needs an agent that speaks it (Kubernetes 1.36 or newer,"
        " with the feature gates NodeDeclaredFeatures and ",
        kFeature, " on); SPDY works")));
  }
  if (is_web_socket && request.method != net::Method::kGet) {
    return refuse(api::StatusBadRequest("a WebSocket upgrade must be a GET request"));
  }
  std::shared_ptr<const void> place;
  if (*open_ < kMaxStreams) place = places_.Enter(node_name, target.user.name);
  if (place == nullptr) {
    return refuse(api::StatusTooManyRequests(
        "too many exec, attach and port-forward sessions on this server", 1));
  }
  Result<std::string> url = NodeAgentUrl(*node, is_own_);
  if (!url.ok()) return refuse(api::StatusInternalError(url.error().message));
  net::ClientRequest ask;
  ask.peer = node_name;
  ask.timeout = kUpgradeTimeout;
  std::optional<net::websocket::Accepted> tunnel;
  std::vector<std::uint16_t> ports;
  if (forwards_ports) {
    ask.url = StrCat(*url, "/portForward/", net::PercentEncode(info.namespace_), "/",
                     net::PercentEncode(info.name));
    if (is_web_socket) {
      Result<net::websocket::Accepted> accepted =
          net::websocket::Accept(request.headers, kForwardProtocols);
      if (!accepted.ok()) return refuse(api::StatusBadRequest(accepted.error().message));
      if (accepted->protocol == kPortChannels) {
        Result<std::vector<std::uint16_t>> asked = ForwardedPorts(*request.query());
        if (!asked.ok()) return refuse(api::StatusBadRequest(asked.error().message));
        ports = *std::move(asked);
      }
      tunnel = std::move(*accepted);
    }
  } else {
    ask.url = StrCat(*url, "/", info.subresource, "/", net::PercentEncode(info.namespace_), "/",
                     net::PercentEncode(info.name), "/", net::PercentEncode(container),
                     NodeQuery(*request.query()));
  }
  if (is_web_socket && !forwards_ports) {
    ask.headers = {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}};
    for (const auto& [name, value] : request.headers) {
      // No extensions: both ends must understand the frames.
      if (ToLower(name).starts_with("sec-websocket-") &&
          !net::EqualsIgnoreCase(name, "sec-websocket-extensions")) {
        ask.headers.Add(name, value);
      }
    }
  } else {
    ask.method = net::Method::kPost;
    ask.headers = {{"Connection", "Upgrade"}, {"Upgrade", std::string(kSpdy)}};
    ask.headers.Set("Content-Length", "0");
    if (tunnel) ask.headers.Add("X-Stream-Protocol-Version", kPortForward);
    for (const auto& [name, value] : request.headers) {
      if (net::EqualsIgnoreCase(name, kStreamVersion)) ask.headers.Add(name, value);
    }
  }
  std::make_shared<Bridge>(loop_, std::move(writer), node_name, open_, std::move(place),
                           std::move(tunnel), std::move(ports))
      ->Start(http_, std::move(ask));
}

}  // namespace drakkar::apiserver
