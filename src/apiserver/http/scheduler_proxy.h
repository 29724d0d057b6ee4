#pragma once

#include <memory>
#include <string>

#include "apiserver/http/node_proxy.h"
#include "apiserver/http/subresource_proxy.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// pods/why and resourceclaims/why, read-only: forwards the question to the active scheduler at the
// address it has published (ConfigMap kube-system/drakkar-scheduler). The user's name and groups
// are sent in headers, and the scheduler leaves out what that user may not see. The scheduler
// accepts these headers only from this server's client certificate.
//
// Bound to an HTTP loop; must outlive its requests.
class SchedulerProxy final : public SubresourceProxy {
 public:
  SchedulerProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own);
  ~SchedulerProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  // A client that trusts `ca_pem`; empty: the cluster's CA. Requests in flight keep it alive.
  std::shared_ptr<net::HttpClient> ClientFor(const std::string& ca_pem);

  UvLoop& loop_;
  const net::TlsClientOptions tls_;
  const IsOwnAddress is_own_;
  std::string ca_pem_;
  std::shared_ptr<net::HttpClient> http_;
};

}  // namespace drakkar::apiserver
