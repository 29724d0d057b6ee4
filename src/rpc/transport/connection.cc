#include "rpc/transport/connection.h"

#include <utility>

namespace drakkar::rpc {
namespace {

// How much one connection sends per iteration of the loop before others have their turn.
constexpr std::size_t kFlushBytes = 256 * 1024;

}  // namespace

Connection::Connection(std::shared_ptr<LoopContext> context, std::unique_ptr<net::Socket> socket)
    : context_(std::move(context)), socket_(std::move(socket)) {}

Connection::~Connection() = default;

void Connection::Start() {
  socket_->Start(*this);
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
  if (!IsOpen() || socket_->pending_bytes() > 0) return;  // continues when the socket has drained
  Send(out_, kFlushBytes);
  const bool more = out_.size() >= kFlushBytes;
  socket_->Write(out_);
  if (out_.capacity() > 2 * kFlushBytes) out_.shrink_to_fit();
  Dispatch();
  if (!IsOpen()) return;
  if (more) {
    ScheduleFlush();
  } else if (IsFinished() && socket_->pending_bytes() == 0) {
    Lose();
  }
}

void Connection::OnSocketData(std::string_view bytes) {
  const std::shared_ptr<Connection> self = shared_from_this();
  const Result<void> received = Receive(bytes);
  Dispatch();
  if (!IsOpen()) return;
  if (received.ok()) return ScheduleFlush();
  FlushOutput();  // the peer is told why
  Lose();
}

void Connection::OnSocketClosed(const Error*) {
  const std::shared_ptr<Connection> self = shared_from_this();
  Lose();
}

void Connection::Close() {
  if (!IsOpen()) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  socket_.reset();
  const std::shared_ptr<LoopContext> context = std::move(context_);
  context->lingering.erase(this);
}

void Connection::Lose() {
  if (!IsOpen()) return;
  Close();
  OnLost();
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
