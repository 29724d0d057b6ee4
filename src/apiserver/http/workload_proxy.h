#pragma once

#include "apiserver/http/node_proxy.h"
#include "apiserver/http/request_forwarder.h"
#include "apiserver/http/subresource_proxy.h"

namespace drakkar::apiserver {

// pods/proxy and services/proxy: /api/v1/namespaces/{namespace}/pods/{name}/proxy/{path} is /{path}
// of the pod. The pod learns nothing about the caller and does not see a certificate of this
// server; its own is not verified, since nobody can tell what it should be.
//
// An address of this machine is refused unless the pod is in the machine's network and declares the
// port; the server's own address and those of its store are always refused.
//
// Bound to an HTTP loop; must outlive its requests.
class WorkloadProxy final : public SubresourceProxy {
 public:
  // Called on HTTP loops; null: net::IsThisMachine.
  using IsThisMachine = std::function<bool(const std::string& ip)>;

  // `is_own` also for the store: whoever reaches that without a password has the cluster.
  WorkloadProxy(UvLoop& loop, IsOwnAddress is_own, IsThisMachine is_this_machine = nullptr);
  ~WorkloadProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  const IsOwnAddress is_own_;
  const IsThisMachine is_this_machine_;
  RequestForwarder forwarder_;
};

}  // namespace drakkar::apiserver
