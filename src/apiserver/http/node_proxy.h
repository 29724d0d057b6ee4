#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apiserver/http/subresource_proxy.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// Whether "host:port", an IP address and a port, is the API server's own: then it is no node.
// Called on HTTP loops.
using IsOwnAddress = std::function<bool(const std::string& host, std::uint16_t port)>;
// The usual answer: any address of this machine with the port we listen on (0: none yet).
IsOwnAddress OwnAddress(std::shared_ptr<const std::atomic<std::uint16_t>> port);

// pods/log: finds the pod's node and passes the node's answer on, as it comes. The node is asked
// over HTTPS with the certificate that the API server has for nodes, which is worth nothing
// elsewhere.
//
// Lives on an HTTP loop and must outlive its requests.
class PodLogProxy final : public SubresourceProxy {
 public:
  PodLogProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own);
  ~PodLogProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  const IsOwnAddress is_own_;
  net::HttpClient http_;
};

// nodes/proxy, reading only: GET /api/v1/nodes/{name}/proxy/{path} is the answer of the node's own
// port to GET /{path}. May be used by whoever may get nodes/proxy, which is as good as the node.
class NodeProxy final : public SubresourceProxy {
 public:
  NodeProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own);
  ~NodeProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  const IsOwnAddress is_own_;
  net::HttpClient http_;
};

// "https://10.0.0.7:10250" of a Node object: its internal address and its agent's port. The node
// writes both itself, so only an IP address that is not `is_own` will do: a node must not send the
// API server to itself, nor anywhere by name.
Result<std::string> NodeAgentUrl(const api::Object& node, const IsOwnAddress& is_own);

}  // namespace drakkar::apiserver
