#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "rpc/grpc/framing.h"

namespace drakkar::rpc::grpc {

using StreamId = std::int32_t;

// Concurrent calls per connection; the peer queues the rest.
constexpr std::uint32_t kMaxConcurrentCalls = 128;

// The server side of one gRPC connection without I/O: bytes in through Receive, bytes out through
// Send, events through TakeEvents. There are no callbacks, so a session may be destroyed between
// any two calls.
//
// A call starts with its first message. Further messages are events for a streaming method and are
// dropped for any other. A request that is not gRPC gets an HTTP status (405, 415), everything else
// a gRPC status. Headers, messages and status leave in one Send as far as the peer's window allows.
class ServerSession {
 public:
  enum class EventType {
    kCall,       // a call starts with `request`
    kMessage,    // streaming: `request` is its next message
    kEnd,        // streaming: the peer sends no more messages
    kCancelled,  // the peer gave up a call that is not finished
  };
  struct Event {
    StreamId stream = 0;
    EventType type = EventType::kCall;
    std::string method = {};
    std::string request = {};
    std::optional<Duration> timeout = {};
  };
  // Ok if `method` is served. Otherwise the call ends with Unimplemented and the error's message.
  using CheckMethod = std::function<Result<void>(std::string_view method)>;
  // Whether the method takes a stream of messages.
  using IsStreaming = std::function<bool(std::string_view method)>;

  virtual ~ServerSession() = default;
  // An error means that the connection is unusable: write whatever Send still returns, then close.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends bytes to send until `out` holds `limit` bytes or more, or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual std::vector<Event> TakeEvents() = 0;
  // True when the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;

  // Each of these ignores a call that has finished or is unknown. SendMessage ends the call with
  // ResourceExhausted if the message is too large or the peer too far behind.
  virtual void SendMessage(StreamId stream, std::string_view message) = 0;
  // The status follows the messages sent so far.
  virtual void Finish(StreamId stream, const Status& status) = 0;
  // As Finish, but drops messages that have not been started yet.
  virtual void Abort(StreamId stream, const Status& status) = 0;
  // Aborts every unfinished call and accepts no more. The session is finished once the peer has
  // everything.
  virtual void Shutdown(const Status& status) = 0;
  virtual std::size_t open_calls() const = 0;
};

// Without `is_streaming` no method takes a stream.
std::unique_ptr<ServerSession> NewServerSession(ServerSession::CheckMethod check_method,
                                                ServerSession::IsStreaming is_streaming = {});

}  // namespace drakkar::rpc::grpc
