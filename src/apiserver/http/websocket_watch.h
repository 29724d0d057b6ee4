#pragma once

#include <memory>

#include "base/exec/event_loop.h"
#include "net/server/http_server.h"
#include "net/websocket/handshake.h"

namespace drakkar::apiserver {

// How the events of a watch are delimited in the byte stream.
enum class WatchFrames {
  kLines,     // JSON: each ends with a line feed; sent as text messages
  kPrefixed,  // protobuf: each begins with its length in four bytes; sent as binary messages
};

// For clients that watch over a WebSocket (Java): a writer whose stream becomes messages, one per
// event, once `writer` is upgraded. Responses that are not streams are sent unchanged. Messages
// from the client are ignored. Bound to the loop of `writer`.
std::shared_ptr<net::ResponseWriter> WatchOverWebSocket(EventLoop& loop,
                                                        std::shared_ptr<net::ResponseWriter> writer,
                                                        net::websocket::Accepted accepted,
                                                        WatchFrames frames);

}  // namespace drakkar::apiserver
