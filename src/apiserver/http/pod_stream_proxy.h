#pragma once

#include <atomic>
#include <memory>

#include "apiserver/http/node_proxy.h"
#include "apiserver/http/subresource_proxy.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// pods/exec, pods/attach and pods/portforward: connects the client to the pod's node and forwards
// bytes both ways, no faster than the other side reads. SPDY passes through to every node. For exec
// and attach over a WebSocket the node must speak the channel protocol: it is one of ours or
// declares ExtendWebSocketsToKubelet. Port-forward over a WebSocket is SPDY in binary messages; the
// node gets what they contain.
//
// Bound to an HTTP loop; must outlive its requests. Proxies of one server share `open`.
class PodStreamProxy final : public SubresourceProxy {
 public:
  // Limits for connections of one loop to one node, of one user on one loop, and of all loops that
  // share a count.
  static constexpr std::size_t kMaxStreamsPerNode = 256;
  static constexpr std::size_t kMaxStreamsPerUser = 100;
  static constexpr std::size_t kMaxStreams = 2'000;

  using Count = std::atomic<std::size_t>;
  PodStreamProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own,
                 std::shared_ptr<Count> open = std::make_shared<Count>(0));
  ~PodStreamProxy() override;

  std::optional<Verb> AlsoNeeds(const net::ServerRequest& request) const override;
  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  const IsOwnAddress is_own_;
  net::HttpClient http_;
  const std::shared_ptr<Count> open_;
  OpenRequests places_{{kMaxStreams, kMaxStreamsPerNode, kMaxStreamsPerUser}};
};

}  // namespace drakkar::apiserver
