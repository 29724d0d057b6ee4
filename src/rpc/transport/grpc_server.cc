#include "rpc/transport/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "rpc/transport/byte_buffer.h"
#include "rpc/transport/loop_port.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

// sun_path holds 108 bytes with the terminating zero.
constexpr std::size_t kMaxSocketPathBytes = 107;
constexpr std::uint32_t kSocketMode = 0600;
// What all connections together may buffer.
constexpr std::size_t kMaxServerMemoryBytes = 64u << 20;
constexpr int kMaxConcurrentCalls = 1'024;
// How long Stop lets peers take their last answers before connections are cut.
constexpr std::int64_t kStopGraceMs = 100;

grpc::Status ToStatus(const Result<void>& result) {
  if (result.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(GrpcCodeFromError(result.error().code)),
                      result.error().message);
}

class CallReactor;

// What gRPC's threads share with the loop while a server runs.
struct Shared {
  explicit Shared(EventLoop& loop) : port(loop) {}

  LoopPort port;
  std::map<std::string, RpcService*, std::less<>> handlers;  // constant while running
  std::vector<std::string> served;                           // the keys of handlers
  bool stopped = false;                                      // on the loop

  std::mutex mutex;
  bool stopping = false;                         // guarded by mutex
  std::set<std::shared_ptr<CallReactor>> calls;  // guarded by mutex
};

// The loop's half of a call.
struct LoopSide {
  bool cancelled = false;
  std::function<void()> on_cancelled;
};

// gRPC's half: reads the one request, then writes what the loop sends, one message at a time, and
// finishes exactly once. No gRPC operation is started while the mutex is held.
class CallReactor final : public grpc::ServerGenericBidiReactor,
                          public std::enable_shared_from_this<CallReactor> {
 public:
  CallReactor(std::shared_ptr<Shared> shared, std::string method)
      : shared_(std::move(shared)), method_(std::move(method)) {}

  void Start() {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->calls.insert(shared_from_this());
      stopping_at_start_ = shared_->stopping;
    }
    if (stopping_at_start_) {
      FinishSoon(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
    } else if (!shared_->handlers.contains(method_)) {
      FinishSoon(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                              UnknownMethodText(shared_->served, method_)));
    } else {
      StartRead(&request_);
    }
  }

  void Send(const std::string& message) {
    bool overflow = false;
    {
      std::lock_guard lock(mutex_);
      if (finish_requested_) return;
      overflow = outgoing_.size() >= kMaxPendingMessages;
      if (!overflow) outgoing_.push_back(internal::ToByteBuffer(message));
    }
    if (overflow) {
      Abort(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                         StrCat("the peer is ", kMaxPendingMessages, " messages behind")));
      return;
    }
    Pump();
  }

  // Finishes after the messages sent so far.
  void FinishSoon(grpc::Status status) {
    {
      std::lock_guard lock(mutex_);
      if (finish_requested_) return;
      finish_requested_ = true;
      status_ = std::move(status);
    }
    Pump();
  }

  // Finishes without the messages not yet written.
  void Abort(grpc::Status status) {
    {
      std::lock_guard lock(mutex_);
      if (finished_) return;
      finish_requested_ = true;
      status_ = std::move(status);
      if (outgoing_.size() > (writing_ ? 1u : 0u)) {
        outgoing_.resize(writing_ ? 1 : 0);
      }
    }
    Pump();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      FinishSoon(grpc::Status(grpc::StatusCode::INTERNAL, "the call has no request message"));
      return;
    }
    shared_->port.Post(
        [self = shared_from_this(), request = internal::ToString(request_)]() mutable {
          self->Dispatch(std::move(request));
        });
  }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      outgoing_.pop_front();
      if (!ok) {
        outgoing_.clear();
        if (!finish_requested_) status_ = grpc::Status::CANCELLED;
        finish_requested_ = true;
      }
    }
    Pump();
  }

  void OnCancel() override {
    Abort(grpc::Status::CANCELLED);
    shared_->port.Post([shared = shared_, side = side_] {
      if (shared->stopped || side->cancelled) return;
      side->cancelled = true;
      const std::function<void()> run = std::move(side->on_cancelled);
      if (run) run();
    });
  }

  void OnDone() override {
    const std::shared_ptr<CallReactor> self = shared_from_this();
    std::lock_guard lock(shared_->mutex);
    shared_->calls.erase(self);
  }

  const std::shared_ptr<LoopSide>& side() const { return side_; }
  bool IsCancelled() const { return shared_->stopped || side_->cancelled; }  // on the loop

 private:
  void Dispatch(std::string request);

  // Starts the next write, or the finish when nothing is left to write.
  void Pump() {
    const grpc::ByteBuffer* next = nullptr;
    bool finish = false;
    grpc::Status status;
    {
      std::lock_guard lock(mutex_);
      if (writing_ || finished_) return;
      if (!outgoing_.empty()) {
        writing_ = true;
        next = &outgoing_.front();  // stays in place until OnWriteDone
      } else if (finish_requested_) {
        finished_ = true;
        finish = true;
        status = status_;
      }
    }
    if (next != nullptr) StartWrite(next);
    if (finish) Finish(std::move(status));
  }

  const std::shared_ptr<Shared> shared_;
  const std::string method_;
  const std::shared_ptr<LoopSide> side_ = std::make_shared<LoopSide>();
  grpc::ByteBuffer request_;
  bool stopping_at_start_ = false;

  std::mutex mutex_;
  std::deque<grpc::ByteBuffer> outgoing_;  // guarded by mutex_, as all below
  bool writing_ = false;
  bool finish_requested_ = false;
  bool finished_ = false;
  grpc::Status status_;
};

