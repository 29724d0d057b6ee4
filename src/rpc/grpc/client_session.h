#pragma once

#include <cstdint>
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

// The client's side of one gRPC connection without I/O: bytes in by Receive, bytes out by Send,
// what happened by TakeEvents. Nothing calls back, so a session may be destroyed between any two
// calls.
//
// Calls beyond what the server lets run at once wait here. A stream's window is opened again by
// Send, and so after its messages were taken; of each call at most one incomplete message is held.
class ClientSession {
 public:
  struct CallHead {
    std::string_view method;  // "/package.Service/Method"
    std::string_view authority;
    std::optional<Duration> timeout;
    std::string_view user_agent = {};  // empty: none is sent
  };
  struct Event {
    StreamId stream = 0;
    std::optional<std::string> message;  // none: the call is over
    Status status;                       // then: with this
  };

  virtual ~ClientSession() = default;
  // An error means that the connection is of no use any more: send what Send still gives and close.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends what is to be sent until `out` holds `limit` bytes or more, or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual std::vector<Event> TakeEvents() = 0;

  // The server has introduced itself: it speaks HTTP/2 and calls may start.
  virtual bool IsReady() const = 0;
  // No more calls can start, because the server says so or the connection has had its 2^30; those
  // that the server has seen go on.
  virtual bool IsGoingAway() const = 0;
  // True when the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;

  // Only while not going away. Fails if it goes away now, or for a method that is no path.
  virtual Result<StreamId> Start(const CallHead& head, std::string_view request) = 0;
  // No event for this call follows.
  virtual void Cancel(StreamId stream) = 0;
  virtual std::size_t open_calls() const = 0;
};

std::unique_ptr<ClientSession> NewClientSession();

}  // namespace drakkar::rpc::grpc
