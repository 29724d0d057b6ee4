#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rpc/transport/transport.h"

namespace drakkar::rpc {

struct LoopContext;

// Private to rpc/transport.
std::unique_ptr<Server> MakeGrpcServer(std::shared_ptr<LoopContext> context,
                                       std::string socket_path,
                                       std::vector<std::unique_ptr<RpcService>> services);

}  // namespace drakkar::rpc
