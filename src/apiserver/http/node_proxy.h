#pragma once

#include <memory>

#include "apiserver/http/subresource_proxy.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// pods/log: finds the pod's node and passes the node's answer on, as it comes. The node is asked
// over HTTPS with the API server's own client certificate.
//
// Lives on an HTTP loop and must outlive its requests.
class PodLogProxy final : public SubresourceProxy {
 public:
  PodLogProxy(UvLoop& loop, net::TlsClientOptions tls);
  ~PodLogProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  net::HttpClient http_;
};

// nodes/proxy, reading only: GET /api/v1/nodes/{name}/proxy/{path} is the answer of the node's own
// port to GET /{path}. May be used by whoever may get nodes/proxy, which is as good as the node.
class NodeProxy final : public SubresourceProxy {
 public:
  NodeProxy(UvLoop& loop, net::TlsClientOptions tls);
  ~NodeProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  net::HttpClient http_;
};

// "https://10.0.0.7:10250" of a Node object: its internal address and its agent's port.
Result<std::string> NodeAgentUrl(const api::Object& node);

}  // namespace drakkar::apiserver
