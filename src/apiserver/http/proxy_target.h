#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/http/subresource_proxy.h"
#include "apiserver/request/failure.h"
#include "base/env/random.h"

namespace drakkar::apiserver {

class Core;

// The name in a path with /proxy: "name", "name:port" or "scheme:name:port".
struct ProxyName {
  std::string scheme;  // "http", "https" or ""
  std::string name;
  std::string port;  // a number, a name or ""
};
// Nothing if it is malformed.
std::optional<ProxyName> ParseProxyName(std::string_view text);

// Finds what `info`, a path with /proxy, refers to. For pods and services that is an address: that
// of the pod, with the given or its first port; or that of a pod that is ready to serve the given
// port of the service. Only pods' own global addresses are accepted: none of a cloud's metadata
// service, and none of a node other than the pod's. Runs on the core's loop.
std::optional<Failure> FindProxyTarget(const Core& core, const RequestInfo& info, Random& random,
                                       SubresourceProxy::Target& target);

}  // namespace drakkar::apiserver
