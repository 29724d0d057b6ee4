#pragma once

#include <memory>

#include "apiserver/http/change_feed.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/table.h"
#include "apiserver/http/watch_events.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

struct WatchStreamOptions {
  Request request;
  Negotiated negotiated;
  bool bookmarks = false;
  std::optional<bool> send_initial_events;  // default: true if no version is given
  std::optional<Duration> timeout;
  bool skip_operations_as_list = false;
  TableOptions::Include include_object = TableOptions::Include::kMetadata;  // for tables
};

// Limit for a watcher that is behind. Beyond it the watch is closed: cheaper than buffering, and no
// slow client can make the server grow.
constexpr std::size_t kMaxPendingBytes = 8u << 20;
// Limit for changes that wait until a webhook has converted one before them. Beyond it the watch is
// closed too.
constexpr std::size_t kMaxHeldChanges = 5'000;
// How long it then has to read what is queued before it is disconnected.
constexpr Duration kExpiredGrace = std::chrono::seconds(30);

// Answers a watch over HTTP: one JSON document or protobuf frame per event, durable events only. It
// ends at the timeout, when the client leaves, or when the client falls kMaxPendingBytes behind;
// then the last event is the error 410 Expired, and the client lists again. Bound to the HTTP loop
// `loop` until its response ends; `feed` and `events`, on the same loop, must outlive it.
void ServeWatch(EventLoop& loop, ChangeFeed& feed, WatchEvents& events, WatchStreamOptions options,
                std::shared_ptr<net::ResponseWriter> writer);

}  // namespace drakkar::apiserver
