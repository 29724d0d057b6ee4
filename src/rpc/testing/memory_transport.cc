#include "rpc/testing/memory_transport.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/exec/backoff.h"
#include "base/text/text.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

constexpr int kUnavailable = 14;

class MemoryChannel;
class MemoryServer;

// One call, seen from both ends. `client_open` ends with the result or the cancellation,
// `server_open` with Finish, the cancellation or the server's end.
struct MemoryCall {
  std::uint64_t id = 0;
  MemoryChannel* channel = nullptr;
  MemoryServer* server = nullptr;
  std::string path;
  std::string method;

  bool client_open = true;
  absl::AnyInvocable<void(CallResult)> done;  // unary
  std::shared_ptr<StreamCallbacks> stream;    // streaming
  std::optional<std::string> response;
  TimerHandle deadline;
  // The server gets the call with its first message; then `begun`.
  bool delivering = false;
  bool begun = false;
  bool finished_sending = false;

  bool server_open = true;
  bool server_cancelled = false;
  std::function<void()> on_cancelled;
  std::function<void(std::string)> on_message;
  std::function<void()> on_end;

  void DropServerCallbacks() {
    on_cancelled = nullptr;
    on_message = nullptr;
    on_end = nullptr;
  }
};
using CallPointer = std::shared_ptr<MemoryCall>;

}  // namespace

struct MemoryTransport::Hub {
  explicit Hub(EventLoop& on_loop) : loop(on_loop) {}

  EventLoop& loop;
  std::map<std::string, MemoryServer*> listening;
  std::vector<MemoryChannel*> channels;        // in the order opened
  std::map<std::uint64_t, CallPointer> calls;  // with an open client
  std::uint64_t next_call_id = 0;
  std::function<void(const std::string&, bool)> on_socket_change;
  CallFault fault;
  CallFault answer_fault;

  void SocketChanged(const std::string& path, bool present) {
    if (on_socket_change) on_socket_change(path, present);
  }

  // Gives the client its result. The callback may destroy the channel.
  void EndClient(const CallPointer& call, Result<void> result, bool unprocessed = false) {
    if (!call->client_open) return;
    call->client_open = false;
    call->deadline.reset();
    calls.erase(call->id);
    if (call->stream != nullptr) {
      const std::shared_ptr<StreamCallbacks> stream = std::move(call->stream);
      if (stream->on_end) stream->on_end(std::move(result));
      return;
    }
    auto done = std::move(call->done);
    if (!result.ok()) return done({std::move(result).error(), unprocessed});
    if (!call->response.has_value()) {
      return done({ErrorFromGrpcStatus(13, "no response message")});
    }
    done({std::move(*call->response)});
  }

  void EndClientSoon(const CallPointer& call, Result<void> result) {
    loop.Post(
        [this, call, result = std::move(result)]() mutable { EndClient(call, std::move(result)); });
  }

  // Tells the server that the client has cancelled.
  void CancelServer(const CallPointer& call) {
    if (!call->server_open) return;
    call->server_open = false;
    loop.Post([call] {
      if (call->server == nullptr || call->server_cancelled) return;
      call->server_cancelled = true;
      const std::function<void()> run = std::move(call->on_cancelled);
      call->DropServerCallbacks();
      if (run) run();
    });
  }

  // The client cancels: no more callbacks.
  void CancelClient(const CallPointer& call) {
    if (!call->client_open) return;
    call->client_open = false;
    call->deadline.reset();
    call->done = nullptr;
    call->stream = nullptr;
    calls.erase(call->id);
    CancelServer(call);
  }

  template <typename Predicate>
  std::vector<CallPointer> FindCalls(Predicate predicate) {
    std::vector<CallPointer> found;
    for (const auto& [id, call] : calls) {
      if (predicate(*call)) found.push_back(call);
    }
    return found;
  }
};

namespace {

using Hub = MemoryTransport::Hub;

class MemoryServerCall final : public ServerCall {
 public:
  MemoryServerCall(std::shared_ptr<Hub> hub, CallPointer call)
      : hub_(std::move(hub)), call_(std::move(call)) {}
  ~MemoryServerCall() override {
    call_->DropServerCallbacks();
    if (!finished_) MemoryServerCall::Finish(Internal("the server dropped the call"));
  }

