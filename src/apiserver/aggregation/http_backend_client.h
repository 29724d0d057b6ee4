#pragma once

#include <memory>

#include "apiserver/aggregation/backend_client.h"
#include "base/exec/lifetime.h"
#include "base/exec/uv_loop.h"
#include "net/tls/certificate_source.h"

namespace drakkar::apiserver {

// Sends requests over HTTPS on its own thread, so that handshakes and servers that hang do not hold
// up the core. The thread starts with the first call. Presents the certificate of the front proxy.
//
// Owned by the core's loop. Opens a connection for each call and keeps none: calls are rare, and a
// success must mean that the server can be reached now. At most kMaxOpen calls are open; further
// ones fail.
class HttpBackendClient final : public BackendClient {
 public:
  static constexpr std::size_t kMaxOpen = 200;

  // `certificate` may be null: none is presented.
  HttpBackendClient(EventLoop& core_loop, std::shared_ptr<net::CertificateSource> certificate);
  ~HttpBackendClient() override;

  void Get(Call call, std::function<void(Result<net::Response>)> done) override;

 private:
  struct Open;

  EventLoop& core_loop_;
  const std::shared_ptr<net::CertificateSource> certificate_;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<Open> open_;  // lives on the thread
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
