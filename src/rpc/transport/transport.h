#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/exec/event_loop.h"
#include "base/result/result.h"

namespace drakkar {
class UvLoop;
}

namespace drakkar::rpc {

// Calls between processes as bytes: methods are paths ("/package.Service/Method"), messages are
// encoded by the folders beside this one. gRPC over unix sockets in production, a MemoryTransport
// in a simulation; clients and services above it cannot tell them apart.

// The largest message either side takes: a List of pod resources on a full node fits many times.
constexpr int kMaxMessageBytes = 16 << 20;

// A reader of a stream that falls this many messages behind is cut off with ResourceExhausted; it
// reconnects and gets a fresh start.
constexpr std::size_t kMaxPendingMessages = 1'024;

struct ChannelOptions {
  std::string socket_path;
  // Set: over TCP, in the clear, instead of `socket_path`.
  std::string host;
  std::uint16_t port = 0;
  std::string authority = "localhost";
  std::string user_agent = "grpc-drakkar/1";
  // gRPC's default reconnect back-off, as Kubernetes keeps it: x1.6 with 20 % jitter in between.
  Duration initial_backoff = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(120);
  // When set, the channel connects at once and again after every loss, and reports each change.
  // A channel starts as not connected. Without it, the first call connects.
  std::function<void(bool connected)> on_connection_change;
};

struct StreamCallbacks {
  std::function<void(std::string message)> on_message;
  // Once, after the last message: ok when the server ended the stream without an error.
  absl::AnyInvocable<void(Result<void>)> on_end;
};

// A running server stream. Destroying it cancels; no callback runs afterwards.
class [[nodiscard]] ClientStream {
 public:
  virtual ~ClientStream() = default;
};

// One connection to one socket.
//
// Every callback runs on the loop. Destroying the channel cancels what is in flight, and no
// callback runs afterwards. Lives on the loop. A stream reads one message at a time: the next is
// taken from the connection only after on_message has returned, so a slow reader slows the server
// down and buffers nothing here.
class Channel {
 public:
  virtual ~Channel() = default;

  // `done` runs once, never from inside Call. Errors are those of ErrorFromGrpcStatus.
  virtual void Call(const std::string& method, const std::string& request, Duration timeout,
                    absl::AnyInvocable<void(Result<std::string>)> done) = 0;

  virtual std::unique_ptr<ClientStream> Watch(const std::string& method, const std::string& request,
                                              StreamCallbacks callbacks) = 0;
};

// One call being answered: any number of messages, then a result. A unary method sends exactly one.
// Lives on the server's loop. Once the peer or the server is gone, everything here does nothing.
// Destroying it unfinished answers Internal, so that no caller hangs on a dropped call.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual void Send(const std::string& message) = 0;
  virtual void Finish(Result<void> result) = 0;
  virtual bool IsCancelled() const = 0;
  // Runs at most once, when the peer goes away before Finish. Not when the server is stopped.
  virtual void OnCancelled(std::function<void()> callback) = 0;
};

// A set of methods, as the wire names them.
class RpcService {
 public:
  virtual ~RpcService() = default;
  // "/package.Service/Method"; constant.
  virtual std::vector<std::string> MethodPaths() const = 0;
  // Runs on the loop for each call; keeps `call` until it is finished.
  virtual void Handle(std::string_view method, std::string request,
                      std::unique_ptr<ServerCall> call) = 0;
};

// A server on one unix socket.
//
// Start removes a stale socket file, listens, and sets the mode to 0600; a failure names the path
// and the reason. Stop answers what is in flight with Unavailable and removes the socket file; a
// peer that is behind may take its answers for a moment longer, while the transport lives; no
// handler runs afterwards. Both are idempotent; after Stop, Start works again. Destroying it stops
// it. Unknown methods are answered Unimplemented. Lives on the loop, and so do the services.
class Server {
 public:
  virtual ~Server() = default;
  virtual Result<void> Start() = 0;
  virtual void Stop() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Channel> OpenChannel(ChannelOptions options) = 0;
  virtual std::unique_ptr<Server> CreateServer(
      std::string socket_path, std::vector<std::unique_ptr<RpcService>> services) = 0;
};

// gRPC over unix sockets: HTTP/2 of our own on the loop, without a thread. To be destroyed on the
// loop, as everything made with it.
std::unique_ptr<Transport> MakeGrpcTransport(UvLoop& loop);

// What a server answers for a path nobody serves, by service if that is unknown, else by method.
std::string UnknownMethodText(const std::vector<std::string>& served, std::string_view path);

}  // namespace drakkar::rpc