  void Send(const std::string& message) override {
    if (!call_->server_open) return;
    if (call_->stream == nullptr) {
      call_->response = message;
      return;
    }
    hub_->loop.Post([call = call_, message] {
      // A copy, because the callback may end the stream.
      const std::shared_ptr<StreamCallbacks> stream = call->stream;
      if (call->client_open && stream != nullptr && stream->on_message) stream->on_message(message);
    });
  }

  void Finish(Result<void> result) override {
    finished_ = true;
    call_->DropServerCallbacks();
    if (!call_->server_open) return;
    call_->server_open = false;
    if (result.ok() && hub_->answer_fault) {
      if (auto error = hub_->answer_fault(call_->path, call_->method)) result = std::move(*error);
    }
    if (!result.ok()) {
      result = ErrorFromGrpcStatus(GrpcCodeFromError(result.error().code), result.error().message);
    }
    hub_->EndClientSoon(call_, std::move(result));
  }

  bool IsCancelled() const override { return call_->server_cancelled; }
  void OnCancelled(std::function<void()> callback) override {
    call_->on_cancelled = std::move(callback);
  }
  void OnMessage(std::function<void(std::string)> on_message,
                 std::function<void()> on_end) override {
    call_->on_message = std::move(on_message);
    call_->on_end = std::move(on_end);
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const CallPointer call_;
  bool finished_ = false;
};

class MemoryServer final : public Server {
 public:
  MemoryServer(std::shared_ptr<Hub> hub, std::string path,
               std::vector<std::unique_ptr<RpcService>> services)
      : hub_(std::move(hub)), path_(std::move(path)), services_(std::move(services)) {
    for (const std::unique_ptr<RpcService>& service : services_) {
      for (const std::string& method : service->MethodPaths()) {
        handlers_.emplace(method, service.get());
        served_.push_back(method);
      }
    }
  }
  ~MemoryServer() override { MemoryServer::Stop(); }

  Result<void> Start() override;
  void Stop() override;

  const std::string& path() const { return path_; }

  void Accept(const CallPointer& call, std::string request) {
    call->server = this;
    call->begun = true;
    const auto handler = handlers_.find(call->method);
    if (handler == handlers_.end()) {
      call->server_open = false;
      return hub_->EndClient(call,
                             ErrorFromGrpcStatus(12, UnknownMethodText(served_, call->method)));
    }
    std::erase_if(accepted_, [](const auto& weak) { return weak.expired(); });
    accepted_.push_back(call);
    handler->second->Handle(call->method, std::move(request),
                            std::make_unique<MemoryServerCall>(hub_, call));
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const std::string path_;
  const std::vector<std::unique_ptr<RpcService>> services_;
  std::map<std::string, RpcService*, std::less<>> handlers_;
  std::vector<std::string> served_;
  std::vector<std::weak_ptr<MemoryCall>> accepted_;
  bool running_ = false;
};

class MemoryStream final : public ClientStream {
 public:
  MemoryStream(std::shared_ptr<Hub> hub, CallPointer call)
      : hub_(std::move(hub)), call_(std::move(call)) {}
  ~MemoryStream() override { hub_->CancelClient(call_); }
  void Send(const std::string& message) override;
  void FinishSending() override;

 private:
  const std::shared_ptr<Hub> hub_;
  const CallPointer call_;
};

constexpr char kNobody[] = "no server is listening";

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(std::shared_ptr<Hub> hub, ChannelOptions options)
      : hub_(std::move(hub)),
        options_(std::move(options)),
        backoff_(
            {.initial = options_.initial_backoff, .max = options_.max_backoff, .factor = 1.6}) {
    hub_->channels.push_back(this);
    if (options_.on_connection_change) ConnectSoon();
  }
  ~MemoryChannel() override {
    std::erase(hub_->channels, this);
    for (const CallPointer& call :
         hub_->FindCalls([this](const MemoryCall& each) { return each.channel == this; })) {
      hub_->CancelClient(call);
    }
  }

  void Start(CallRequest request, absl::AnyInvocable<void(CallResult)> done) override {
    const CallPointer call = NewCall(request.method);
    call->done = std::move(done);
    SetDeadline(call, request.timeout);
    Deliver(call, request.message);
  }

