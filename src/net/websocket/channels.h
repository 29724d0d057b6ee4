#pragma once

#include <string_view>

namespace drakkar::net::websocket {

// Kubernetes' channel protocols: the first byte of each message is the channel of the rest. In v5,
// kChannelClose and a channel number close that channel.
inline constexpr std::string_view kChannelProtocolV5 = "v5.channel.k8s.io";
inline constexpr std::string_view kChannelProtocolV4 = "v4.channel.k8s.io";

inline constexpr char kChannelInput = 0;
inline constexpr char kChannelOutput = 1;
inline constexpr char kChannelErrorOutput = 2;
inline constexpr char kChannelStatus = 3;  // a meta/v1 Status, sent at the end
inline constexpr char kChannelResize = 4;  // {"Width":80,"Height":24}
inline constexpr char kChannelClose = static_cast<char>(255);

}  // namespace drakkar::net::websocket
