#pragma once

#include <memory>

#include "rpc/transport/transport.h"

namespace drakkar::rpc {

struct LoopContext;

// Private to rpc/transport.
std::unique_ptr<Channel> MakeGrpcChannel(std::shared_ptr<LoopContext> context,
                                         ChannelOptions options);

}  // namespace drakkar::rpc
