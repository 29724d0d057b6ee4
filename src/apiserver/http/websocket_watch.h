#pragma once

#include <memory>

#include "base/exec/event_loop.h"
#include "net/server/http_server.h"
#include "net/websocket/handshake.h"

namespace drakkar::apiserver {

// How the events of a watch are separated in what is written.
enum class WatchFrames {
  kLines,     // JSON: each ends with a line end; sent as text messages
  kPrefixed,  // protobuf: each begins with its length in four bytes; sent as binary messages
};

// For clients that watch over a WebSocket (Java): a writer whose stream becomes messages, one per
// event, after the upgrade of `writer`. Responses that are no streams are sent as they are. What
// the client sends is ignored. Bound to the loop of `writer`.
std::shared_ptr<net::ResponseWriter> WatchOverWebSocket(EventLoop& loop,
                                                        std::shared_ptr<net::ResponseWriter> writer,
                                                        net::websocket::Accepted accepted,
                                                        WatchFrames frames);

}  // namespace drakkar::apiserver
