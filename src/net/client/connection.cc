#include "net/client/connection.h"

#include "base/text/text.h"
#include "net/http1/client_session.h"
#include "net/http2/client_session.h"

namespace drakkar::net::client {
namespace {

constexpr std::size_t kFlushBytes = 256 * 1024;
constexpr int kMaxAttempts = 3;

}  // namespace

void Call::End(Result<void> result) {
  if (over) return;
  over = true;
  timeout.reset();
  StreamSink* told = std::exchange(sink, nullptr);
  if (!told) return;
  if (result.ok()) {
    told->OnEnd(Ok());
  } else {
    told->OnEnd(result.error().Prefixed(StrCat(MethodName(method), " ", url)));
  }
}

Connection::Connection(UvLoop& loop, const HttpClientOptions& options, ConnectionOwner& owner,
                       Url url, std::string peer, std::shared_ptr<const TlsContext> tls)
    : loop_(loop),
      options_(options),
      owner_(&owner),
      url_(std::move(url)),
      peer_(std::move(peer)),
      tls_(std::move(tls)) {}

Connection::~Connection() = default;

void Connection::Start() {
  const std::weak_ptr<Connection> weak = weak_from_this();
  Address address;
  address.host = url_.host;
  address.port = url_.port;
  address.unix_path = options_.unix_path;
  if (proxy) {
    address.host = proxy->host;
    address.port = proxy->port;
  }
  connect_timeout_ = loop_.RunAfter(options_.connect_timeout, [this, address] {
    Close(Error{ErrorCode::kDeadlineExceeded,
                StrCat("connect to ", address.ToText(), ": timed out")});
  });
  connector_ = Connector::Start(loop_, address, [weak](Result<std::unique_ptr<Socket>> socket) {
    const auto self = weak.lock();
    if (!self || !self->owner_) return;
    if (!socket.ok()) return self->Close(socket.error());
    if (self->options_.unacknowledged_timeout > Duration(0)) {
      (*socket)->LimitUnacknowledged(self->options_.unacknowledged_timeout);
    }
    if (!self->proxy || self->tls_ == nullptr) return self->OnSocket(*std::move(socket));
    self->tunnel_ = std::make_unique<Tunnel>(
        *std::move(socket), Address{self->url_.host, self->url_.port, ""}.ToText(), *self->proxy,
        [weak](Result<std::unique_ptr<Socket>> tunnelled) {
          const auto owner = weak.lock();
          if (!owner || !owner->owner_) return;
          if (!tunnelled.ok()) return owner->Close(tunnelled.error());
          owner->OnSocket(*std::move(tunnelled));
          owner->tunnel_.reset();
        });
    self->tunnel_->Start();
  });
}

void Connection::OnSocket(std::unique_ptr<Socket> socket) {
  transport_ = std::make_unique<Transport>(
      std::move(socket), tls_ ? TlsFilter::Connect(tls_, url_.host, peer_) : nullptr,
      static_cast<Transport::Handler&>(*this));
  transport_->Start();
}

void Connection::OnTransportReady() {
  const auto self = shared_from_this();
  connect_timeout_.reset();
  http2_ = transport_->is_tls() ? transport_->alpn() == "h2" : options_.http2_prior_knowledge;
  const SessionLimits limits;
  session_ =
      http2_ ? http2::NewClientSession(limits, *this) : http1::NewClientSession(limits, *this);
  last_received_ = idle_since_ = loop_.clock().Monotonic();
  ScheduleFlush();
  owner_->OnConnectionReady(*this);
}

bool Connection::CanSubmit() const {
  return owner_ && session_ && session_->CanSubmit();
}

void Connection::Submit(CallPtr call) {
  ++call->attempts;
  call->response_started = false;
  if (calls_.empty()) last_received_ = loop_.clock().Monotonic();
  Result<StreamId> stream = session_->Submit(call->request, url_.scheme);
  if (!stream.ok()) {
    // Not from within the caller's call.
    loop_.Post([call, error = stream.error()] { call->End(error); });
    return;
  }
  call->connection = this;
  call->stream = *stream;
  calls_[*stream] = std::move(call);
  ScheduleFlush();
}

void Connection::Cancel(Call& call) {
  const auto self = shared_from_this();
  const StreamId stream = call.stream;
  call.connection = nullptr;
  if (calls_.erase(stream) == 0 || !session_) return;
  session_->Cancel(stream);
  room_ = true;
  ScheduleFlush();  // sends follow-up data outside of session events
}

void Connection::SetReading(const Call& call, bool reading) {
  if (!http2_ && transport_ && calls_.contains(call.stream)) transport_->SetReading(reading);
}

void Connection::ScheduleFlush() {
  if (flush_scheduled_ || !owner_) return;
  flush_scheduled_ = true;
  owner_->flush_queue().Add(shared_from_this());
}

void Connection::FlushOutput() {
  const auto self = shared_from_this();
  flush_scheduled_ = false;
  if (!transport_ || !session_ || !owner_) return;
  if (transport_->CanWrite()) {
    active_ = true;
    session_->Send(out_, kFlushBytes);
    const bool more = out_.size() >= kFlushBytes;
    transport_->Write(out_);
    if (more) {
      ScheduleFlush();
    } else if (raw_closing_) {
      transport_->Shutdown();
      return;
    }
    if (raw_) raw_->Flushed();
  }
  AfterEvents();
}

// Runs what must not run inside a session event.
void Connection::AfterEvents() {
  if (!owner_ || !session_) return;
  if (calls_.empty() && !raw_ && session_->IsFinished()) {
    Close(Unavailable("the connection is finished"));
    return;
  }
  if (std::exchange(room_, false)) {
    if (calls_.empty()) idle_since_ = loop_.clock().Monotonic();
    owner_->OnConnectionRoom(*this);
  }
}

void Connection::OnTransportData(std::string_view bytes) {
  const auto self = shared_from_this();
  if (!owner_ || raw_closing_) return;
  active_ = true;
  last_received_ = loop_.clock().Monotonic();
  pinged_ = false;
  const Result<void> received = session_->Receive(bytes);
  if (!owner_) return;
  ScheduleFlush();
  if (!received.ok()) Close(received.error());
}

void Connection::OnTransportClosed(const Error* error) {
  const auto self = shared_from_this();
  if (!owner_) return;
  if (session_) session_->ReceiveEnd();
  Close(error ? *error : Unavailable("the server closed the connection"));
}

void Connection::OnResponse(StreamId stream, int status, Headers headers) {
  served_ = true;
  auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  const CallPtr call = found->second;
  call->response_started = true;
  if (status == 101 && call->on_upgrade) {
    auto end = std::make_unique<RawStreamEnd>(std::weak_ptr<RawEndpoint>(shared_from_this()));
    raw_ = end.get();
    calls_.erase(found);
    call->connection = nullptr;
    call->timeout.reset();
    if (call->sink) call->sink->OnResponse(status, headers);
    call->on_upgrade(std::move(end));
    return;
  }
  if (call->sink) call->sink->OnResponse(status, headers);
}

void Connection::OnData(StreamId stream, std::string_view bytes) {
  auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  const CallPtr call = found->second;
  if (call->sink) call->sink->OnData(bytes);
}

void Connection::OnStreamEnd(StreamId stream, const Error* error, bool unprocessed) {
  auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  const CallPtr call = std::move(found->second);
  calls_.erase(found);
  call->connection = nullptr;
  room_ = true;
  // The next response is read, whatever became of this one.
  if (!http2_ && transport_) transport_->SetReading(true);
  if (error && unprocessed && !call->response_started && call->attempts < kMaxAttempts && owner_) {
    owner_->OnRetry(*this, call);
  } else if (error) {
    call->End(*error);
  } else {
    call->End(Ok());
  }
}

void Connection::OnRawData(std::string_view bytes) {
  if (raw_) raw_->Deliver(bytes);
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

void Connection::Abandon() {
  owner_ = nullptr;
  connector_.reset();
  tunnel_.reset();
  connect_timeout_.reset();
  transport_.reset();
  for (auto& [stream, call] : calls_) {
    call->connection = nullptr;
    call->over = true;
    call->sink = nullptr;
    call->timeout.reset();
  }
  calls_.clear();
  if (raw_) std::exchange(raw_, nullptr)->Closed();
}

void Connection::Close(const Error& error) {
  if (!owner_) return;
  const auto self = shared_from_this();
  const Error why = error;  // may belong to an object destroyed below
  ConnectionOwner* owner = std::exchange(owner_, nullptr);
  const bool was_ready = is_ready();
  auto calls = std::move(calls_);
  calls_.clear();
  connector_.reset();
  tunnel_.reset();
  connect_timeout_.reset();
  transport_.reset();
  std::vector<CallPtr> failed;
  for (auto& [stream, call] : calls) {
    call->connection = nullptr;
    const bool safe =
        !call->response_started && served_ && IsIdempotent(call->method) && call->attempts < 2;
    if (safe) {
      owner->OnRetry(*this, call);
    } else {
      failed.push_back(call);
    }
  }
  owner->OnConnectionClosed(*this, was_ready ? nullptr : &why);
  for (const CallPtr& call : failed) call->End(why);
  if (raw_) std::exchange(raw_, nullptr)->Closed();
}

void Connection::Check(MonotonicTime now) {
  if (!owner_ || !session_ || raw_) return;
  if (!std::exchange(active_, false)) {
    transport_->ReleaseBuffers();
    if (out_.empty()) out_ = std::string();
  }
  if (calls_.empty()) {
    if (now - idle_since_ >= options_.idle_timeout) {
      session_->Shutdown();
      FlushOutput();
      Close(Unavailable("idle"));
    }
    return;
  }
  if (!http2_) return;
  if (pinged_) {
    if (now - pinged_at_ >= options_.ping_timeout) {
      Close(Unavailable("the server did not answer a ping"));
    }
  } else if (now - last_received_ >= options_.ping_after) {
    pinged_ = true;
    pinged_at_ = now;
    session_->Ping();
    ScheduleFlush();
  }
}

}  // namespace drakkar::net::client
