#include "apiserver/http/tunnel.h"

#include "api/meta/status.h"
#include "apiserver/http/forwarding.h"
#include "net/http/raw_stream.h"

namespace drakkar::apiserver {
namespace {

// Owns itself until either side is done.
class Tunnel final : public std::enable_shared_from_this<Tunnel> {
 public:
  explicit Tunnel(TunnelOptions options)
      : loop_(options.loop),
        http_(options.http),
        unreachable_(std::move(options.unreachable)),
        writer_(std::move(options.writer)),
        place_(std::move(options.place)) {}

  void Start(net::ClientRequest request) {
    self_ = shared_from_this();
    writer_->OnClosed([weak = weak_from_this()](bool) {
      if (auto self = weak.lock(); self && !self->client_) self->End();
    });
    handle_ = http_.Upgrade(std::move(request), [this](Result<net::UpgradedConnection> upgraded) {
      OnAnswer(std::move(upgraded));
    });
  }

 private:
  void OnAnswer(Result<net::UpgradedConnection> upgraded) {
    if (!upgraded.ok()) {
      Refuse(*writer_, unreachable_(upgraded.error().message));
      return End();
    }
    const net::Response& answer = upgraded->response;
    if (!upgraded->stream) {
      // The server's own refusal: clients know how to handle it.
      const int status = answer.status >= 400 || answer.status == 200 ? answer.status : 502;
      writer_->Send(status, HeadersOfAnswer(answer.headers), answer.body);
      return End();
    }
    net::Headers headers = HeadersOfAnswer(answer.headers);
    headers.Set("Upgrade", std::string(answer.headers.Get("upgrade")));
    Result<std::unique_ptr<net::RawStream>> client = writer_->Upgrade(headers);
    if (!client.ok()) {
      Refuse(*writer_, api::StatusBadRequest(client.error().message));
      return End();
    }
    client_ = std::move(*client);
    server_ = std::move(upgraded->stream);
    Connect(*client_, *server_);
    Connect(*server_, *client_);
  }

  void Connect(net::RawStream& from, net::RawStream& to) {
    to.OnDrained([&from] { from.SetReading(true); });
    from.Start(
        [&from, &to](std::string_view bytes) {
          to.Write(bytes);
          if (to.pending_bytes() > kMaxUnsentInTunnel) from.SetReading(false);
        },
        [this] { End(); });
  }

  void End() {
    // Posted, because we may be inside a call of the request that this destroys.
    if (self_ == nullptr) return;
    loop_.Post([self = std::move(self_)] {
      self->handle_.reset();
      self->client_.reset();
      self->server_.reset();
      self->writer_.reset();
      self->place_.reset();
    });
    self_ = nullptr;
  }

  EventLoop& loop_;
  net::HttpClient& http_;
  const std::function<Failure(std::string_view why)> unreachable_;
  std::shared_ptr<net::ResponseWriter> writer_;
  std::shared_ptr<const void> place_;
  std::unique_ptr<net::RequestHandle> handle_;
  std::unique_ptr<net::RawStream> client_;
  std::unique_ptr<net::RawStream> server_;
  std::shared_ptr<Tunnel> self_;
};

}  // namespace

void OpenTunnel(TunnelOptions options) {
  net::ClientRequest request = std::move(options.request);
  std::make_shared<Tunnel>(std::move(options))->Start(std::move(request));
}

}  // namespace drakkar::apiserver
