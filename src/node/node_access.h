#pragma once

#include <string>
#include <vector>

#include "client/access_reviewer.h"
#include "net/server/http_server.h"

namespace drakkar::node {

// What a request to the port of the node `node_name` takes, any one of it: the verb by the method,
// and the subresource of the Node by the path, as a kubelet of Kubernetes 1.37 has it (KEP-2862).
// Everything that is not named there is nodes/proxy. Stricter in one thing: running and attaching
// to commands takes "create" also where a WebSocket begins with a GET.
std::vector<client::AccessReviewer::Access> RequiredAccess(const net::ServerRequest& request,
                                                           const std::string& node_name);

}  // namespace drakkar::node
