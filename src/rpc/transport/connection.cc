#include "rpc/transport/connection.h"

#include <utility>

namespace drakkar::rpc {
namespace {

// How much one connection sends per loop iteration before it yields to others.
constexpr std::size_t kFlushBytes = 256 * 1024;

}  // namespace

Connection::Connection(std::shared_ptr<LoopContext> context, std::unique_ptr<net::Socket> socket,
                       std::unique_ptr<net::TlsFilter> tls)
    : context_(std::move(context)),
      transport_(std::make_unique<net::Transport>(std::move(socket), std::move(tls),
                                                  static_cast<net::Transport::Handler&>(*this))) {}

Connection::~Connection() = default;

void Connection::Start() {
  transport_->Start();
}

void Connection::OnTransportReady() {
  const std::shared_ptr<Connection> self = shared_from_this();
  // gRPC needs HTTP/2, which over TLS is negotiated.
  if (transport_->is_tls() && transport_->alpn() != "h2") {
    return Lose("TLS: the server did not negotiate HTTP/2");
  }
  ready_ = true;
  ScheduleFlush();
}

void Connection::ScheduleFlush() {
  if (flush_scheduled_ || !IsOpen()) return;
  flush_scheduled_ = true;
  context_->flush_queue.Add(shared_from_this());
}

void Connection::FlushOutput() {
  const std::shared_ptr<Connection> self = shared_from_this();
  flush_scheduled_ = false;
  // Continues when the handshake is done or the socket has drained.
  if (!IsOpen() || !ready_ || transport_->pending_bytes() > 0) return;
  Send(out_, kFlushBytes);
  const bool more = out_.size() >= kFlushBytes;
  transport_->Write(out_);
  if (out_.capacity() > 2 * kFlushBytes) out_.shrink_to_fit();
  Dispatch();
  if (!IsOpen()) return;
  if (more) {
    ScheduleFlush();
  } else if (IsFinished() && transport_->pending_bytes() == 0) {
    Lose("");
  }
}

void Connection::OnTransportData(std::string_view bytes) {
  const std::shared_ptr<Connection> self = shared_from_this();
  const Result<void> received = Receive(bytes);
  Dispatch();
  if (!IsOpen()) return;
  if (received.ok()) return ScheduleFlush();
  FlushOutput();  // tells the peer why
  Lose(received.error().message);
}

void Connection::OnTransportClosed(const Error* error) {
  const std::shared_ptr<Connection> self = shared_from_this();
  Lose(error == nullptr ? "" : error->message);
}

void Connection::Close() {
  if (!IsOpen()) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  transport_.reset();
  const std::shared_ptr<LoopContext> context = std::move(context_);
  context->lingering.erase(this);
}

void Connection::Lose(std::string why) {
  if (!IsOpen()) return;
  Close();
  OnLost(why);
}

void Connection::CloseGently() {
  const std::shared_ptr<Connection> self = shared_from_this();
  FlushOutput();
  if (!IsOpen()) return;
  if (!context_->may_linger) return Close();
  LoopContext::Lingering& entry = context_->lingering[this];
  entry.connection = self;
  entry.timer = context_->loop.RunAfter(kStopGrace, [this] { Close(); });
}

}  // namespace drakkar::rpc
