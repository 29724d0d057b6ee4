#include "rpc/transport/grpc_channel.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/text/text.h"
#include "rpc/grpc/client_session.h"
#include "rpc/transport/connection.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

// A lost connection is re-established at once, unless the peer dropped this many in a row within a
// second of their start: then the initial backoff applies.
constexpr int kMaxQuickLosses = 3;
constexpr Duration kQuickLoss = std::chrono::seconds(1);
// Concurrent calls of one channel, waiting ones included. Beyond it: ResourceExhausted.
constexpr std::size_t kMaxCalls = 10'000;
constexpr std::size_t kMaxSocketPathBytes = 107;

// Longer timeouts are shortened to this.
constexpr Duration kMaxTimeout = std::chrono::years(1);

class ClientConnection;

struct ClientCall {
  std::string method;
  Metadata metadata;
  std::vector<std::string> messages;  // to be sent once there is a connection
  bool finished_sending = false;      // no more messages follow
  std::optional<MonotonicTime> deadline;
  TimerHandle timer;
  absl::AnyInvocable<void(CallResult)> done;  // unary
  std::shared_ptr<StreamCallbacks> stream;    // streaming
  std::optional<std::string> response;        // unary
  std::uint64_t waiting_id = 0;               // while it has no connection
  ClientConnection* connection = nullptr;     // while it is in flight
  grpc::StreamId stream_id = 0;
  bool over = false;  // no callback any more
};
using CallPointer = std::shared_ptr<ClientCall>;

// The channel; outlives its handle while one of its callbacks runs.
class ChannelState final : public std::enable_shared_from_this<ChannelState> {
 public:
  ChannelState(std::shared_ptr<LoopContext> context, ChannelOptions options)
      : context_(std::move(context)),
        options_(std::move(options)),
        backoff_({.initial = options_.initial_backoff,
                  .max = options_.max_backoff,
                  .factor = 1.6,
                  .jitter = 0.2},
                 &RealRandom()) {}

  void Open() {
    if (IsKept()) Connect();
  }
  void Close();
  void Begin(const CallPointer& call);
  void Send(const CallPointer& call, const std::string& message);
  void FinishSending(const CallPointer& call);
  // The caller cancels: no callback.
  void Cancel(const CallPointer& call);
  EventLoop& loop() { return context_->loop; }

  // Called by a connection.
  void OnReady(ClientConnection& connection);
  void OnGoingAway(ClientConnection& connection);
  void OnLost(ClientConnection& connection, const std::string& why);
  void OnMessage(const CallPointer& call, std::string message);
  void End(const CallPointer& call, Result<void> result, bool unprocessed);

 private:
  // A channel with a connection callback stays connected; others connect on the first call.
  bool IsKept() const { return options_.on_connection_change != nullptr; }
  net::Address ServerAddress() const;
  void Connect();
  void ConnectAfter(Duration delay);
  void Reconnect();
  void OnConnected(Result<std::unique_ptr<net::Socket>> socket);
  void OnConnectFailed(const std::string& why);
  void Submit(const CallPointer& call);
  void Wait(const CallPointer& call);
  void FailSoon(const CallPointer& call, const grpc::Status& status);
  void Forget(const CallPointer& call);
  void Report(bool connected);

  const std::shared_ptr<LoopContext> context_;
  const ChannelOptions options_;
  bool closed_ = false;
  std::map<std::uint64_t, CallPointer> waiting_;  // oldest first
  std::uint64_t next_waiting_id_ = 1;
  std::size_t open_calls_ = 0;

  // At most one of these: waiting to connect, dialling, connected or completing a handshake.
  TimerHandle retry_timer_;
  std::unique_ptr<net::Connector> connector_;
  std::shared_ptr<ClientConnection> connection_;
  TimerHandle connect_timer_;
  bool ready_ = false;    // connection_ accepts calls
  bool failing_ = false;  // the last attempt to connect failed with last_error_
  std::string last_error_;
  Backoff backoff_;
  MonotonicTime attempt_start_{};
  MonotonicTime ready_since_{};
  int quick_losses_ = 0;
  // Connections whose server is going away, until their calls have ended.
  std::unordered_map<ClientConnection*, std::shared_ptr<ClientConnection>> draining_;
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(const std::shared_ptr<LoopContext>& context, std::unique_ptr<net::Socket> socket,
                   std::unique_ptr<net::TlsFilter> tls, const ChannelOptions& options,
                   ChannelState& channel)
      : Connection(context, std::move(socket), std::move(tls)),
        loop_(context->loop),
        channel_(&channel),
        keepalive_interval_(options.keepalive_interval),
        keepalive_timeout_(options.keepalive_timeout),
        session_(grpc::NewClientSession(options.max_message_bytes)) {}

