#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/http/message.h"
#include "net/http/raw_stream.h"
#include "net/http/url.h"
#include "net/tls/tls.h"

namespace drakkar::net {

// A server that connects to others for its clients.
struct HttpProxy {
  std::string host;
  std::uint16_t port = 0;
  std::string authorization;  // the value of Proxy-Authorization; empty: none
};

struct HttpClientOptions {
  TlsClientOptions tls;   // for https
  std::string unix_path;  // if set, connect here instead of the URL's host
  // How to reach the server of a URL; nothing: directly. https goes through a tunnel (CONNECT), so
  // that the proxy sees only the server's name. Null: everything directly.
  std::function<std::optional<HttpProxy>(const Url& url)> proxy_of = nullptr;
  bool http2_prior_knowledge = false;                   // HTTP/2 without TLS
  Duration connect_timeout = std::chrono::seconds(10);  // including the TLS handshake
  Duration idle_timeout = std::chrono::seconds(90);     // of a pooled connection
  // An HTTP/2 connection with open streams that is silent for this long is pinged, and closed if it
  // stays silent for ping_timeout.
  Duration ping_after = std::chrono::seconds(30);
  Duration ping_timeout = std::chrono::seconds(15);
  // A connection whose peer does not acknowledge for this long what was sent breaks; 0: never.
  Duration unacknowledged_timeout{0};
  std::size_t max_connections_per_host = 64;
  std::size_t max_queued_requests = 20'000;  // beyond this: kResourceExhausted
};

struct ClientRequest {
  Method method = Method::kGet;
  std::string url;  // absolute
  Headers headers;  // Host is added
  // Who serves the URL, for TlsClientOptions::check_peer. Requests with different peers share no
  // connection.
  std::string peer;
  std::string body;
  Duration timeout{0};  // from the call to the end of the response; 0 for none
  // only for Do; beyond this: kResourceExhausted
  std::size_t max_response_bytes = 256 * 1024 * 1024;
};

// Receives a response as it arrives. Never called from within HttpClient::Stream.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual void OnResponse(int status, const Headers& headers) = 0;
  virtual void OnData(std::string_view bytes) = 0;
  // The last call: success if the response is complete, otherwise an error.
  virtual void OnEnd(Result<void> result) = 0;
};

// Destroying it cancels the request; the sink is not called afterwards. Must be destroyed on the
// loop.
class [[nodiscard]] RequestHandle {
 public:
  virtual ~RequestHandle() = default;
  // If false, nothing more of the response is read until it is true again, as back-pressure; what
  // has been read already still arrives. Without effect over HTTP/2, whose connections are shared.
  virtual void SetReading(bool /*reading*/) {}
};

struct UpgradedConnection {
  Response response;  // 101 and its headers, or the rejection
  std::unique_ptr<RawStream> stream;
};

// HTTP/1.1 and HTTP/2 over TLS (chosen by ALPN), HTTP/1.1 over plain TCP, with a connection pool
// per host. With HTTP/2 all requests share one connection until the server's stream limit is
// reached. A request that the server provably did not process is retried; one with an idempotent
// method also if a reused connection broke before the first byte of the response. Errors include
// method and URL. Lives on its loop; destroying it drops all requests without a callback.
class HttpClient {
 public:
  HttpClient(UvLoop& loop, HttpClientOptions options);
  ~HttpClient();

  // Calls `callback` once on the loop. A status of 400 or above is a response, not an error.
  void Do(ClientRequest request, std::function<void(Result<Response>)> callback);
  // `sink` must outlive the handle or the OnEnd call, whichever comes first.
  [[nodiscard]] std::unique_ptr<RequestHandle> Stream(ClientRequest request, StreamSink& sink);
  // Uses a separate HTTP/1.1 connection. `request.headers` has Connection and Upgrade. If the
  // status is not 101 there is no stream, and the response has the start of the body.
  [[nodiscard]] std::unique_ptr<RequestHandle> Upgrade(
      ClientRequest request, std::function<void(Result<UpgradedConnection>)> callback);

  std::size_t open_connections() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