  std::unique_ptr<ClientStream> Open(StreamRequest request, StreamCallbacks callbacks) override {
    const CallPointer call = NewCall(request.method);
    call->stream = std::make_shared<StreamCallbacks>(std::move(callbacks));
    if (request.timeout) SetDeadline(call, *request.timeout);
    Await(call);
    return std::make_unique<MemoryStream>(hub_, call);
  }

  // The connection to `server` is gone: calls on it fail, and a kept channel connects again.
  void Lose(const MemoryServer* server) {
    if (peer_ != server || peer_ == nullptr) return;
    peer_ = nullptr;
    failing_ = false;
    for (const CallPointer& call :
         hub_->FindCalls([this](const MemoryCall& each) { return each.channel == this; })) {
      hub_->CancelServer(call);
      hub_->EndClientSoon(call, ErrorFromGrpcStatus(kUnavailable, "Socket closed"));
    }
    if (!options_.on_connection_change) return;
    ConnectSoon();
    Report(false);
  }

  const MemoryServer* peer() const { return peer_; }

  // The first message starts the call at the server, the others follow it.
  void Deliver(const CallPointer& call, const std::string& message) {
    if (!std::exchange(call->delivering, true)) return DeliverFirst(call, message);
    hub_->loop.Post([call, message] {
      if (!call->client_open || !call->server_open) return;
      const auto run = call->on_message;
      if (run) run(message);
    });
  }

 private:
  CallPointer NewCall(const std::string& method) {
    auto call = std::make_shared<MemoryCall>();
    call->id = hub_->next_call_id++;
    call->channel = this;
    call->path = options_.socket_path;
    call->method = method;
    hub_->calls.emplace(call->id, call);
    return call;
  }

  // A stream that sends nothing still learns that there is no server.
  void Await(const CallPointer& call) {
    hub_->loop.Post([this, hub = hub_, call] {
      if (!call->client_open || call->delivering) return;  // `this` may be gone
      if (peer_ == nullptr && !options_.on_connection_change) {
        Connect();
      } else if (peer_ == nullptr && !failing_) {
        Attempt();
        if (!call->client_open) return;
      }
      if (peer_ != nullptr) return;
      call->server_open = false;
      hub->EndClient(call, ErrorFromGrpcStatus(kUnavailable, ConnectErrorText()), true);
    });
  }

  void SetDeadline(const CallPointer& call, Duration timeout) {
    call->deadline = hub_->loop.RunAfter(timeout, [hub = hub_.get(), call] {
      // The timer must not destroy itself while it runs.
      const TimerHandle running = std::move(call->deadline);
      hub->CancelServer(call);
      hub->EndClient(call, ErrorFromGrpcStatus(4, "Deadline Exceeded"), !call->begun);
    });
  }

  void DeliverFirst(const CallPointer& call, const std::string& request) {
    hub_->loop.Post([this, hub = hub_, call, request] {
      if (!call->client_open) return;  // `this` may be gone
      if (hub->fault) {
        if (std::optional<Error> error = hub->fault(options_.socket_path, call->method)) {
          call->server_open = false;
          return hub->EndClient(call, std::move(*error));
        }
      }
      // A channel that is not kept connected connects for the call. A kept one makes the call wait
      // for a connection attempt in progress, but not after a failed one.
      if (peer_ == nullptr && !options_.on_connection_change) {
        Connect();
      } else if (peer_ == nullptr && !failing_) {
        Attempt();
        if (!call->client_open) return;
      }
      if (peer_ == nullptr) {
        call->server_open = false;
        return hub->EndClient(call, ErrorFromGrpcStatus(kUnavailable, ConnectErrorText()), true);
      }
      peer_->Accept(call, request);
    });
  }

  bool Connect() {
    const auto found = hub_->listening.find(options_.socket_path);
    if (found == hub_->listening.end()) return false;
    peer_ = found->second;
    backoff_.Reset();
    return true;
  }

  void ConnectSoon() {
    retry_ = hub_->loop.RunAfter(Duration(0), [this] { Attempt(); });
  }

  void Attempt() {
    failing_ = !Connect();
    if (!failing_) {
      // The timer may be what runs this.
      const TimerHandle done = std::move(retry_);
      return Report(true);
    }
    retry_ = hub_->loop.RunAfter(backoff_.Next(), [this] { Attempt(); });
    if (options_.on_connect_failed) options_.on_connect_failed(kNobody);
  }

