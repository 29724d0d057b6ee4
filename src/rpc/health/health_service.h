#pragma once

#include <memory>
#include <vector>

#include "rpc/health/health.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Serves `source`, which must outlive the service, under the given services.
std::unique_ptr<RpcService> MakeHealthService(HealthSource& source,
                                              std::vector<HealthService> services);

}  // namespace drakkar::rpc
