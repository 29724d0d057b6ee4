#pragma once

#include <memory>

#include "apiserver/http/frontend.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// pods/log: finds the pod's node and passes the node's answer on, as it comes. The node is asked
// over HTTPS with the API server's own client certificate.
//
// Lives on the API server's loop and must outlive its requests.
class PodLogProxy final : public SubresourceProxy {
 public:
  PodLogProxy(UvLoop& loop, Core& core, net::TlsClientOptions tls);
  ~PodLogProxy() override;

  void Serve(const RequestInfo& info, const UserInfo& user, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  Core& core_;
  net::HttpClient http_;
};

// nodes/proxy, reading only: GET /api/v1/nodes/{name}/proxy/{path} is the answer of the node's own
// port to GET /{path}. May be used by whoever may get nodes/proxy, which is as good as the node.
class NodeProxy final : public SubresourceProxy {
 public:
  NodeProxy(UvLoop& loop, Core& core, net::TlsClientOptions tls);
  ~NodeProxy() override;

  void Serve(const RequestInfo& info, const UserInfo& user, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  Core& core_;
  net::HttpClient http_;
};

// "https://10.0.0.7:10250" of a Node object: its internal address and its agent's port.
Result<std::string> NodeAgentUrl(const api::Object& node);

}  // namespace drakkar::apiserver