  grpc::ClientSession& session() { return *session_; }

  // The channel no longer needs this connection.
  void Drop() {
    channel_ = nullptr;
    keepalive_timer_.reset();
    Close();
  }

  std::map<grpc::StreamId, CallPointer> calls;

 private:
  Result<void> Receive(std::string_view bytes) override {
    last_received_ = loop_.clock().Monotonic();
    return session_->Receive(bytes);
  }
  void Send(std::string& out, std::size_t limit) override { session_->Send(out, limit); }
  bool IsFinished() const override { return session_->IsFinished(); }

  void Dispatch() override {
    // Any callback may end the channel.
    if (channel_ != nullptr && session_->IsReady() && !std::exchange(told_ready_, true)) {
      if (keepalive_interval_ > Duration(0)) CheckAliveAfter(keepalive_interval_);
      channel_->OnReady(*this);
    }
    if (channel_ != nullptr && session_->IsGoingAway() && !std::exchange(told_going_away_, true)) {
      channel_->OnGoingAway(*this);
    }
    for (grpc::ClientSession::Event& event : session_->TakeEvents()) {
      if (channel_ == nullptr) return;
      const auto found = calls.find(event.stream);
      if (found == calls.end()) continue;  // cancelled by an earlier callback
      const CallPointer call = found->second;
      if (event.message) {
        channel_->OnMessage(call, std::move(*event.message));
      } else if (event.status.code == grpc::kOk) {
        channel_->End(call, Ok(), false);
      } else {
        channel_->End(call, ErrorFromGrpcStatus(event.status.code, event.status.message),
                      event.unprocessed);
      }
    }
  }

  void OnLost(const std::string& why) override {
    keepalive_timer_.reset();
    if (channel_ != nullptr) channel_->OnLost(*this, why);
  }

  void CheckAliveAfter(Duration delay) {
    keepalive_timer_ = loop_.RunAfter(delay, [this] { CheckAlive(); });
  }

  void CheckAlive() {
    const Duration silent = loop_.clock().Monotonic() - last_received_;
    if (silent < keepalive_interval_) return CheckAliveAfter(keepalive_interval_ - silent);
    // Servers close connections that are pinged without calls.
    if (calls.empty()) return CheckAliveAfter(keepalive_interval_);
    session_->Ping();
    ScheduleFlush();
    keepalive_timer_ = loop_.RunAfter(keepalive_timeout_, [this, seen = last_received_] {
      if (last_received_ != seen) return CheckAliveAfter(keepalive_interval_);
      const std::shared_ptr<Connection> self = shared_from_this();
      const TimerHandle running = std::move(keepalive_timer_);
      Lose("the server does not answer pings");
    });
  }

  EventLoop& loop_;
  ChannelState* channel_;  // null once dropped
  const Duration keepalive_interval_;
  const Duration keepalive_timeout_;
  const std::unique_ptr<grpc::ClientSession> session_;
  MonotonicTime last_received_{};
  TimerHandle keepalive_timer_;
  bool told_ready_ = false;
  bool told_going_away_ = false;
};

void ChannelState::Close() {
  closed_ = true;
  retry_timer_.reset();
  connect_timer_.reset();
  connector_.reset();
  std::vector<CallPointer> calls;
  for (const auto& [id, call] : std::exchange(waiting_, {})) calls.push_back(call);
  if (connection_ != nullptr) draining_.emplace(connection_.get(), std::move(connection_));
  connection_ = nullptr;
  for (const auto& [key, connection] : std::exchange(draining_, {})) {
    for (const auto& [stream, call] : std::exchange(connection->calls, {})) calls.push_back(call);
    connection->Drop();
  }
  for (const CallPointer& call : calls) {
    call->over = true;
    call->connection = nullptr;
    call->timer.reset();
    call->done = nullptr;
    call->stream = nullptr;
  }
}

