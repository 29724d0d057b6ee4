#pragma once

#include <memory>

#include "apiserver/rest/core.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::apiserver {

// The API server for a part in the same process: no sockets, no encoding, shared immutable objects.
// Requests run as `user` and pass the same authorization, admission and validation as over HTTP.
// With Mark::kApplied writes are answered, and watches see changes, as soon as they are applied:
// what is built on them dies with the process. A part with effects outside the process (the node
// agent) takes Mark::kDurable.
//
// `loop` is the part's own; the core's may be another one. The core must outlive the client, and
// its loop must still run (or have stopped for good) when the client is destroyed.
std::unique_ptr<client::Client> MakeDirectClient(EventLoop& loop, Core& core, UserInfo user,
                                                 storage::Mark mark = storage::Mark::kApplied);

}  // namespace drakkar::apiserver
