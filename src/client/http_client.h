#pragma once

#include <memory>

#include "base/exec/uv_loop.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "net/client/http_client.h"

namespace drakkar::client {

// Whether fieldsV1 of managedFields can be looked into. It is of no use to parts of the system, and
// half of an object.
enum class FieldSets { kOpaque, kRead };

// A client over HTTP, of our API server or of a kube-apiserver. All calls and watches share its
// connections. A token that comes from a file (in `files`) is read again before it expires, see
// BearerToken. Lives on `loop`.
std::unique_ptr<Client> MakeHttpClient(UvLoop& loop, const ClusterAccess& access,
                                       std::string user_agent, FileSystem& files = RealFileSystem(),
                                       FieldSets field_sets = FieldSets::kOpaque);

// "/api/v1/namespaces/default/pods/a/status"
std::string PathOf(const ResourceRef& ref);

// The options for a raw HTTP client with the same access: discovery, logs, exec.
net::HttpClientOptions HttpOptionsFor(const ClusterAccess& access);

}  // namespace drakkar::client
