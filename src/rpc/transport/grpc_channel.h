#pragma once

#include <memory>

#include "rpc/transport/transport.h"

namespace drakkar::rpc {

// Private to rpc/transport.

// Keeps gRPC and the threads of its callback queue up from their first use to the end of the
// process. Otherwise they end with each short registration call and start anew with the next, and
// version 1.51 now and then frees that queue twice while its last user goes.
void KeepGrpcUp();

std::unique_ptr<Channel> MakeGrpcChannel(EventLoop& loop, ChannelOptions options);

}  // namespace drakkar::rpc
