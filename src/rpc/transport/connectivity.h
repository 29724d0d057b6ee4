#pragma once

#include <functional>
#include <memory>

namespace grpc {
class Channel;
}

namespace drakkar::rpc::internal {

// Watches a channel's connection and asks for a new one whenever it is lost. `report` runs on a
// thread of its own with each change of "connected", starting from false, until the channel is
// destroyed. Private to rpc/transport.
//
// gRPC offers connection changes only through a completion queue, so one thread for the whole
// process waits on one; it starts with the first watch and sleeps until something changes.
void KeepConnected(const std::shared_ptr<grpc::Channel>& channel,
                   std::function<void(bool connected)> report);

}  // namespace drakkar::rpc::internal
