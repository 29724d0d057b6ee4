#pragma once

#include <memory>

#include "rpc/podresources/podresources.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Serves `provider`, which must outlive the service.
std::unique_ptr<RpcService> MakePodResourcesService(PodResourcesProvider& provider);

}  // namespace drakkar::rpc
