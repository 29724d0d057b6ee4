#include "rpc/transport/grpc_channel.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "rpc/transport/byte_buffer.h"
#include "rpc/transport/connectivity.h"
#include "rpc/transport/loop_port.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

int Milliseconds(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 1, 1 << 30));
}

std::shared_ptr<grpc::Channel> MakeChannel(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, options.authority);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Milliseconds(options.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.max_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, kMaxMessageBytes);
  // Without this, two channels to one path share a connection and its back-off, so that a plugin
  // that came back would wait for what its predecessor owed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel("unix:" + options.socket_path,
                                   grpc::InsecureChannelCredentials(), arguments);
}

Result<void> ToResult(const grpc::Status& status) {
  if (status.ok()) return Ok();
  return ErrorFromGrpcStatus(status.error_code(), status.error_message());
}

struct UnaryCall {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
  absl::AnyInvocable<void(Result<std::string>)> done;  // on the loop; null once run or cancelled
};

// A server stream over gRPC's generic bidirectional call. It keeps itself alive until OnDone.
//
// Between two messages nothing is outstanding in gRPC while the loop looks at the first one, so a
// hold keeps the call from completing. Whoever has the turn (the outstanding read, or the task on
// the loop) gives the hold back when there is no next read.
class StreamReactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public std::enable_shared_from_this<StreamReactor> {
 public:
  StreamReactor(std::shared_ptr<LoopPort> port, StreamCallbacks callbacks)
      : port_(std::move(port)), callbacks_(std::make_shared<StreamCallbacks>(std::move(callbacks))) {}

  void Start(grpc::GenericStub& stub, const std::string& method, const std::string& request) {
    self_ = shared_from_this();
    request_ = internal::ToByteBuffer(request);
    stub.PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(), this);
    AddHold();
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&message_);
    StartCall();
  }

  // On the loop.
  void Cancel() {
    if (cancelled_.exchange(true)) return;
    callbacks_.reset();
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      RemoveHold();
      return;
    }
    port_->Post([turn = Turn(shared_from_this()), message = internal::ToString(message_)]() mutable {
      turn.Deliver(std::move(message));
    });
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamReactor> self = std::move(self_);
    port_->Post([self, result = ToResult(status)]() mutable {
      if (self->cancelled_) return;
      self->cancelled_ = true;
      const std::shared_ptr<StreamCallbacks> callbacks = std::move(self->callbacks_);
      if (callbacks->on_end) callbacks->on_end(std::move(result));
    });
  }

 private:
  // The right, and the duty, to start the next read or to give the hold back.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<StreamReactor> reactor) : reactor_(std::move(reactor)) {}
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (reactor_ == nullptr) return;
      if (delivered_ && !reactor_->cancelled_) {
        reactor_->StartRead(&reactor_->message_);
      } else {
        // Cancelled, or the loop stopped and dropped the task: nobody will read on.
        reactor_->context_.TryCancel();
        reactor_->RemoveHold();
      }
    }
    void Deliver(std::string message) {
      delivered_ = true;
      // The callback may destroy the stream; keep it alive until it returns.
      const std::shared_ptr<StreamCallbacks> callbacks = reactor_->callbacks_;
      if (reactor_->cancelled_ || callbacks == nullptr) return;
      if (callbacks->on_message) callbacks->on_message(std::move(message));
    }

   private:
    std::shared_ptr<StreamReactor> reactor_;
    bool delivered_ = false;
  };

  const std::shared_ptr<LoopPort> port_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  std::atomic<bool> cancelled_ = false;  // set on the loop
  std::shared_ptr<StreamCallbacks> callbacks_;  // on the loop
  std::shared_ptr<StreamReactor> self_;
};

class ClientStreamHandle final : public ClientStream {
 public:
  explicit ClientStreamHandle(std::shared_ptr<StreamReactor> reactor)
      : reactor_(std::move(reactor)) {}
  ~ClientStreamHandle() override { reactor_->Cancel(); }

