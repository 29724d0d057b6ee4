#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/body_memory.h"
#include "net/http/message.h"

namespace drakkar::net {

// Identifies one exchange on a connection: the HTTP/2 stream ID, or a counter in HTTP/1.1.
using StreamId = std::int32_t;

struct SessionLimits {
  std::size_t max_header_bytes = 64 * 1024;      // beyond: 431
  std::size_t max_body_bytes = 3 * 1024 * 1024;  // beyond: 413
  // Limit for the bodies of unfinished requests of one HTTP/2 connection together; beyond it,
  // streams are refused.
  std::size_t max_buffered_bytes = 32 * 1024 * 1024;
  std::uint32_t max_concurrent_streams = 1000;
  // How much of a body is read before its request is approved (Events::OnLargeBody).
  std::size_t max_unapproved_bytes = 64 * 1024;
  // Shared by the bodies of all requests; beyond it: 429. Null: no such limit.
  std::shared_ptr<BodyMemory> body_memory;
  // Frames that carry nothing (empty DATA, PING, SETTINGS, PRIORITY, small CONTINUATION ...) that a
  // peer may send between two calls of ServerSession::Forgive; beyond it the connection is closed.
  std::size_t max_idle_frames = 4'000;
  // How many streams a peer may reset before a response, in addition to those answered normally;
  // beyond it the connection is closed (CVE-2023-44487).
  std::size_t max_early_resets = 200;
};

// The server side of an HTTP connection without I/O: bytes in through Receive, bytes out through
// Send, events through the interface. Events may call back into the session. Common to HTTP/1.1 and
// HTTP/2.
class ServerSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // The complete request.
    virtual void OnRequest(StreamId stream, Request request) = 0;
    // The body of a request turns out to be larger than max_unapproved_bytes; `head` has none of
    // it. True reads it. After false the session stops the sender until ApproveBody or RejectBody
    // is called, within this call or later.
    virtual bool OnLargeBody(StreamId /*stream*/, const Request& /*head*/) { return true; }
    // Whether the peer has not been authenticated.
    virtual bool IsStranger() const { return false; }
    // The stream has ended: the response was popped completely by Send (`completed`), or the peer
    // gave up. Called once per OnRequest unless the session is destroyed first.
    virtual void OnStreamClosed(StreamId stream, bool completed) = 0;
    // Bytes after a successful Upgrade.
    virtual void OnRawData(std::string_view bytes) = 0;
  };

  virtual ~ServerSession() = default;
  // After an error, send what Send still returns and close the connection.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends bytes to be sent until `out` holds at least `limit` bytes or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  // True if the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;
  // False while the session could only buffer: stop reading from the peer.
  virtual bool WantsRead() const { return true; }

  // Answers to OnLargeBody; no-ops for a stream that has ended. A rejected request is answered
  // without being read to its end.
  virtual void ApproveBody(StreamId stream) = 0;
  virtual void RejectBody(StreamId stream, int status, const Headers& headers, Body body) = 0;
  // Called regularly: frames that carried nothing are forgotten after a while.
  virtual void Forgive() {}

  // Responds. `final` closes the stream after `body`; otherwise Write and Finish follow. These are
  // no-ops for a stream that has ended.
  virtual void Respond(StreamId stream, int status, const Headers& headers, Body body,
                       bool final) = 0;
  virtual void Write(StreamId stream, Segment bytes) = 0;
  virtual void Finish(StreamId stream) = 0;
  // Aborts the stream, visibly to the peer.
  virtual void Reset(StreamId stream) = 0;
  // Bytes of the stream that Send has not popped yet.
  virtual std::size_t PendingBytes(StreamId stream) const = 0;

  // Responds with 101 and turns the connection into a raw stream; false if that is not possible
  // (HTTP/2, or the request did not ask for it).
  virtual bool Upgrade(StreamId stream, const Headers& headers) = 0;
  virtual void WriteRaw(std::string_view bytes) = 0;
  // Raw bytes that Send has not popped yet.
  virtual std::size_t PendingRawBytes() const = 0;

  // Accepts no new requests; finished once the open ones are answered.
  virtual void Shutdown() = 0;
  // Requests that were delivered or are partly received.
  virtual std::size_t open_streams() const = 0;
  // The oldest stream whose request is only partly received, or 0. Used to time out slow senders.
  virtual StreamId ReceivingStream() const = 0;
};

// The client side, in the same way.
class ClientSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnResponse(StreamId stream, int status, Headers headers) = 0;
    virtual void OnData(StreamId stream, std::string_view bytes) = 0;
    // The stream has ended. `error` is null at a regular end. `unprocessed`: the peer is known not
    // to have acted on the request, so it can be retried.
    virtual void OnStreamEnd(StreamId stream, const Error* error, bool unprocessed) = 0;
    virtual void OnRawData(std::string_view bytes) = 0;
  };

  virtual ~ClientSession() = default;
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // The peer closed its side: ends streams that this completes (HTTP/1.1 bodies without a length).
  virtual void ReceiveEnd() {}
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual bool IsFinished() const = 0;
  virtual bool CanSubmit() const = 0;
  // Requires CanSubmit.
  virtual Result<StreamId> Submit(const Request& request, std::string_view scheme) = 0;
  // No events for this stream follow.
  virtual void Cancel(StreamId stream) = 0;
  virtual void WriteRaw(std::string_view bytes) = 0;
  // Raw bytes that Send has not popped yet.
  virtual std::size_t PendingRawBytes() const = 0;
  virtual void Ping() {}
  virtual void Shutdown() = 0;
  virtual std::size_t open_streams() const = 0;
};

}  // namespace drakkar::net
