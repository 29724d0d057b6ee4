#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apiserver/http/frontend.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/watch_stream.h"
#include "net/websocket/handshake.h"

namespace drakkar::apiserver {

// One request and its response, private to the frontend. It belongs to the HTTP loop, is lent to
// the core's loop between ToCore and SendBack, and is destroyed on the HTTP loop
// (LoopBridge::Share).
struct Frontend::Exchange {
  FlowControl::Ticket ticket;                   // used by the HTTP loop only
  std::shared_ptr<net::ResponseWriter> writer;  // used by the HTTP loop only
  net::ServerRequest request;
  RequestInfo info;
  Negotiated negotiated;
  std::string include_object;
  bool accepts_gzip = false;
  MonotonicTime begun;
  std::string_view verb_name;  // "" for non-resource paths
  Verb verb = Verb::kGet;
  bool dry_run = false;
  bool mutating = false;
  std::string read_key;  // of a get whose response may be cached
  std::optional<ReadCache::Stamp> stamp;

  // For the core.
  bool identify = false;       // the core must authenticate the caller
  bool is_identified = false;  // it has done so, by a token
  UserInfo user;               // unless `identify`
  std::size_t token_hash = 0;  // of the bearer token, if `identify`
  std::string token_user;      // whose it is, once it is identified
  FlowControl::Level token_level = FlowControl::Level::kOther;
  std::optional<Failure> refusal;  // to be sent once the caller is authenticated
  Request asked;                   // for a resource
  bool is_large = false;           // its body is not decoded yet
  std::optional<Verb> also_needs;
  SubresourceProxy* proxy = nullptr;
  AggregatedApiPtr aggregated;  // the server behind it answers; null: we do
  std::unique_ptr<WatchStreamOptions> watch;
  std::optional<net::websocket::Accepted> web_socket;  // the watch's

  // From the core.
  Response response;
  std::shared_ptr<const DeviceUsage> usage;
  SubresourceProxy::Target target;
  std::string backend;  // the host of the server behind `aggregated`
  std::optional<HealthAnswer> health;
  net::Segment document;                        // JSON, unless it answers
  const Options::Question* question = nullptr;  // this
};

}  // namespace drakkar::apiserver