void ChannelState::Begin(const CallPointer& call) {
  ++open_calls_;
  if (open_calls_ > kMaxCalls) {
    return FailSoon(call, {grpc::kResourceExhausted,
                           StrCat("the channel has ", kMaxCalls, " calls in flight")});
  }
  for (const std::string& message : call->messages) {
    if (const std::optional<grpc::Status> refused = grpc::CheckMessageSize(message.size())) {
      return FailSoon(call, *refused);
    }
  }
  // gRPC's fail-fast: calls do not wait for a server that could not be reached just now.
  if (!ready_ && IsKept() && failing_) return FailSoon(call, {grpc::kUnavailable, last_error_});
  if (call->deadline) {
    call->timer = loop().RunAfter(*call->deadline - loop().clock().Monotonic(), [this, call] {
      const std::shared_ptr<ChannelState> self = shared_from_this();
      bool unprocessed = true;
      if (call->connection != nullptr) {
        unprocessed = !call->connection->session().WasSent(call->stream_id);
        call->connection->session().Cancel(call->stream_id);
        call->connection->ScheduleFlush();
      }
      End(call, ErrorFromGrpcStatus(grpc::kDeadlineExceeded, "Deadline Exceeded"), unprocessed);
    });
  }
  if (ready_) return Submit(call);
  Wait(call);
  Connect();
}

void ChannelState::Wait(const CallPointer& call) {
  call->waiting_id = next_waiting_id_++;
  waiting_.emplace(call->waiting_id, call);
}

void ChannelState::Submit(const CallPointer& call) {
  grpc::ClientSession::CallHead head{.method = call->method,
                                     .authority = options_.authority,
                                     .timeout = std::nullopt,
                                     .user_agent = options_.user_agent,
                                     .scheme = options_.tls == nullptr ? "http" : "https",
                                     .metadata = &call->metadata};
  if (call->deadline) head.timeout = *call->deadline - loop().clock().Monotonic();
  grpc::ClientSession& session = connection_->session();
  const Result<grpc::StreamId> stream = session.Open(head);
  connection_->ScheduleFlush();
  if (!stream.ok() && connection_->session().IsGoingAway()) return Wait(call);
  if (!stream.ok()) {
    return FailSoon(call, {GrpcCodeFromError(stream.error().code), stream.error().message});
  }
  call->stream_id = *stream;
  call->connection = connection_.get();
  connection_->calls.emplace(*stream, call);
  for (const std::string& message : std::exchange(call->messages, {})) {
    session.SendMessage(*stream, message);
  }
  if (call->finished_sending) session.FinishSending(*stream);
}

void ChannelState::Send(const CallPointer& call, const std::string& message) {
  if (call->over || call->finished_sending) return;
  if (call->connection != nullptr) {
    call->connection->session().SendMessage(call->stream_id, message);
    call->connection->ScheduleFlush();
    return;
  }
  if (call->messages.size() >= kMaxPendingMessages) {
    call->finished_sending = true;
    return FailSoon(call, {grpc::kResourceExhausted,
                           StrCat(kMaxPendingMessages, " messages wait for a connection")});
  }
  if (const std::optional<grpc::Status> refused = grpc::CheckMessageSize(message.size())) {
    call->finished_sending = true;
    return FailSoon(call, *refused);
  }
  call->messages.push_back(message);
}

void ChannelState::FinishSending(const CallPointer& call) {
  if (call->over || std::exchange(call->finished_sending, true)) return;
  if (call->connection == nullptr) return;
  call->connection->session().FinishSending(call->stream_id);
  call->connection->ScheduleFlush();
}

void ChannelState::FailSoon(const CallPointer& call, const grpc::Status& status) {
  call->timer.reset();
  loop().Post([weak = weak_from_this(), call,
               error = ErrorFromGrpcStatus(status.code, status.message)]() mutable {
    const std::shared_ptr<ChannelState> self = weak.lock();
    if (self != nullptr && !self->closed_) self->End(call, std::move(error), true);
  });
}

void ChannelState::Forget(const CallPointer& call) {
  call->over = true;
  --open_calls_;
  call->timer.reset();
  waiting_.erase(call->waiting_id);
  if (call->connection != nullptr) call->connection->calls.erase(call->stream_id);
  call->connection = nullptr;
}

void ChannelState::Cancel(const CallPointer& call) {
  if (call->over) return;
  if (call->connection != nullptr) {
    call->connection->session().Cancel(call->stream_id);
    call->connection->ScheduleFlush();
  }
  Forget(call);
  call->done = nullptr;
  // This may run inside its own on_message.
  const std::shared_ptr<StreamCallbacks> keep = std::move(call->stream);
}

void ChannelState::OnMessage(const CallPointer& call, std::string message) {
  const std::shared_ptr<ChannelState> self = shared_from_this();
  if (call->stream != nullptr) {
    // A copy, because the callback may end the stream.
    const std::shared_ptr<StreamCallbacks> stream = call->stream;
    if (stream->on_message) stream->on_message(std::move(message));
  } else if (call->response) {
    call->connection->session().Cancel(call->stream_id);
    call->connection->ScheduleFlush();
    End(call, ErrorFromGrpcStatus(grpc::kInternal, "more than one response message"), false);
  } else {
    call->response = std::move(message);
  }
}

