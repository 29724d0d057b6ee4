#pragma once

#include <cstddef>

namespace drakkar::rpc {

// The largest message either side accepts by default. A List of pod resources on a full node fits
// many times over.
constexpr int kMaxMessageBytes = 16 << 20;
// The largest message that the node accepts from a driver, as a kubelet does. Decoded, a message of
// many empty parts takes some hundred times its size.
constexpr std::size_t kMaxDriverMessageBytes = 4u << 20;
// Devices of one claim, or of one health report, in such a message. Beyond this it is malformed.
constexpr int kMaxDriverDevices = 32'768;

// A peer that falls this many messages behind on a stream is cut off with ResourceExhausted. It
// reconnects and starts over.
constexpr std::size_t kMaxPendingMessages = 1'024;

namespace grpc {

// Byte limit per connection for incomplete requests, and for messages the peer has not accepted
// yet. Beyond it a call ends with ResourceExhausted.
constexpr std::size_t kMaxBufferedBytes = 64u << 20;

}  // namespace grpc
}  // namespace drakkar::rpc
