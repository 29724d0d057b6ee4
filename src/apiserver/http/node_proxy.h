#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/http/open_requests.h"
#include "apiserver/http/request_forwarder.h"
#include "apiserver/http/subresource_proxy.h"
#include "base/exec/uv_loop.h"
#include "net/client/http_client.h"

namespace drakkar::apiserver {

// Whether "host:port", an IP address and a port, is the API server's own, and so cannot be a node.
// Called on HTTP loops.
using IsOwnAddress = std::function<bool(const std::string& host, std::uint16_t port)>;
// The default: any address of this machine with the port we listen on (0: none yet).
IsOwnAddress OwnAddress(std::shared_ptr<const std::atomic<std::uint16_t>> port);
// Also these: IP addresses and ports. Names are ignored.
IsOwnAddress OwnAddressOr(IsOwnAddress is_own,
                          const std::vector<std::pair<std::string, std::uint16_t>>& others);

// A certificate that was issued to a node is valid for that node only, even if both have the same
// address. Other serving certificates are checked by address alone.
Result<void> CheckNodeCertificate(const net::PeerIdentity& server, const std::string& node);

// pods/log: finds the pod's node and streams the node's response to the client. The connection to
// the node is HTTPS, with a client certificate that is valid for nodes only.
//
// Bound to an HTTP loop; must outlive its requests. Bounds: kMaxOpen logs at a time, of which
// kMaxOpenPerNode of one node and kMaxOpenPerUser for one user (429 beyond); kMaxUnread bytes of
// each in memory.
class PodLogProxy final : public SubresourceProxy {
 public:
  static constexpr std::size_t kMaxOpen = 1'000;
  static constexpr std::size_t kMaxOpenPerNode = 500;
  static constexpr std::size_t kMaxOpenPerUser = 250;
  static constexpr std::size_t kMaxUnread = 64u << 10;

  PodLogProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own);
  ~PodLogProxy() override;

  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  UvLoop& loop_;
  const IsOwnAddress is_own_;
  net::HttpClient http_;
  OpenRequests open_{{kMaxOpen, kMaxOpenPerNode, kMaxOpenPerUser}};
};

// nodes/proxy: /api/v1/nodes/{name}/proxy/{path} is /{path} of the node's agent, which trusts the
// API server. So these rights are equivalent to access to the node. The name may have the agent's
// port, but no other.
class NodeProxy final : public SubresourceProxy {
 public:
  NodeProxy(UvLoop& loop, net::TlsClientOptions tls, IsOwnAddress is_own);
  ~NodeProxy() override;

  std::optional<Verb> AlsoNeeds(const net::ServerRequest& request) const override;
  void Serve(const RequestInfo& info, Target target, net::ServerRequest request,
             std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  const IsOwnAddress is_own_;
  RequestForwarder forwarder_;
};

// "https://10.0.0.7:10250" from a Node object: its internal address and the port of its agent. The
// node writes both itself, so only an IP address that is not `is_own` is accepted: a node must not
// redirect the API server to itself, nor to any host by name.
Result<std::string> NodeAgentUrl(const api::Object& node, const IsOwnAddress& is_own);

}  // namespace drakkar::apiserver
