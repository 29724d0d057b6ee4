#pragma once

#include <memory>

#include "rpc/dra/dra.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Serves `plugin`, which must outlive the service, as the given versions.
std::unique_ptr<RpcService> MakeDraService(DraPluginService& plugin,
                                           std::vector<DraVersion> versions);

}  // namespace drakkar::rpc
