#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "client/client.h"
#include "client/fence.h"
#include "client/kubeconfig.h"
#include "net/client/http_client.h"

namespace drakkar::client {

// Whether fieldsV1 of managedFields is parsed. Components do not use it, and it is half of an
// object's size.
enum class FieldSets { kOpaque, kRead };

// A client over HTTP, for our API server or a kube-apiserver. All calls and watches share its
// connections.
//
// If there are several servers (`other_servers`), requests go to one of them, and to the next when
// it gives no answer or says that it cannot serve (503, 504). Watches of the server that was left
// end with kUnavailable. Reads that failed are sent to the next server; writes are not, since they
// may have happened.
//
// `on_server` is called with the address of the server when requests go to another one.
//
// A token that comes from a file (in `files`) is read again before it expires, see
// BearerToken. Bound to `loop`.
std::unique_ptr<Client> MakeHttpClient(UvLoop& loop, const ClusterAccess& access,
                                       std::string user_agent, FileSystem& files = RealFileSystem(),
                                       FieldSets field_sets = FieldSets::kOpaque,
                                       Fence fence = nullptr,
                                       std::function<void(const std::string&)> on_server = nullptr);

// "/api/v1/namespaces/default/pods/a/status"
std::string PathOf(const ResourceRef& ref);

// Options for a plain HTTP client with the same access: for discovery, logs and exec.
net::HttpClientOptions HttpOptionsFor(const ClusterAccess& access);

}  // namespace drakkar::client
