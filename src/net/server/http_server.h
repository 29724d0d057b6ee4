#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/http/message.h"
#include "net/http/raw_stream.h"
#include "net/http/session.h"
#include "net/http/url.h"
#include "net/socket/socket.h"
#include "net/tls/tls.h"

namespace drakkar::net {

// What is the same for all requests of a connection.
struct ConnectionInfo {
  std::string remote_address;  // "10.0.0.7:40312", "@" for a unix socket
  bool is_tls = false;
  bool is_http2 = false;
  std::optional<PeerIdentity> peer;  // of a client certificate that verified
  std::string peer_error;            // why one did not
};

struct ServerRequest {
  Method method = Method::kGet;
  std::string path;       // decoded
  std::string raw_path;   // as sent
  std::string raw_query;  // as sent
  Headers headers;
  std::string body;  // complete
  std::shared_ptr<const ConnectionInfo> connection;

  // The parsed query, parsed once. An error is the client's.
  const Result<Query>& query() const;

 private:
  mutable std::optional<Result<Query>> query_;
};

// The answer to one request. Bound to the server's loop. Everything may be called at any time after
// Handle: calls after the stream is over do nothing. Dropped without an answer, the client gets
// 500; dropped within a stream, the stream is broken off.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // The whole answer. Content-Length and Date are added.
  virtual void Send(int status, const Headers& headers, Body body) = 0;
  void Send(int status, const Headers& headers, std::string body) {
    Send(status, headers, Body{MakeSegment(std::move(body))});
  }

  // An answer in pieces: chunked in HTTP/1.1, DATA frames in HTTP/2.
  virtual void StartStream(int status, const Headers& headers) = 0;
  virtual void Write(Segment bytes) = 0;
  virtual void Finish() = 0;
  // Breaks the answer off, so that the client sees that it is incomplete.
  virtual void Abort() = 0;

  // Bytes of this answer that the connection has not taken yet: a writer that sees this grow
  // without end closes the stream.
  virtual std::size_t pending_bytes() const = 0;
  virtual bool is_closed() const = 0;
  // Called once: when the answer is complete and handed to the connection (true), or when the
  // client or the connection went away before (false). Not called after the writer is destroyed.
  virtual void OnClosed(std::function<void(bool completed)> callback) = 0;
  // Called each time pending_bytes comes down to zero.
  virtual void OnDrained(std::function<void()> callback) = 0;

  // 101 Switching Protocols with `headers` (Upgrade among them). Fails over HTTP/2 or when the
  // client did not ask; then answer with Send.
  virtual Result<std::unique_ptr<RawStream>> Upgrade(const Headers& headers) = 0;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // On the server's loop. May answer at once or later.
  virtual void Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) = 0;
};

struct HttpServerOptions {
  Address address;
  bool reuse_port = false;
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
  SessionLimits limits;
  std::size_t max_connections = 20'000;  // beyond: closed at once
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration request_timeout = std::chrono::seconds(60);  // to receive one request
  Duration idle_timeout = std::chrono::seconds(180);    // without a request
  Duration stall_timeout = std::chrono::seconds(60);    // peer takes no bytes of what is queued
  Duration drain_timeout = std::chrono::seconds(5);     // Stop waits this long for open requests
};

// HTTP/1.1 and HTTP/2 (by ALPN; without TLS by prior knowledge) on one UvLoop; ServerGroup is for
// several. Lives on its loop: construct, use and destroy it there.
class HttpServer {
 public:
  struct Stats {
    std::size_t connections = 0;
    std::uint64_t accepted = 0;
    std::uint64_t rejected = 0;  // over max_connections
    std::uint64_t requests = 0;
  };

  // `handler` must outlive the server.
  HttpServer(UvLoop& loop, HttpServerOptions options, RequestHandler& handler);
  ~HttpServer();  // closes everything at once

  Result<void> Start();
  // Instead: serves what Adopt brings, and listens nowhere.
  void StartAdopting();
  // Serves a connection that somebody else accepted. `place` is dropped when it has closed.
  void Adopt(DetachedSocket detached, std::shared_ptr<const void> place);
  std::uint16_t port() const;  // the one chosen, if the address says 0
  // Stops listening, lets open requests end (HTTP/2 clients get GOAWAY), closes what is left after
  // drain_timeout and calls `done` from the loop. May be called again.
  void Stop(std::function<void()> done = nullptr);
  // For connections from now on: a renewed certificate.
  void ReplaceTls(std::shared_ptr<const TlsContext> tls);
  Stats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
