#include "apiserver/http/workload_proxy.h"

#include "api/meta/status.h"
#include "apiserver/http/forwarding.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"

namespace drakkar::apiserver {
namespace {

net::TlsClientOptions AnyCertificate() {
  net::TlsClientOptions tls;
  tls.insecure = true;
  return tls;
}

}  // namespace

WorkloadProxy::WorkloadProxy(UvLoop& loop, IsOwnAddress is_own, IsThisMachine is_this_machine)
    : is_own_(std::move(is_own)),
      is_this_machine_(is_this_machine ? std::move(is_this_machine)
                                       : IsThisMachine(&net::IsThisMachine)),
      forwarder_(loop, AnyCertificate()) {}
WorkloadProxy::~WorkloadProxy() = default;

void WorkloadProxy::Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                          std::shared_ptr<net::ResponseWriter> writer) {
  const Address& address = *target.address;
  if (is_own_(address.ip, address.port)) {
    return Refuse(*writer, api::StatusBadRequest(
                               "address not allowed: it is that of this API server or its store"));
  }
  if (is_this_machine_(address.ip) && !address.is_declared_on_host) {
    return Refuse(*writer, api::StatusBadRequest(
                               "address not allowed: it is that of the API server's machine, and "
                               "no pod with hostNetwork declares this port"));
  }
  const bool is_ipv6 = address.ip.find(':') != std::string::npos;
  forwarder_.Forward({.url = StrCat(address.scheme, "://", is_ipv6 ? "[" : "", address.ip,
                                    is_ipv6 ? "]" : "", ":", address.port),
                      .peer = {},
                      .keeps_host = true},
                     info, target.user.name, std::move(request), std::move(writer));
}

}  // namespace drakkar::apiserver
