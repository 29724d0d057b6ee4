#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/http/message.h"
#include "net/http/raw_stream.h"
#include "net/tls/tls.h"

namespace drakkar::net {

struct HttpClientOptions {
  TlsClientOptions tls;                                 // for https
  std::string unix_path;                                // connect here, whatever the URL's host
  bool http2_prior_knowledge = false;                   // HTTP/2 without TLS
  Duration connect_timeout = std::chrono::seconds(10);  // TLS handshake included
  Duration idle_timeout = std::chrono::seconds(90);     // of a pooled connection
  // An HTTP/2 connection with open streams that stays silent this long is pinged, and closed when
  // it stays silent for ping_timeout more.
  Duration ping_after = std::chrono::seconds(30);
  Duration ping_timeout = std::chrono::seconds(15);
  std::size_t max_connections_per_host = 64;
  std::size_t max_queued_requests = 20'000;  // beyond: kResourceExhausted
};

struct ClientRequest {
  Method method = Method::kGet;
  std::string url;  // absolute
  Headers headers;  // Host is added
  std::string body;
  Duration timeout{0};  // from the call to the end of the response; 0: none
  std::size_t max_response_bytes = 256 * 1024 * 1024;  // Do only; beyond: kResourceExhausted
};

// Receives a response as it arrives. No call is made from within HttpClient::Stream.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual void OnResponse(int status, const Headers& headers) = 0;
  virtual void OnData(std::string_view bytes) = 0;
  // The last call: a complete response, or why it is not.
  virtual void OnEnd(Result<void> result) = 0;
};

// Destroying it cancels the request: the sink is not called any more. Must be destroyed on the
// loop.
class [[nodiscard]] RequestHandle {
 public:
  virtual ~RequestHandle() = default;
};

struct UpgradedConnection {
  Response response;  // 101 and its headers, or the refusal
  std::unique_ptr<RawStream> stream;
};

// HTTP/1.1 and HTTP/2 over TLS (by ALPN), HTTP/1.1 over plain TCP, with a pool of connections per
// host: over HTTP/2 all requests share one until the server's stream limit is reached. A request
// that a server provably did not process is sent again; one with an idempotent method also when a
// reused connection broke before the first byte of its response. Errors name method and URL.
// Lives on its loop; destroying it drops all requests without a call.
class HttpClient {
 public:
  HttpClient(UvLoop& loop, HttpClientOptions options);
  ~HttpClient();

  // `callback` is called once from the loop. A status of 400 or above is a response, not an error.
  void Do(ClientRequest request, std::function<void(Result<Response>)> callback);
  // `sink` must outlive the handle or the call of OnEnd, whichever comes first.
  [[nodiscard]] std::unique_ptr<RequestHandle> Stream(ClientRequest request, StreamSink& sink);
  // On an HTTP/1.1 connection of its own. `request.headers` has Connection and Upgrade. With
  // another status than 101 there is no stream, and the response has the start of the body.
  [[nodiscard]] std::unique_ptr<RequestHandle> Upgrade(
      ClientRequest request, std::function<void(Result<UpgradedConnection>)> callback);

  std::size_t open_connections() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace drakkar::net
