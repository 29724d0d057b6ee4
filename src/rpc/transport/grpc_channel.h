#pragma once

#include <memory>

#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Private to rpc/transport.
std::unique_ptr<Channel> MakeGrpcChannel(EventLoop& loop, ChannelOptions options);

}  // namespace drakkar::rpc
