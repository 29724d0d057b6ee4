#include "net/server/connection.h"

#include "base/text/text.h"
#include "net/http1/server_session.h"
#include "net/http2/server_session.h"

namespace drakkar::net::server {
namespace {

// How much one connection sends per loop iteration before it yields to others.
constexpr std::size_t kFlushBytes = 256 * 1024;
constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0";
constexpr Duration kCloseTimeout = std::chrono::seconds(2);

}  // namespace

Connection::Connection(UvLoop& loop, const HttpServerOptions& options, ConnectionOwner& owner,
                       std::uint64_t id, std::unique_ptr<Socket> socket)
    : loop_(loop),
      options_(options),
      owner_(&owner),
      id_(id),
      info_(std::make_shared<ConnectionInfo>()) {
  info_->remote_address = socket->peer();
  info_->is_tls = options.tls != nullptr;
  transport_ = std::make_unique<Transport>(std::move(socket),
                                           options.tls ? TlsFilter::Accept(options.tls) : nullptr,
                                           static_cast<Transport::Handler&>(*this));
  since_ = loop.clock().Monotonic();
  stalled_since_ = since_;
}

Connection::~Connection() = default;

void Connection::Start() {
  const auto self = shared_from_this();
  transport_->Start();
}

void Connection::OnTransportReady() {
  if (!transport_->is_tls()) return;  // detect the protocol from the first bytes
  info_->peer = transport_->tls()->peer();
  info_->peer_error = transport_->tls()->peer_error();
  info_->proxy = transport_->tls()->proxy();
  MakeSession(transport_->alpn() == "h2");
  ScheduleFlush();
}

void Connection::MakeSession(bool http2) {
  info_->is_http2 = http2;
  session_ = http2 ? http2::NewServerSession(options_.limits, *this)
                   : http1::NewServerSession(options_.limits, *this);
  if (shutting_down_) session_->Shutdown();
}

void Connection::OnTransportData(std::string_view bytes) {
  const auto self = shared_from_this();
  if (closing_) return;
  active_ = true;
  std::string joined;
  if (!session_) {
    first_bytes_.append(bytes);
    const std::string_view seen = std::string_view(first_bytes_).substr(0, kHttp2Preface.size());
    const bool may_be_http2 = kHttp2Preface.starts_with(seen);
    if (may_be_http2 && seen.size() < kHttp2Preface.size()) return;
    MakeSession(may_be_http2);
    joined = std::move(first_bytes_);
    bytes = joined;
  }
  const Result<void> received = session_->Receive(bytes);
  ScheduleFlush();
  if (!received.ok()) FlushOutput();
  if (!transport_) return;
  if (!received.ok()) {
    Close();
  } else if (!raw_) {
    transport_->SetReading(session_->WantsRead());
  }
}

void Connection::OnTransportClosed(const Error*) {
  const auto self = shared_from_this();
  Close();
}

void Connection::OnTransportDrained() {
  ScheduleFlush();
}

void Connection::ScheduleFlush() {
  if (flush_scheduled_ || !owner_) return;
  flush_scheduled_ = true;
  owner_->flush_queue().Add(shared_from_this());
}

void Connection::FlushOutput() {
  const auto self = shared_from_this();
  flush_scheduled_ = false;
  if (!transport_ || !session_ || closing_) return;
  if (!transport_->CanWrite()) return;  // continues when the socket has drained
  session_->Send(out_, kFlushBytes);
  const bool more = out_.size() >= kFlushBytes;
  active_ = true;
  transport_->Write(out_);
  if (out_.capacity() > 2 * kFlushBytes) out_.shrink_to_fit();
  TellDrained();
  if (transport_ && raw_) raw_->Flushed();
  if (!transport_) return;
  if (session_->IsFinished() || (raw_closing_ && !more)) {
    closing_ = true;
    since_ = loop_.clock().Monotonic();
    phase_ = Phase::kClosing;
    transport_->SetReading(true);
    transport_->Shutdown();
    return;
  }
  if (more) {
    ScheduleFlush();
  } else if (!raw_) {
    transport_->SetReading(session_->WantsRead());
  }
}

void Connection::TellDrained() {
  for (StreamId id : std::exchange(draining_, {})) {
    auto found = writers_.find(id);
    if (found == writers_.end()) continue;
    if (session_->PendingBytes(id) > 0) {
      draining_.push_back(id);
    } else {
      found->second->Drained();
    }
  }
}

void Connection::OnRequest(StreamId stream, Request request) {
  if (!owner_) return;
  owner_->CountRequest();
  Result<Target> target =
      request.target == "*" ? Result<Target>(Target{"*", "*", ""}) : ParseTarget(request.target);
  if (!target.ok()) {
    session_->Respond(stream, 400, Headers{{"Content-Type", "text/plain; charset=utf-8"}},
                      Body{MakeSegment(target.error().message + "\n")}, true);
    return;
  }
  ServerRequest made;
  made.method = request.method;
  made.path = std::move(target->path);
  made.raw_path = std::move(target->raw_path);
  made.raw_query = std::move(target->raw_query);
  made.headers = std::move(request.headers);
  made.body = std::move(request.body);
  made.connection = info_;
  auto writer = std::make_shared<Writer>(weak_from_this(), stream, loop_);
  writers_[stream] = writer.get();
  owner_->handler().Handle(std::move(made), std::move(writer));
}

bool Connection::IsStranger() const {
  return !info_->peer && !info_->proxy && !info_->is_authenticated;
}

bool Connection::OnLargeBody(StreamId stream, const Request& head) {
  if (!owner_) return true;
  ServerRequest made;
  made.method = head.method;
  made.headers = head.headers;
  made.connection = info_;
  Result<Target> target =
      head.target == "*" ? Result<Target>(Target{"*", "*", ""}) : ParseTarget(head.target);
  // OnRequest reports what is wrong with the target.
  if (target.ok()) {
    made.path = std::move(target->path);
    made.raw_path = std::move(target->raw_path);
    made.raw_query = std::move(target->raw_query);
  }
  owner_->handler().CheckLargeBody(
      std::move(made),
      [weak = weak_from_this(), stream](std::optional<RequestHandler::Rejection> rejection) {
        const std::shared_ptr<Connection> self = weak.lock();
        if (!self || !self->session_ || !self->transport_) return;
        if (rejection) {
          self->session_->RejectBody(stream, rejection->status, rejection->headers,
                                     Body{MakeSegment(std::move(rejection->body))});
        } else {
          self->session_->ApproveBody(stream);
        }
        if (!self->transport_) return;
        self->ScheduleFlush();
        if (!self->raw_) self->transport_->SetReading(self->session_->WantsRead());
      });
  return false;
}

void Connection::OnStreamClosed(StreamId stream, bool completed) {
  auto found = writers_.find(stream);
  if (found == writers_.end()) return;
  Writer* writer = found->second;
  writers_.erase(found);
  writer->Closed(completed);
}

void Connection::OnRawData(std::string_view bytes) {
  if (raw_) raw_->Deliver(bytes);
}

void Connection::Respond(StreamId stream, int status, const Headers& headers, Body body,
                         bool final) {
  if (!session_ || !owner_) return;
  if (headers.Find("date")) {
    session_->Respond(stream, status, headers, std::move(body), final);
  } else {
    Headers dated = headers;
    dated.Add("Date", owner_->DateText());
    session_->Respond(stream, status, dated, std::move(body), final);
  }
  ScheduleFlush();
}

void Connection::Write(StreamId stream, Segment bytes) {
  if (!session_ || !owner_) return;
  session_->Write(stream, std::move(bytes));
  ScheduleFlush();
}

void Connection::Finish(StreamId stream) {
  if (!session_ || !owner_) return;
  session_->Finish(stream);
  ScheduleFlush();
}

void Connection::Reset(StreamId stream) {
  if (!session_ || !owner_) return;
  session_->Reset(stream);
  ScheduleFlush();
}

std::size_t Connection::PendingBytes(StreamId stream) const {
  return session_ && transport_ ? session_->PendingBytes(stream) : 0;
}

std::unique_ptr<RawStream> Connection::Upgrade(StreamId stream, const Headers& headers) {
  if (!session_ || !owner_) return nullptr;
  auto end = std::make_unique<RawStreamEnd>(std::weak_ptr<RawEndpoint>(shared_from_this()));
  raw_ = end.get();
  if (!session_->Upgrade(stream, headers)) {
    raw_ = nullptr;
    return nullptr;
  }
  ScheduleFlush();
  return end;
}

void Connection::RawWrite(std::string_view bytes) {
  if (!transport_ || !raw_) return;
  session_->WriteRaw(bytes);
  ScheduleFlush();
}

std::size_t Connection::RawPendingBytes() const {
  return transport_ ? transport_->pending_bytes() + out_.size() + session_->PendingRawBytes() : 0;
}

void Connection::RawSetReading(bool reading) {
  if (transport_) transport_->SetReading(reading);
}

void Connection::RawClose() {
  raw_ = nullptr;
  raw_closing_ = true;
  ScheduleFlush();
}

void Connection::Shutdown() {
  if (shutting_down_) return;
  shutting_down_ = true;
  if (session_) {
    session_->Shutdown();
    ScheduleFlush();
  } else {
    Close();
  }
}

void Connection::Close() {
  if (!transport_) return;
  const auto self = shared_from_this();
  transport_.reset();
  ConnectionOwner* owner = std::exchange(owner_, nullptr);
  // A callback may drop other writers of this connection; each then removes itself from the list.
  while (!writers_.empty()) {
    auto first = writers_.begin();
    Writer* writer = first->second;
    writers_.erase(first);
    writer->Closed(false);
  }
  if (raw_) std::exchange(raw_, nullptr)->Closed();
  if (owner) owner->OnConnectionClosed(id_);
}

// A connection in use keeps its buffers: reallocating them costs as much as the rest of a small
// request's TLS. One that was idle since the last check releases them.
void Connection::ReleaseIdleBuffers() {
  if (std::exchange(active_, false)) return;
  transport_->ReleaseBuffers();
  if (out_.empty()) out_ = std::string();
}

void Connection::CheckTimeouts(MonotonicTime now) {
  if (!transport_) return;
  ReleaseIdleBuffers();
  if (session_) session_->Forgive();
  const StreamId receiving = session_ ? session_->ReceivingStream() : 0;
  Phase phase = Phase::kHandshake;
  if (closing_) {
    phase = Phase::kClosing;
  } else if (session_) {
    phase = receiving != 0                  ? Phase::kReceiving
            : session_->open_streams() == 0 ? Phase::kIdle
                                            : Phase::kBusy;
  }
  if (phase != phase_ || receiving != receiving_) {
    phase_ = phase;
    receiving_ = receiving;
    since_ = now;
  }
  const std::uint64_t written = transport_->total_written();
  // An upgraded connection handles slow readers itself.
  if (transport_->pending_bytes() == 0 || written != written_before_ || raw_) stalled_since_ = now;
  written_before_ = written;
  const Duration passed = now - since_;
  const bool over = (phase == Phase::kHandshake && passed >= options_.handshake_timeout) ||
                    (phase == Phase::kReceiving && passed >= options_.request_timeout) ||
                    (phase == Phase::kIdle && passed >= options_.idle_timeout) ||
                    (phase == Phase::kClosing && passed >= kCloseTimeout) ||
                    now - stalled_since_ >= options_.stall_timeout;
  if (!over) return;
  if (phase == Phase::kIdle && !shutting_down_) {
    Shutdown();  // GOAWAY first, so that a request in flight is safe to retry
  } else {
    Close();
  }
}

Writer::~Writer() {
  auto connection = connection_.lock();
  if (!connection) return;
  connection->Forget(stream_);
  if (closed_) return;
  if (state_ == State::kWaiting) {
    connection->Respond(stream_, 500, Headers{{"Content-Type", "text/plain; charset=utf-8"}},
                        Body{MakeSegment("the request was dropped without a response\n")}, true);
  } else if (state_ == State::kStreaming) {
    connection->Reset(stream_);
  }
}

void Writer::Send(int status, const Headers& headers, Body body) {
  loop_.AssertInLoop();
  if (state_ != State::kWaiting) return;
  state_ = State::kAnswered;
  if (auto connection = connection_.lock()) {
    connection->Respond(stream_, status, headers, std::move(body), true);
  }
}

void Writer::StartStream(int status, const Headers& headers) {
  loop_.AssertInLoop();
  if (state_ != State::kWaiting) return;
  state_ = State::kStreaming;
  if (auto connection = connection_.lock())
    connection->Respond(stream_, status, headers, {}, false);
}

void Writer::Write(Segment bytes) {
  loop_.AssertInLoop();
  if (state_ != State::kStreaming || closed_) return;
  if (auto connection = connection_.lock()) {
    connection->Write(stream_, std::move(bytes));
    AwaitDrain(*connection);
  }
}

void Writer::OnDrained(std::function<void()> callback) {
  loop_.AssertInLoop();
  on_drained_ = std::move(callback);
  auto connection = connection_.lock();
  if (connection && !closed_ && pending_bytes() > 0) AwaitDrain(*connection);
}

void Writer::AwaitDrain(Connection& connection) {
  if (awaiting_drain_ || !on_drained_) return;
  awaiting_drain_ = true;
  connection.AwaitDrain(stream_);
}

void Writer::Finish() {
  loop_.AssertInLoop();
  if (state_ != State::kStreaming) return;
  state_ = State::kAnswered;
  if (auto connection = connection_.lock()) connection->Finish(stream_);
}

void Writer::Abort() {
  loop_.AssertInLoop();
  if (state_ != State::kStreaming) return;
  state_ = State::kAnswered;
  if (auto connection = connection_.lock()) connection->Reset(stream_);
}

std::size_t Writer::pending_bytes() const {
  auto connection = connection_.lock();
  return connection && !closed_ ? connection->PendingBytes(stream_) : 0;
}

Result<std::unique_ptr<RawStream>> Writer::Upgrade(const Headers& headers) {
  loop_.AssertInLoop();
  auto connection = connection_.lock();
  if (!connection || state_ != State::kWaiting) return Unavailable("the connection is gone");
  std::unique_ptr<RawStream> raw = connection->Upgrade(stream_, headers);
  if (!raw) return InvalidArgument("the request cannot be upgraded");
  state_ = State::kAnswered;
  return raw;
}

void Writer::Closed(bool completed) {
  closed_ = true;
  on_drained_ = nullptr;
  if (on_closed_) std::exchange(on_closed_, nullptr)(completed);
}

void Writer::Drained() {
  awaiting_drain_ = false;
  if (on_drained_) {
    auto call = on_drained_;
    call();
  }
}

}  // namespace drakkar::net::server
