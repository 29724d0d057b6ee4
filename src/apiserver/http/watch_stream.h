#pragma once

#include <memory>

#include "apiserver/http/negotiate.h"
#include "apiserver/http/table.h"
#include "apiserver/rest/core.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

struct WatchStreamOptions {
  Request request;
  Negotiated negotiated;
  bool bookmarks = false;
  bool send_initial_events = false;
  std::optional<Duration> timeout;
  bool skip_operations_as_list = false;
  // For tables.
  TableOptions::Include include_object = TableOptions::Include::kMetadata;
  decltype(TableOptions::allocated_devices) allocated_devices;
};

// Answers a watch over HTTP: one JSON document or one frame of protobuf per event, durable ones only. It ends at the timeout,
// when the client leaves, or when the client falls kMaxPendingBytes behind (it then watches again
// from where it was). Lives until its response ends.
void ServeWatch(Core& core, WatchStreamOptions options, std::shared_ptr<net::ResponseWriter> writer);

// A watcher this far behind is cut off: cheaper than buffering for it, and no slow client can grow
// the server.
constexpr std::size_t kMaxPendingBytes = 8u << 20;

}  // namespace drakkar::apiserver
