#include "rpc/transport/grpc_server.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "rpc/grpc/server_session.h"
#include "rpc/transport/connection.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

// sun_path holds 108 bytes with the terminating zero.
constexpr std::size_t kMaxSocketPathBytes = 107;
constexpr std::uint32_t kSocketMode = 0600;
// Per server. Beyond it a new connection is closed at once.
constexpr std::size_t kMaxConnections = 256;

grpc::Status ToStatus(const Result<void>& result) {
  if (result.ok()) return {};
  return {GrpcCodeFromError(result.error().code), result.error().message};
}

class ServerConnection;

// Links the connection a call came in on with the handle its service holds.
struct CallState {
  ServerConnection* connection = nullptr;  // null once finished or gone
  grpc::StreamId stream = 0;
  bool cancelled = false;
  std::function<void()> on_cancelled;
  std::function<void(std::string)> on_message;
  std::function<void()> on_end;
  TimerHandle deadline;

  // No more messages and no more callbacks.
  void Detach() {
    connection = nullptr;
    deadline.reset();
    on_cancelled = nullptr;
    on_message = nullptr;
    on_end = nullptr;
  }
};

// The part of a running server that its connections use.
struct Running {
  std::map<std::string, RpcService*, std::less<>> handlers;
  std::vector<std::string> served;  // the keys of handlers
  std::set<std::string, std::less<>> streaming;
  std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections;
  std::unique_ptr<net::Listener> listener;
};

class ServerConnection final : public Connection {
 public:
  ServerConnection(const std::shared_ptr<LoopContext>& context, std::unique_ptr<net::Socket> socket,
                   Running& server)
      : Connection(context, std::move(socket), /*tls=*/nullptr),
        loop_(context->loop),
        server_(&server),
        session_(grpc::NewServerSession(
            [this](std::string_view method) { return CheckMethod(method); },
            [this](std::string_view method) {
              return server_ != nullptr && server_->streaming.contains(method);
            })) {}

  // The server stops: services get no more callbacks for their calls.
  void Stop() {
    server_ = nullptr;
    for (const auto& [stream, call] : std::exchange(calls_, {})) {
      call->Detach();
      call->cancelled = true;
    }
    session_->Shutdown({grpc::kUnavailable, "the server is stopping"});
    CloseGently();
  }

  void SendMessage(grpc::StreamId stream, const std::string& message) {
    session_->SendMessage(stream, message);
    ScheduleFlush();
  }

  void Finish(CallState& call, const grpc::Status& status) {
    session_->Finish(call.stream, status);
    ScheduleFlush();
    calls_.erase(call.stream);
    call.Detach();
  }

 private:
  using EventType = grpc::ServerSession::EventType;

  Result<void> Receive(std::string_view bytes) override { return session_->Receive(bytes); }
  void Send(std::string& out, std::size_t limit) override { session_->Send(out, limit); }
  bool IsFinished() const override { return session_->IsFinished(); }

  void Dispatch() override {
    for (grpc::ServerSession::Event& event : session_->TakeEvents()) {
      if (server_ == nullptr) return;  // stopped by an earlier callback
      if (event.type == EventType::kCall) {
        Begin(event);
        continue;
      }
      const auto found = calls_.find(event.stream);
      if (found == calls_.end()) continue;
      // Any of these may end the call.
      const std::shared_ptr<CallState> call = found->second;
      if (event.type == EventType::kCancelled) {
        Cancel(call);
      } else if (event.type == EventType::kMessage) {
        const auto run = call->on_message;
        if (run) run(std::move(event.request));
      } else {
        const auto run = call->on_end;
        if (run) run();
      }
    }
  }

  void OnLost(const std::string&) override {
    if (server_ == nullptr) return;
    // Each may stop the server; the rest then get no callback.
    while (!calls_.empty()) Cancel(calls_.begin()->second);
    if (server_ != nullptr) server_->connections.erase(this);
  }

  Result<void> CheckMethod(std::string_view method) const {
    if (server_ == nullptr) return Unavailable("the server is stopping");
    if (server_->handlers.contains(method)) return Ok();
    return Error{ErrorCode::kUnimplemented, UnknownMethodText(server_->served, method)};
  }

  void Begin(grpc::ServerSession::Event& event);

  void Cancel(const std::shared_ptr<CallState>& held) {
    const std::shared_ptr<CallState> call = held;
    calls_.erase(call->stream);
    call->cancelled = true;
    const std::function<void()> run = std::move(call->on_cancelled);
    call->Detach();
    if (run) run();
  }

  UvLoop& loop_;
  Running* server_;                                                       // null once stopped
  std::unordered_map<grpc::StreamId, std::shared_ptr<CallState>> calls_;  // unfinished ones
  const std::unique_ptr<grpc::ServerSession> session_;
};

class ServerCallHandle final : public ServerCall {
 public:
  explicit ServerCallHandle(std::shared_ptr<CallState> call) : call_(std::move(call)) {}
  ~ServerCallHandle() override {
    call_->on_cancelled = nullptr;
    call_->on_message = nullptr;
    call_->on_end = nullptr;
    ServerCallHandle::Finish(Internal("the server dropped the call"));
  }
  void Send(const std::string& message) override {
    if (call_->connection != nullptr) call_->connection->SendMessage(call_->stream, message);
  }
  void Finish(Result<void> result) override {
    if (call_->connection != nullptr) call_->connection->Finish(*call_, ToStatus(result));
  }
  bool IsCancelled() const override { return call_->cancelled; }
  void OnCancelled(std::function<void()> callback) override {
    if (call_->connection != nullptr) call_->on_cancelled = std::move(callback);
  }
  void OnMessage(std::function<void(std::string)> on_message,
                 std::function<void()> on_end) override {
    if (call_->connection == nullptr) return;
    call_->on_message = std::move(on_message);
    call_->on_end = std::move(on_end);
  }

