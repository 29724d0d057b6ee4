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

// Beyond what one connection may have in requests that are not complete, or in answers that the
// peer has not taken, a call ends with ResourceExhausted.
constexpr std::size_t kMaxBufferedBytes = 64u << 20;
// Calls of one connection at the same time; the peer lets more wait.
constexpr std::uint32_t kMaxConcurrentCalls = 128;

// The server's side of one gRPC connection without I/O: bytes in by Receive, bytes out by Send,
// what happened by TakeEvents. Nothing calls back, so a session may be destroyed between any two
// calls.
//
// A call starts with its first message, what follows that is ignored. A head that is no gRPC gets
// an HTTP status (405, 415), everything else a gRPC status. Answers leave in whole: head, messages
// and status in one Send as far as the peer's window lets them.
class ServerSession {
 public:
  struct Event {
    StreamId stream = 0;
    bool cancelled = false;  // the peer gave up a call that is not finished; else a call starts
    std::string method;
    std::string request;
    std::optional<Duration> timeout;
  };
  // The text to refuse an unknown method with, nothing for one that is served.
  using RefuseMethod = std::function<std::optional<std::string>(std::string_view method)>;

  virtual ~ServerSession() = default;
  // An error means that the connection is of no use any more: send what Send still gives and close.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends what is to be sent until `out` holds `limit` bytes or more, or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual std::vector<Event> TakeEvents() = 0;
  // True when the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;

  // Each of these ignores a call that is finished or gone. SendMessage ends the call with
  // ResourceExhausted if the message is too large or the peer too far behind.
  virtual void SendMessage(StreamId stream, std::string_view message) = 0;
  // The status follows the messages sent so far.
  virtual void Finish(StreamId stream, const Status& status) = 0;
  // Likewise, without the messages that are not on their way yet.
  virtual void Abort(StreamId stream, const Status& status) = 0;
  // Aborts every call that is not finished and takes no more; finished once the peer has it all.
  virtual void Shutdown(const Status& status) = 0;
  virtual std::size_t open_calls() const = 0;
};

std::unique_ptr<ServerSession> NewServerSession(ServerSession::RefuseMethod refuse_method);

}  // namespace drakkar::rpc::grpc
