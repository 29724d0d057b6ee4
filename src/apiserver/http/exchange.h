#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apiserver/http/frontend.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/watch_stream.h"

namespace drakkar::apiserver {

// One request on its way through, private to the frontend. It belongs to the HTTP loop, is lent to
// the core's between ToCore and SendBack, and ends on the HTTP loop (Crossing::Share).
struct Frontend::Exchange {
  std::shared_ptr<net::ResponseWriter> writer;  // the HTTP loop's alone
  net::ServerRequest request;
  RequestInfo info;
  Negotiated negotiated;
  std::string include_object;
  bool accepts_gzip = false;
  MonotonicTime begun;
  std::string_view verb_name;  // "" for paths that are no resource
  Verb verb = Verb::kGet;
  bool dry_run = false;
  bool mutating = false;
  std::string read_key;  // of a get whose answer may be kept
  std::optional<ReadCache::Stamp> stamp;

  // For the core.
  bool identify = false;           // who is asking is for the core to find out
  UserInfo user;                   // otherwise
  std::optional<Failure> refusal;  // to be said once it is known who is asking
  Request asked;                   // of a resource
  std::optional<Verb> also_needs;
  SubresourceProxy* proxy = nullptr;
  std::unique_ptr<WatchStreamOptions> watch;

  // From the core.
  Response response;
  std::shared_ptr<const DeviceUsage> usage;
  SubresourceProxy::Target target;
  std::optional<HealthAnswer> health;
  net::Segment document;  // JSON
};

}  // namespace drakkar::apiserver