 private:
  const std::shared_ptr<CallState> call_;
};

void ServerConnection::Begin(grpc::ServerSession::Event& event) {
  auto call = std::make_shared<CallState>();
  call->connection = this;
  call->stream = event.stream;
  if (event.timeout) {
    call->deadline = loop_.RunAfter(*event.timeout, [this, weak = std::weak_ptr(call)] {
      const std::shared_ptr<CallState> late = weak.lock();
      const std::shared_ptr<Connection> self = shared_from_this();
      session_->Abort(late->stream, {grpc::kDeadlineExceeded, "Deadline Exceeded"});
      ScheduleFlush();
      Cancel(late);
    });
  }
  calls_.emplace(event.stream, call);
  RpcService& service = *server_->handlers.find(event.method)->second;
  service.Handle(event.method, std::move(event.request), std::make_unique<ServerCallHandle>(call));
}

// An error says why listening on `path` cannot work. Removes a stale socket.
Result<void> PrepareSocketPath(const std::string& path) {
  if (path.empty()) return InvalidArgument("the socket path is empty");
  if (path.size() > kMaxSocketPathBytes) {
    return InvalidArgument(StrCat("the socket path ", path, " has ", path.size(),
                                  " bytes, the system allows ", kMaxSocketPathBytes));
  }
  FileSystem& files = RealFileSystem();
  const Result<FileInfo> directory = files.Stat(DirectoryName(path));
  if (!directory.ok()) return directory.error();
  if (directory->type != FileType::kDirectory) {
    return InvalidArgument(StrCat(DirectoryName(path), " is not a directory"));
  }
  const Result<FileInfo> existing = files.LinkStat(path);
  if (!existing.ok()) {
    return existing.error().code == ErrorCode::kNotFound ? Ok() : Result<void>(existing.error());
  }
  if (existing->type != FileType::kSocket) {
    return FailedPrecondition(StrCat(path, " exists and is not a socket"));
  }
  return files.Remove(path);
}

class GrpcServer final : public Server {
 public:
  GrpcServer(std::shared_ptr<LoopContext> context, std::string socket_path,
             std::vector<std::unique_ptr<RpcService>> services)
      : context_(std::move(context)),
        socket_path_(std::move(socket_path)),
        services_(std::move(services)) {}
  ~GrpcServer() override { GrpcServer::Stop(); }

  Result<void> Start() override;
  void Stop() override;

 private:
  void Accept(std::unique_ptr<net::Socket> socket);

  const std::shared_ptr<LoopContext> context_;
  const std::string socket_path_;
  const std::vector<std::unique_ptr<RpcService>> services_;
  std::unique_ptr<Running> running_;
};

Result<void> GrpcServer::Start() {
  context_->loop.AssertInLoop();
  if (running_ != nullptr) return Ok();
  const std::string what = StrCat("listen on ", socket_path_);
  if (Result<void> ready = PrepareSocketPath(socket_path_); !ready.ok()) {
    return std::move(ready).error().Prefixed(what);
  }
  auto running = std::make_unique<Running>();
  for (const std::unique_ptr<RpcService>& service : services_) {
    for (std::string& path : service->MethodPaths()) {
      running->served.push_back(path);
      running->handlers.emplace(std::move(path), service.get());
    }
    for (std::string& path : service->StreamingPaths()) running->streaming.insert(std::move(path));
  }
  Result<std::unique_ptr<net::Listener>> listener = net::Listener::Create(
      context_->loop, {.address = {.host = "", .port = 0, .unix_path = socket_path_}},
      [this](std::unique_ptr<net::Socket> socket) { Accept(std::move(socket)); });
  if (!listener.ok()) return listener.error();
  running->listener = *std::move(listener);
  running_ = std::move(running);
  if (Result<void> mode = RealFileSystem().SetMode(socket_path_, kSocketMode); !mode.ok()) {
    Stop();
    return std::move(mode).error().Prefixed(what);
  }
  return Ok();
}

void GrpcServer::Accept(std::unique_ptr<net::Socket> socket) {
  if (running_->connections.size() >= kMaxConnections) return;
  auto connection = std::make_shared<ServerConnection>(context_, std::move(socket), *running_);
  running_->connections.emplace(connection.get(), connection);
  connection->Start();
}

void GrpcServer::Stop() {
  context_->loop.AssertInLoop();
  // A service may call Stop again from its callback.
  const std::unique_ptr<Running> running = std::move(running_);
  if (running == nullptr) return;
  running->listener.reset();
  for (const auto& [key, connection] : std::exchange(running->connections, {})) connection->Stop();
}

}  // namespace

std::unique_ptr<Server> MakeGrpcServer(std::shared_ptr<LoopContext> context,
                                       std::string socket_path,
                                       std::vector<std::unique_ptr<RpcService>> services) {
  return std::make_unique<GrpcServer>(std::move(context), std::move(socket_path),
                                      std::move(services));
}

}  // namespace drakkar::rpc
