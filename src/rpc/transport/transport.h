#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "rpc/grpc/limits.h"

namespace drakkar {
class UvLoop;
}

namespace drakkar::net {
class TlsContext;
}

namespace drakkar::rpc {

// Calls between processes as bytes: methods are paths ("/package.Service/Method"), and the
// neighbouring folders encode the messages. Production uses gRPC and simulations use
// MemoryTransport; clients and services cannot tell them apart.

struct ChannelOptions {
  std::string socket_path;
  // If set, connects over TCP instead of `socket_path`.
  std::string host;
  std::uint16_t port = 0;
  // If set, uses TLS. The server must present a certificate for `host` and negotiate "h2".
  std::shared_ptr<const net::TlsContext> tls = nullptr;
  std::string authority = "localhost";
  std::string user_agent = "grpc-drakkar/1";
  // The largest response accepted; beyond it a call ends with ResourceExhausted.
  std::size_t max_message_bytes = kMaxMessageBytes;
  // gRPC's default reconnect backoff, as Kubernetes keeps it: x1.6, plus up to 20 % of jitter.
  Duration initial_backoff = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(120);
  // From dialling to the server's first SETTINGS.
  Duration connect_timeout = std::chrono::seconds(20);
  // If greater than zero, a connection with calls that has been silent this long is pinged, and
  // closed if nothing arrives within `keepalive_timeout`.
  Duration keepalive_interval = Duration(0);
  Duration keepalive_timeout = std::chrono::seconds(10);
  // If greater than zero, a TCP connection whose peer does not acknowledge for this long what was
  // sent breaks.
  Duration unacknowledged_timeout = Duration(0);
  // If set, the channel connects at once, reconnects after every loss, and reports each change. It
  // starts out disconnected. If not set, the first call connects.
  std::function<void(bool connected)> on_connection_change = nullptr;
  // Why an attempt of such a channel to connect failed: "Connection refused". Must not destroy the
  // channel.
  std::function<void(const std::string& why)> on_connect_failed = nullptr;
};

// Header fields sent with a call, names in lower case.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct CallRequest {
  std::string method;  // "/package.Service/Method"
  std::string message;
  Duration timeout = std::chrono::seconds(10);
  Metadata metadata = {};
};

struct CallResult {
  Result<std::string> response;
  // Only with an error: the server certainly did not act on the call, so it is safe to retry.
  bool unprocessed = false;
};

struct StreamRequest {
  std::string method;
  std::optional<Duration> timeout = std::nullopt;  // of the whole stream
  Metadata metadata = {};
};

struct StreamCallbacks {
  std::function<void(std::string message)> on_message;
  // Called once, after the last message: ok if the server ended the stream without an error.
  absl::AnyInvocable<void(Result<void>)> on_end;
};

// A running stream. Destroying it cancels the call; no callback runs afterwards.
class [[nodiscard]] ClientStream {
 public:
  virtual ~ClientStream() = default;
  // Queues a message until the server's flow-control window has room. Beyond kMaxPendingMessages in
  // the queue the stream ends with ResourceExhausted. Ignored once the stream has ended.
  virtual void Send(const std::string& message) = 0;
  // No more messages follow; the server may still send.
  virtual void FinishSending() = 0;
};

// One connection to one server.
//
// Every callback runs on the loop. Destroying the channel cancels the calls in flight, and no
// callback runs afterwards. Lives on the loop. A stream reads one message at a time: the next is
// taken from the connection only after on_message has returned, so a slow reader slows the server
// down and buffers nothing here.
class Channel {
 public:
  virtual ~Channel() = default;

  // One request, one response. `done` runs once, never inside Start. Errors are those of
  // ErrorFromGrpcStatus.
  virtual void Start(CallRequest request, absl::AnyInvocable<void(CallResult)> done) = 0;

  // A stream in both directions. No callback runs inside Open.
  virtual std::unique_ptr<ClientStream> Open(StreamRequest request, StreamCallbacks callbacks) = 0;

  // As Start, for callers that do not retry.
  void Call(const std::string& method, const std::string& message, Duration timeout,
            absl::AnyInvocable<void(Result<std::string>)> done);

  // One request, a stream of responses.
  std::unique_ptr<ClientStream> Watch(const std::string& method, const std::string& message,
                                      StreamCallbacks callbacks);
};

// One call being answered: any number of messages, then a result. A unary method sends exactly one.
// Lives on the server's loop. Once the peer or the server is gone, every method is a no-op.
// Destroying an unfinished call answers Internal, so that no caller hangs on a dropped call.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual void Send(const std::string& message) = 0;
  virtual void Finish(Result<void> result) = 0;
  virtual bool IsCancelled() const = 0;
  // Runs at most once, when the peer goes away before Finish, or when it was cut off for falling
  // too far behind. Not when the server is stopped.
  virtual void OnCancelled(std::function<void()> callback) = 0;
  // Only for streaming methods, and only inside Handle: receives the messages after the first one.
  // `on_end` runs when the peer sends no more.
  virtual void OnMessage(std::function<void(std::string message)> on_message,
                         std::function<void()> on_end) = 0;
};

// A set of methods under their names on the wire.
class RpcService {
 public:
  virtual ~RpcService() = default;
  // "/package.Service/Method"; constant.
  virtual std::vector<std::string> MethodPaths() const = 0;
  // The methods that take a stream of messages; constant.
  virtual std::vector<std::string> StreamingPaths() const { return {}; }
  // Runs on the loop for each call, with its first message; keeps `call` until it is finished.
  virtual void Handle(std::string_view method, std::string request,
                      std::unique_ptr<ServerCall> call) = 0;
};

// A server on one unix socket.
//
// Start removes a stale socket file, listens, and sets the mode to 0600; an error names the path
// and the reason. Stop answers calls in flight with Unavailable, removes the socket file, and runs
// no handlers afterwards. While the transport exists, a slow peer has a moment to read its answers.
// Both are idempotent, and Start works again after Stop. Destroying the server stops it. Unknown
// methods are answered with Unimplemented. Lives on the loop, as do the services.
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

// gRPC over unix sockets, TCP and TLS: our own HTTP/2 on the loop, without a thread. Destroy it,
// and everything made with it, on the loop.
std::unique_ptr<Transport> MakeGrpcTransport(UvLoop& loop);

// The error message for an unserved path: names the service if that is unknown, else the method.
std::string UnknownMethodText(const std::vector<std::string>& served, std::string_view path);

}  // namespace drakkar::rpc
