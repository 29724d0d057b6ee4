#pragma once

#include <memory>

#include "rpc/registration/registration.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Serves `handler`, which must outlive the service.
std::unique_ptr<RpcService> MakeRegistrationService(RegistrationHandler& handler);

}  // namespace drakkar::rpc