class ServerCallHandle final : public ServerCall {
 public:
  explicit ServerCallHandle(std::shared_ptr<CallReactor> reactor) : reactor_(std::move(reactor)) {}
  ~ServerCallHandle() override {
    reactor_->side()->on_cancelled = nullptr;
    if (!finished_) {
      reactor_->FinishSoon(
          grpc::Status(grpc::StatusCode::INTERNAL, "the server dropped the call"));
    }
  }
  void Send(const std::string& message) override { reactor_->Send(message); }
  void Finish(Result<void> result) override {
    finished_ = true;
    reactor_->side()->on_cancelled = nullptr;
    reactor_->FinishSoon(ToStatus(result));
  }
  bool IsCancelled() const override { return reactor_->IsCancelled(); }
  void OnCancelled(std::function<void()> callback) override {
    reactor_->side()->on_cancelled = std::move(callback);
  }

 private:
  const std::shared_ptr<CallReactor> reactor_;
  bool finished_ = false;
};

void CallReactor::Dispatch(std::string request) {
  if (shared_->stopped || side_->cancelled) return;
  shared_->handlers.at(method_)->Handle(method_, std::move(request),
                                        std::make_unique<ServerCallHandle>(shared_from_this()));
}

class GenericService final : public grpc::CallbackGenericService {
 public:
  explicit GenericService(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto reactor = std::make_shared<CallReactor>(shared_, context->method());
    reactor->Start();
    return reactor.get();  // alive in shared_->calls until OnDone
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

// Why listening on `path` cannot work, before gRPC hides the reason. Removes a stale socket.
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
  GrpcServer(EventLoop& loop, std::string socket_path,
             std::vector<std::unique_ptr<RpcService>> services)
      : loop_(loop), socket_path_(std::move(socket_path)), services_(std::move(services)) {}
  ~GrpcServer() override { GrpcServer::Stop(); }

  Result<void> Start() override;
  void Stop() override;

 private:
  struct Running;

  EventLoop& loop_;
  const std::string socket_path_;
  const std::vector<std::unique_ptr<RpcService>> services_;
  std::unique_ptr<Running> running_;
};

struct GrpcServer::Running {
  std::shared_ptr<Shared> shared;
  std::unique_ptr<GenericService> service;
  std::unique_ptr<grpc::Server> server;  // destroyed first
};

Result<void> GrpcServer::Start() {
  loop_.AssertInLoop();
  if (running_ != nullptr) return Ok();
  const std::string what = StrCat("listen on ", socket_path_);
  if (Result<void> ready = PrepareSocketPath(socket_path_); !ready.ok()) {
    return std::move(ready).error().Prefixed(what);
  }
  auto running = std::make_unique<Running>();
  running->shared = std::make_shared<Shared>(loop_);
  for (const std::unique_ptr<RpcService>& service : services_) {
    for (std::string& path : service->MethodPaths()) {
      running->shared->served.push_back(path);
      running->shared->handlers.emplace(std::move(path), service.get());
    }
  }
  running->service = std::make_unique<GenericService>(running->shared);

  grpc::ServerBuilder builder;
  int listening = 0;  // 1 for a bound unix socket
  builder.AddListeningPort("unix:" + socket_path_, grpc::InsecureServerCredentials(), &listening);
  builder.RegisterCallbackGenericService(running->service.get());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentCalls);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  grpc::ResourceQuota quota("drakkar");
  quota.Resize(kMaxServerMemoryBytes);
  builder.SetResourceQuota(quota);
  running->server = builder.BuildAndStart();
  if (running->server == nullptr || listening == 0) {
    return Unavailable("the socket cannot be bound; see the log for the system's reason")
        .Prefixed(what);
  }
  running_ = std::move(running);
  if (Result<void> mode = RealFileSystem().SetMode(socket_path_, kSocketMode); !mode.ok()) {
    Stop();
    return std::move(mode).error().Prefixed(what);
  }
  return Ok();
}

void GrpcServer::Stop() {
  loop_.AssertInLoop();
  if (running_ == nullptr) return;
  const std::unique_ptr<Running> running = std::move(running_);
  Shared& shared = *running->shared;
  shared.stopped = true;
  shared.port.Close();
  std::set<std::shared_ptr<CallReactor>> calls;
  {
    std::lock_guard lock(shared.mutex);
    shared.stopping = true;
    calls = shared.calls;
  }
  for (const std::shared_ptr<CallReactor>& call : calls) {
    call->side()->on_cancelled = nullptr;
    call->Abort(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
  }
  calls.clear();
  // Returns once every call has been finished above or cut here, and the socket file is gone.
  running->server->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                         gpr_time_from_millis(kStopGraceMs, GPR_TIMESPAN)));
}

}  // namespace

std::unique_ptr<Server> MakeGrpcServer(EventLoop& loop, std::string socket_path,
                                       std::vector<std::unique_ptr<RpcService>> services) {
  return std::make_unique<GrpcServer>(loop, std::move(socket_path), std::move(services));
}

}  // namespace drakkar::rpc
