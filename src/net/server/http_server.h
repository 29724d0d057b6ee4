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

// What all requests of a connection share.
struct ConnectionInfo {
  std::string remote_address;  // "10.0.0.7:40312", "@" for a unix socket
  bool is_tls = false;
  bool is_http2 = false;
  std::optional<PeerIdentity> peer;  // from a verified client certificate
  std::string peer_error;            // why verification failed
  // From a client certificate of an authority for proxies, which may tell us who their clients are.
  std::optional<PeerIdentity> proxy;
  // A request on this connection was authenticated some other way. The handler sets it, on the
  // server's loop.
  mutable bool is_authenticated = false;
};

struct ServerRequest {
  Method method = Method::kGet;
  std::string path;       // decoded
  std::string raw_path;   // as sent
  std::string raw_query;  // as sent
  Headers headers;
  std::string body;  // complete
  std::shared_ptr<const ConnectionInfo> connection;

  // The query, parsed once. An error is the client's fault.
  const Result<Query>& query() const;

 private:
  mutable std::optional<Result<Query>> query_;
};

// The response to one request. Bound to the server's loop. All functions may be called at any time
// after Handle; after the stream has ended they are no-ops. If the writer is dropped without a
// response, the client gets 500; if it is dropped within a stream, the stream is aborted.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Sends the whole response. Adds Content-Length and Date.
  virtual void Send(int status, const Headers& headers, Body body) = 0;
  void Send(int status, const Headers& headers, std::string body) {
    Send(status, headers, Body{MakeSegment(std::move(body))});
  }

  // Starts a streamed response: chunked in HTTP/1.1, DATA frames in HTTP/2.
  virtual void StartStream(int status, const Headers& headers) = 0;
  virtual void Write(Segment bytes) = 0;
  virtual void Finish() = 0;
  // Aborts the response, so that the client sees that it is incomplete.
  virtual void Abort() = 0;

  // Bytes of this response that the connection has not accepted yet. If this keeps growing, the
  // writer should close the stream.
  virtual std::size_t pending_bytes() const = 0;
  virtual bool is_closed() const = 0;
  // Called once: when the response has been passed to the connection completely (true), or when the
  // client or the connection is gone before (false). Not called after the writer is destroyed.
  virtual void OnClosed(std::function<void(bool completed)> callback) = 0;
  // Called each time pending_bytes drops to zero.
  virtual void OnDrained(std::function<void()> callback) = 0;

  // Responds with 101 Switching Protocols and `headers` (including Upgrade). Fails over HTTP/2 or
  // if the client did not ask for it; use Send then.
  virtual Result<std::unique_ptr<RawStream>> Upgrade(const Headers& headers) = 0;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Called on the server's loop. May respond immediately or later.
  virtual void Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) = 0;

  // The response to a request whose body is not read.
  struct Rejection {
    int status = 0;
    Headers headers;
    std::string body;
  };
  // Decides from the head of a request (`head.body` is empty) whether its body, which is larger
  // than SessionLimits::max_unapproved_bytes, is read. `done` is called on the server's loop, at
  // once or later. By default every body is.
  virtual void CheckLargeBody(ServerRequest /*head*/,
                              std::function<void(std::optional<Rejection>)> done) {
    done(std::nullopt);
  }
};

struct HttpServerOptions {
  Address address;
  // Of a ServerGroup: another IPv4 address, on the same port. The host may not have it yet.
  std::string second_host;
  bool reuse_port = false;
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
  SessionLimits limits;
  std::size_t max_connections = 20'000;  // further ones are closed immediately
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration request_timeout = std::chrono::seconds(60);  // to receive one request
  Duration idle_timeout = std::chrono::seconds(180);    // without a request
  Duration stall_timeout = std::chrono::seconds(60);    // the peer does not accept queued bytes
  Duration drain_timeout = std::chrono::seconds(5);     // Stop waits this long for open requests
};

// HTTP/1.1 and HTTP/2 (chosen by ALPN; without TLS by prior knowledge) on one UvLoop; use
// ServerGroup for several. Lives on its loop: construct, use and destroy it there.
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
  // Serves connections passed to Adopt, instead of listening.
  void StartAdopting();
  // Serves a connection that was accepted elsewhere. `place` is dropped when it closes.
  void Adopt(DetachedSocket detached, std::shared_ptr<const void> place);
  std::uint16_t port() const;  // the chosen one if the address has port 0
  // Stops listening, lets open requests finish (HTTP/2 clients get GOAWAY), closes the rest after
  // drain_timeout, and calls `done` on the loop. May be called again.
  void Stop(std::function<void()> done = nullptr);
  // Applies to new connections; for a renewed certificate.
  void ReplaceTls(std::shared_ptr<const TlsContext> tls);
  Stats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
