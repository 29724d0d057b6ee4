#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "rpc/grpc/framing.h"

namespace drakkar::rpc::grpc {

using StreamId = std::int32_t;
using Metadata = std::vector<std::pair<std::string, std::string>>;

// The client side of one gRPC connection without I/O: bytes in through Receive, bytes out through
// Send, events through TakeEvents. There are no callbacks, so a session may be destroyed between
// any two calls.
//
// Calls beyond the server's concurrency limit wait here. Messages to the server wait until its
// flow-control windows have room, within kMaxPendingMessages and kMaxBufferedBytes per call. Send
// reopens the receive windows, so a caller that stops calling it slows the server down; at most one
// incomplete message is buffered per call.
class ClientSession {
 public:
  struct CallHead {
    std::string_view method;  // "/package.Service/Method"
    std::string_view authority;
    std::optional<Duration> timeout;
    std::string_view user_agent = {};    // empty: none is sent
    std::string_view scheme = "http";    // "https" over TLS
    const Metadata* metadata = nullptr;  // extra header fields, names in lower case; may be null
  };
  struct Event {
    StreamId stream = 0;
    std::optional<std::string> message;  // nullopt: the call has ended
    Status status = {};                  // then: its status
    bool unprocessed = false;            // then: the server is known not to have acted on the call
  };

  virtual ~ClientSession() = default;
  // An error means that the connection is unusable: write whatever Send still returns, then close.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends bytes to send until `out` holds `limit` bytes or more, or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual std::vector<Event> TakeEvents() = 0;

  // The server's SETTINGS have arrived: it speaks HTTP/2 and calls may start.
  virtual bool IsReady() const = 0;
  // No more calls can start, because of a GOAWAY or because the connection has used up its stream
  // ids. Calls that the server has seen continue.
  virtual bool IsGoingAway() const = 0;
  // True when the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;

  // Opens a call; SendMessage and FinishSending follow. Only while not going away. Fails if it goes
  // away now, or if the method is not a path.
  virtual Result<StreamId> Open(const CallHead& head) = 0;
  // Queues a message. The call ends with ResourceExhausted if the message is too large or the
  // server too far behind. Ignored for a call that has ended.
  virtual void SendMessage(StreamId stream, std::string_view message) = 0;
  // No more messages follow. Ignored for a call that has ended.
  virtual void FinishSending(StreamId stream) = 0;
  // Opens a call with exactly one message.
  Result<StreamId> Start(const CallHead& head, std::string_view request) {
    const Result<StreamId> stream = Open(head);
    if (stream.ok()) {
      SendMessage(*stream, request);
      FinishSending(*stream);
    }
    return stream;
  }
  // No event for this call follows.
  virtual void Cancel(StreamId stream) = 0;
  // Whether any of the call has been handed out by Send. If not, the server cannot have seen it.
  virtual bool WasSent(StreamId stream) const = 0;
  // Queues a PING; any received byte shows that the server is alive.
  virtual void Ping() = 0;
  virtual std::size_t open_calls() const = 0;
};

std::unique_ptr<ClientSession> NewClientSession(std::size_t max_message_bytes = kMaxMessageBytes);

}  // namespace drakkar::rpc::grpc
