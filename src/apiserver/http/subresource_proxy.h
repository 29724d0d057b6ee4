#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/meta/object.h"
#include "apiserver/http/request_info.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// Serves a subresource that is not an object: logs, exec. Bound to an HTTP loop; knows nothing of
// the core.
class SubresourceProxy {
 public:
  // Where a pod answers.
  struct Address {
    std::string scheme;  // "http" or "https"
    std::string ip;
    std::uint16_t port = 0;
    // The pod is in the network of its machine, and the port is one of those that it declares.
    bool is_declared_on_host = false;
  };
  // What the core knew when it authorized the request.
  struct Target {
    api::ObjectPtr pod;   // null: there is none of that name, or the request is for a node
    api::ObjectPtr node;  // the request's or the pod's; null: none
    bool nodes_declare_features = true;  // gate NodeDeclaredFeatures
    UserInfo user;                       // who asks
    std::optional<Address> address;      // for pods/proxy and services/proxy
    api::ObjectPtr scheduler;  // for "why": the ConfigMap of the active scheduler; null: none
  };
  virtual ~SubresourceProxy() = default;

  // A verb that the user must be allowed in addition to the request's own.
  virtual std::optional<Verb> AlsoNeeds(const net::ServerRequest&) const { return std::nullopt; }
  // The request has been authorized.
  virtual void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
                     std::shared_ptr<net::ResponseWriter> writer) = 0;
};

}  // namespace drakkar::apiserver
