#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/message.h"

namespace drakkar::net {

// Names one exchange on a connection. HTTP/2's own number there, a counter in HTTP/1.1.
using StreamId = std::int32_t;

struct SessionLimits {
  std::size_t max_header_bytes = 64 * 1024;      // beyond: 431
  std::size_t max_body_bytes = 3 * 1024 * 1024;  // beyond: 413
  // Bodies of unfinished requests of one HTTP/2 connection together; beyond, a stream is refused.
  std::size_t max_buffered_bytes = 32 * 1024 * 1024;
  std::uint32_t max_concurrent_streams = 1000;
  // Streams that a peer may open and reset before an answer, beyond those answered normally;
  // beyond it the connection is closed (CVE-2023-44487).
  std::size_t max_early_resets = 200;
};

// The server's side of one HTTP connection without I/O: bytes in by Receive, bytes out by Send,
// events through the interface. Events may call back into the session. HTTP/1.1 and HTTP/2 alike.
class ServerSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // The complete request.
    virtual void OnRequest(StreamId stream, Request request) = 0;
    // The stream is over: answered in full and handed out by Send (`completed`), or given up by
    // the peer. Called once for each OnRequest unless the session is destroyed first.
    virtual void OnStreamClosed(StreamId stream, bool completed) = 0;
    // Bytes after a successful Upgrade.
    virtual void OnRawData(std::string_view bytes) = 0;
  };

  virtual ~ServerSession() = default;
  // An error means that the connection is of no use any more: send what Send still gives and close.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  // Appends what is to be sent until `out` holds `limit` bytes or more, or nothing is left.
  virtual void Send(std::string& out, std::size_t limit) = 0;
  // True when the connection should be closed once everything from Send is written.
  virtual bool IsFinished() const = 0;
  // False while the session would only buffer: stop reading from the peer.
  virtual bool WantsRead() const { return true; }

  // Answers. `final` closes the stream after `body`; otherwise Write and Finish follow. Each of
  // these ignores a stream that is over.
  virtual void Respond(StreamId stream, int status, const Headers& headers, Body body,
                       bool final) = 0;
  virtual void Write(StreamId stream, Segment bytes) = 0;
  virtual void Finish(StreamId stream) = 0;
  // Breaks the stream off, visibly for the peer.
  virtual void Reset(StreamId stream) = 0;
  // Bytes of the stream that Send has not handed out yet.
  virtual std::size_t PendingBytes(StreamId stream) const = 0;

  // Answers 101 and turns the connection into a raw stream; false if it cannot (HTTP/2, or the
  // request did not ask for it).
  virtual bool Upgrade(StreamId stream, const Headers& headers) = 0;
  virtual void WriteRaw(std::string_view bytes) = 0;
  // Raw bytes that Send has not handed out yet.
  virtual std::size_t PendingRawBytes() const = 0;

  // Takes no new requests; finished once those that are open are answered.
  virtual void Shutdown() = 0;
  // Requests that were handed out or are partly received.
  virtual std::size_t open_streams() const = 0;
  // The oldest stream whose request is partly received, or 0: what a slow sender holds up.
  virtual StreamId ReceivingStream() const = 0;
};

// The client's side, likewise.
class ClientSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnResponse(StreamId stream, int status, Headers headers) = 0;
    virtual void OnData(StreamId stream, std::string_view bytes) = 0;
    // After this the stream is gone. `error` is null at a regular end. `unprocessed`: the peer is
    // known not to have acted on the request, so it may be sent again.
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
  // Only while CanSubmit.
  virtual Result<StreamId> Submit(const Request& request, std::string_view scheme) = 0;
  // No event for this stream follows.
  virtual void Cancel(StreamId stream) = 0;
  virtual void WriteRaw(std::string_view bytes) = 0;
  // Raw bytes that Send has not handed out yet.
  virtual std::size_t PendingRawBytes() const = 0;
  virtual void Ping() {}
  virtual void Shutdown() = 0;
  virtual std::size_t open_streams() const = 0;
};

}  // namespace drakkar::net