  void Report(bool connected) {
    // A copy, because the callback may destroy this channel.
    const std::function<void(bool)> run = options_.on_connection_change;
    run(connected);
  }

  std::string ConnectErrorText() const {
    return StrCat("failed to connect to all addresses; last error: unix:", options_.socket_path,
                  ": ", kNobody);
  }

  const std::shared_ptr<Hub> hub_;
  const ChannelOptions options_;
  Backoff backoff_;
  MemoryServer* peer_ = nullptr;
  bool failing_ = false;  // the latest attempt to connect failed
  TimerHandle retry_;
};

void MemoryStream::Send(const std::string& message) {
  if (!call_->client_open || call_->finished_sending) return;
  call_->channel->Deliver(call_, message);
}

void MemoryStream::FinishSending() {
  if (!call_->client_open || std::exchange(call_->finished_sending, true)) return;
  hub_->loop.Post([call = call_] {
    if (!call->client_open || !call->server_open) return;
    const auto run = call->on_end;
    if (run) run();
  });
}

// Disconnects the channels of `server`, some of which may be destroyed by the callbacks.
void LoseAll(Hub& hub, const MemoryServer* server) {
  const std::vector<MemoryChannel*> channels = hub.channels;
  for (MemoryChannel* channel : channels) {
    if (std::find(hub.channels.begin(), hub.channels.end(), channel) == hub.channels.end())
      continue;
    channel->Lose(server);
  }
}

Result<void> MemoryServer::Start() {
  if (running_) return Ok();
  running_ = true;
  hub_->listening[path_] = this;
  hub_->SocketChanged(path_, true);
  return Ok();
}

void MemoryServer::Stop() {
  if (!running_) return;
  running_ = false;
  for (const std::weak_ptr<MemoryCall>& weak : std::exchange(accepted_, {})) {
    const CallPointer call = weak.lock();
    if (call == nullptr) continue;
    // Handlers are not told that their own server stops; their handles become no-ops.
    call->server = nullptr;
    call->server_cancelled = true;
    call->DropServerCallbacks();
    if (!std::exchange(call->server_open, false)) continue;
    hub_->EndClientSoon(call, ErrorFromGrpcStatus(kUnavailable, "the server is stopping"));
  }
  const auto entry = hub_->listening.find(path_);
  const bool gone = entry != hub_->listening.end() && entry->second == this;
  if (gone) hub_->listening.erase(entry);
  LoseAll(*hub_, this);
  if (gone) hub_->SocketChanged(path_, false);
}

}  // namespace

MemoryTransport::MemoryTransport(EventLoop& loop) : hub_(std::make_shared<Hub>(loop)) {}

MemoryTransport::~MemoryTransport() = default;

std::unique_ptr<Channel> MemoryTransport::OpenChannel(ChannelOptions options) {
  return std::make_unique<MemoryChannel>(hub_, std::move(options));
}

std::unique_ptr<Server> MemoryTransport::CreateServer(
    std::string socket_path, std::vector<std::unique_ptr<RpcService>> services) {
  return std::make_unique<MemoryServer>(hub_, std::move(socket_path), std::move(services));
}

void MemoryTransport::OnSocketChange(
    std::function<void(const std::string& path, bool listening)> callback) {
  hub_->on_socket_change = std::move(callback);
}

bool MemoryTransport::IsListening(const std::string& path) const {
  return hub_->listening.contains(path);
}

std::vector<std::string> MemoryTransport::ListeningPaths() const {
  std::vector<std::string> paths;
  for (const auto& [path, server] : hub_->listening) paths.push_back(path);
  return paths;
}

void MemoryTransport::BreakConnections(const std::string& path) {
  const auto found = hub_->listening.find(path);
  if (found != hub_->listening.end()) LoseAll(*hub_, found->second);
}

void MemoryTransport::Kill(const std::string& path) {
  const auto found = hub_->listening.find(path);
  if (found == hub_->listening.end()) return;
  const MemoryServer* server = found->second;
  hub_->listening.erase(found);
  LoseAll(*hub_, server);
}

void MemoryTransport::SetCallFault(CallFault fault) {
  hub_->fault = std::move(fault);
}

void MemoryTransport::SetAnswerFault(CallFault fault) {
  hub_->answer_fault = std::move(fault);
}

}  // namespace drakkar::rpc
