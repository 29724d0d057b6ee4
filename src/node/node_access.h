#pragma once

#include <string>
#include <vector>

#include "client/access_reviewer.h"
#include "net/server/http_server.h"

namespace drakkar::node {

// The permissions that a request to the port of node `node_name` needs; any one of them is enough.
// The verb follows from the method and the Node subresource from the path, as in a kubelet of
// Kubernetes 1.37 (KEP-2862). Paths not listed there need nodes/proxy. Stricter in one point: exec
// and attach need "create" even when a WebSocket starts with a GET.
std::vector<client::AccessReviewer::Access> RequiredAccess(const net::ServerRequest& request,
                                                           const std::string& node_name);

}  // namespace drakkar::node
