#pragma once

#include <memory>

#include "apiserver/http/frontend.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// pods/exec and pods/attach: a WebSocket from the client to the pod's node, bytes passed on both ways
// and read no faster than the other side takes them. The node speaks the channel protocol: it must be
// one of ours or declare ExtendWebSocketsToKubelet. SPDY is refused with a sentence, after everything
// else that may be wrong: clients fall back to it when a WebSocket is refused, and show that answer.
//
// Lives on the API server's loop and must outlive its requests.
class PodStreamProxy final : public SubresourceProxy {
 public:
  // Connections to one node, and to all of them.
  static constexpr std::size_t kMaxStreamsPerNode = 256;
  static constexpr std::size_t kMaxStreams = 2'000;

  PodStreamProxy(UvLoop& loop, Core& core, net::TlsClientOptions tls);
  ~PodStreamProxy() override;

  void Serve(const RequestInfo& info, const UserInfo& user, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  Core& core_;
  net::HttpClient http_;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace drakkar::apiserver