void ChannelState::End(const CallPointer& call, Result<void> result, bool unprocessed) {
  if (call->over) return;
  const std::shared_ptr<ChannelState> self = shared_from_this();
  const CallPointer held = call;
  Forget(held);
  if (held->stream != nullptr) {
    const std::shared_ptr<StreamCallbacks> stream = std::move(held->stream);
    if (stream->on_end) stream->on_end(std::move(result));
    return;
  }
  auto done = std::move(held->done);
  if (!result.ok()) return done({std::move(result).error(), unprocessed});
  if (!held->response) {
    return done({ErrorFromGrpcStatus(grpc::kInternal, "no response message")});
  }
  done({std::move(*held->response)});
}

net::Address ChannelState::ServerAddress() const {
  if (!options_.host.empty())
    return {.host = options_.host, .port = options_.port, .unix_path = ""};
  return {.host = "", .port = 0, .unix_path = options_.socket_path};
}

void ChannelState::Connect() {
  if (connector_ != nullptr || connection_ != nullptr) return;
  retry_timer_.reset();
  attempt_start_ = loop().clock().Monotonic();
  connect_timer_ = loop().RunAfter(options_.connect_timeout, [this] {
    const std::shared_ptr<ChannelState> self = shared_from_this();
    OnConnectFailed("the server does not answer");
  });
  if (options_.host.empty() &&
      (options_.socket_path.empty() || options_.socket_path.size() > kMaxSocketPathBytes)) {
    connect_timer_ = loop().RunAfter(Duration(0), [this] {
      const std::shared_ptr<ChannelState> self = shared_from_this();
      OnConnectFailed("not a valid socket path");
    });
    return;
  }
  connector_ = net::Connector::Start(
      context_->loop, ServerAddress(),
      [this](Result<std::unique_ptr<net::Socket>> socket) { OnConnected(std::move(socket)); });
}

void ChannelState::OnConnected(Result<std::unique_ptr<net::Socket>> socket) {
  const std::shared_ptr<ChannelState> self = shared_from_this();
  connector_.reset();
  if (!socket.ok()) {
    // The message also names the path.
    const std::string& message = socket.error().message;
    return OnConnectFailed(message.substr(message.rfind(": ") + 2));
  }
  if (options_.unacknowledged_timeout > Duration(0)) {
    (*socket)->LimitUnacknowledged(options_.unacknowledged_timeout);
  }
  std::unique_ptr<net::TlsFilter> tls;
  if (options_.tls != nullptr) tls = net::TlsFilter::Connect(options_.tls, options_.host);
  connection_ = std::make_shared<ClientConnection>(context_, *std::move(socket), std::move(tls),
                                                   options_, *this);
  connection_->Start();
}

void ChannelState::OnConnectFailed(const std::string& why) {
  connect_timer_.reset();
  connector_.reset();
  if (connection_ != nullptr) std::exchange(connection_, nullptr)->Drop();
  failing_ = true;
  last_error_ = StrCat("failed to connect to all addresses; last error: connect to ",
                       ServerAddress().ToText(), ": ", why);
  if (IsKept()) {
    const Duration past = loop().clock().Monotonic() - attempt_start_;
    ConnectAfter(backoff_.Next() - past);
    if (options_.on_connect_failed) options_.on_connect_failed(why);
  }
  // Calls that a callback adds wait for the next attempt.
  const std::uint64_t first_later = next_waiting_id_;
  while (!waiting_.empty() && waiting_.begin()->first < first_later) {
    End(waiting_.begin()->second, ErrorFromGrpcStatus(grpc::kUnavailable, last_error_), true);
  }
}

void ChannelState::ConnectAfter(Duration delay) {
  retry_timer_ = loop().RunAfter(std::max(delay, Duration(0)), [this] { Connect(); });
}

void ChannelState::OnReady(ClientConnection& connection) {
  if (&connection != connection_.get()) return;
  const std::shared_ptr<ChannelState> self = shared_from_this();
  connect_timer_.reset();
  ready_ = true;
  failing_ = false;
  backoff_.Reset();
  ready_since_ = loop().clock().Monotonic();
  for (const auto& [id, call] : std::exchange(waiting_, {})) Submit(call);
  Report(true);
}