 private:
  std::shared_ptr<StreamReactor> reactor_;
};

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(EventLoop& loop, ChannelOptions options);
  ~GrpcChannel() override;
  void Call(const std::string& method, const std::string& request, Duration timeout,
            absl::AnyInvocable<void(Result<std::string>)> done) override;
  std::unique_ptr<ClientStream> Watch(const std::string& method, const std::string& request,
                                      StreamCallbacks callbacks) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct GrpcChannel::Impl {
  Impl(EventLoop& on_loop, ChannelOptions given)
      : loop(on_loop),
        port(std::make_shared<LoopPort>(on_loop)),
        on_connection_change(std::make_shared<std::function<void(bool)>>(
            std::move(given.on_connection_change))),
        channel(MakeChannel(given)),
        stub(channel) {}

  EventLoop& loop;
  std::shared_ptr<LoopPort> port;
  // Emptied on destruction, so that reports already posted find nothing to call.
  std::shared_ptr<std::function<void(bool)>> on_connection_change;
  std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
  std::uint64_t next_call_id = 0;
  std::map<std::uint64_t, std::shared_ptr<UnaryCall>> calls;
  std::vector<std::weak_ptr<StreamReactor>> streams;
};

GrpcChannel::GrpcChannel(EventLoop& loop, ChannelOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {
  loop.AssertInLoop();
  if (!*impl_->on_connection_change) return;
  internal::KeepConnected(
      impl_->channel, [port = impl_->port, callback = impl_->on_connection_change](bool connected) {
        port->Post([callback, connected] {
          // A copy, because the callback may destroy the channel.
          const std::function<void(bool)> run = *callback;
          if (run) run(connected);
        });
      });
}

GrpcChannel::~GrpcChannel() {
  impl_->loop.AssertInLoop();
  *impl_->on_connection_change = nullptr;
  for (auto& [id, call] : impl_->calls) {
    call->done = nullptr;
    call->context.TryCancel();
  }
  for (const std::weak_ptr<StreamReactor>& weak : impl_->streams) {
    if (const std::shared_ptr<StreamReactor> stream = weak.lock()) stream->Cancel();
  }
  impl_->port->Close();
}

void GrpcChannel::Call(const std::string& method, const std::string& request, Duration timeout,
                       absl::AnyInvocable<void(Result<std::string>)> done) {
  impl_->loop.AssertInLoop();
  auto call = std::make_shared<UnaryCall>();
  call->request = internal::ToByteBuffer(request);
  call->done = std::move(done);
  call->context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_nanos(timeout.count(), GPR_TIMESPAN)));
  const std::uint64_t id = impl_->next_call_id++;
  impl_->calls.emplace(id, call);
  auto finished = [port = impl_->port, call, impl = impl_.get(), id](const grpc::Status& status) {
    Result<std::string> result = std::string();
    if (status.ok()) {
      result = internal::ToString(call->response);
    } else {
      result = ErrorFromGrpcStatus(status.error_code(), status.error_message());
    }
    port->Post([call, impl, id, result = std::move(result)]() mutable {
      if (!call->done) return;  // the channel, and so `impl`, is gone
      auto run = std::move(call->done);
      call->done = nullptr;
      impl->calls.erase(id);
      run(std::move(result));
    });
  };
  impl_->stub.UnaryCall(&call->context, method, grpc::StubOptions(), &call->request,
                        &call->response, std::move(finished));
}

std::unique_ptr<ClientStream> GrpcChannel::Watch(const std::string& method, const std::string& request,
                                             StreamCallbacks callbacks) {
  impl_->loop.AssertInLoop();
  std::erase_if(impl_->streams, [](const auto& weak) { return weak.expired(); });
  auto reactor = std::make_shared<StreamReactor>(impl_->port, std::move(callbacks));
  impl_->streams.push_back(reactor);
  reactor->Start(impl_->stub, method, request);
  return std::make_unique<ClientStreamHandle>(std::move(reactor));
}

}  // namespace

void KeepGrpcUp() {
  // A channel holds the queue from its first call on. This one has no credentials, so that its
  // only call fails at once and it never connects; it is never destroyed.
  struct Pin {
    std::shared_ptr<grpc::Channel> channel = grpc::CreateChannel("unix:pin", nullptr);
    grpc::GenericStub stub{channel};
    UnaryCall call;
  };
  // Volatile, so that the pointer is really kept and leak checkers find it.
  static Pin* volatile pin = [] {
    auto* made = new Pin;
    made->call.request = internal::ToByteBuffer(std::string());
    made->stub.UnaryCall(&made->call.context, "/pin/pin", grpc::StubOptions(), &made->call.request,
                         &made->call.response, [](const grpc::Status&) {});
    return made;
  }();
  static_cast<void>(pin);
}

std::unique_ptr<Channel> MakeGrpcChannel(EventLoop& loop, ChannelOptions options) {
  return std::make_unique<GrpcChannel>(loop, std::move(options));
}

}  // namespace drakkar::rpc