// The connection accepts no more calls; the next call, or a kept channel at once, opens another.
void ChannelState::OnGoingAway(ClientConnection& connection) {
  if (&connection != connection_.get()) return;
  const std::shared_ptr<ChannelState> self = shared_from_this();
  if (!ready_) return OnConnectFailed("the server is going away");
  ready_ = false;
  draining_.emplace(&connection, std::move(connection_));
  connection_ = nullptr;
  Reconnect();
  Report(false);
}

void ChannelState::OnLost(ClientConnection& connection, const std::string& why) {
  const std::shared_ptr<ChannelState> self = shared_from_this();
  const bool was_current = &connection == connection_.get();
  if (was_current) {
    if (!ready_) {
      return OnConnectFailed(why.empty() ? "the connection was closed before the server's SETTINGS"
                                         : why);
    }
    ready_ = false;
    draining_.emplace(&connection, std::move(connection_));
    connection_ = nullptr;
    Reconnect();
  }
  // Any of these callbacks may close the channel, which then takes care of the rest.
  while (!closed_ && !connection.calls.empty()) {
    const auto& [stream, call] = *connection.calls.begin();
    const bool unprocessed = !connection.session().WasSent(stream);
    End(call, ErrorFromGrpcStatus(grpc::kUnavailable, why.empty() ? "Socket closed" : why),
        unprocessed);
  }
  draining_.erase(&connection);
  if (was_current) Report(false);
}

void ChannelState::Reconnect() {
  const bool quick = loop().clock().Monotonic() - ready_since_ < kQuickLoss;
  quick_losses_ = quick ? quick_losses_ + 1 : 0;
  if (!IsKept() && waiting_.empty()) return;
  if (quick_losses_ > kMaxQuickLosses) {
    ConnectAfter(options_.initial_backoff);
  } else {
    Connect();
  }
}

void ChannelState::Report(bool connected) {
  if (closed_ || !IsKept()) return;
  // A copy, because the callback may destroy the channel.
  const std::function<void(bool)> run = options_.on_connection_change;
  run(connected);
}

class ClientStreamHandle final : public ClientStream {
 public:
  ClientStreamHandle(const std::shared_ptr<ChannelState>& channel, CallPointer call)
      : channel_(channel), call_(std::move(call)) {}
  ~ClientStreamHandle() override {
    if (const std::shared_ptr<ChannelState> channel = channel_.lock()) channel->Cancel(call_);
  }
  void Send(const std::string& message) override {
    if (const std::shared_ptr<ChannelState> channel = channel_.lock())
      channel->Send(call_, message);
  }
  void FinishSending() override {
    if (const std::shared_ptr<ChannelState> channel = channel_.lock()) {
      channel->FinishSending(call_);
    }
  }

 private:
  const std::weak_ptr<ChannelState> channel_;
  const CallPointer call_;
};

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(std::shared_ptr<LoopContext> context, ChannelOptions options)
      : state_(std::make_shared<ChannelState>(std::move(context), std::move(options))) {
    state_->loop().AssertInLoop();
    state_->Open();
  }
  ~GrpcChannel() override {
    state_->loop().AssertInLoop();
    state_->Close();
  }

  void Start(CallRequest request, absl::AnyInvocable<void(CallResult)> done) override {
    state_->loop().AssertInLoop();
    auto call = std::make_shared<ClientCall>();
    call->method = std::move(request.method);
    call->metadata = std::move(request.metadata);
    call->messages.push_back(std::move(request.message));
    call->finished_sending = true;
    call->deadline = DeadlineAfter(request.timeout);
    call->done = std::move(done);
    state_->Begin(call);
  }

  std::unique_ptr<ClientStream> Open(StreamRequest request, StreamCallbacks callbacks) override {
    state_->loop().AssertInLoop();
    auto call = std::make_shared<ClientCall>();
    call->method = std::move(request.method);
    call->metadata = std::move(request.metadata);
    if (request.timeout) call->deadline = DeadlineAfter(*request.timeout);
    call->stream = std::make_shared<StreamCallbacks>(std::move(callbacks));
    state_->Begin(call);
    return std::make_unique<ClientStreamHandle>(state_, std::move(call));
  }

 private:
  MonotonicTime DeadlineAfter(Duration timeout) {
    return state_->loop().clock().Monotonic() + std::min(timeout, kMaxTimeout);
  }

  const std::shared_ptr<ChannelState> state_;
};

}  // namespace

std::unique_ptr<Channel> MakeGrpcChannel(std::shared_ptr<LoopContext> context,
                                         ChannelOptions options) {
  return std::make_unique<GrpcChannel>(std::move(context), std::move(options));
}

}  // namespace drakkar::rpc
