#pragma once

#include <memory>

#include "apiserver/rest/core.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::apiserver {

// A client for a component in the API server's process: no sockets, no encoding, shared immutable
// objects. Requests run as `user` and go through the same authorization, admission and validation
// as over HTTP. With Mark::kApplied writes are answered, and changes delivered, as soon as they are
// applied: whatever is built on them dies with the process. A component with effects outside the
// process (the node agent) uses Mark::kDurable.
//
// `loop` is the component's own; the core may have another one. The core must outlive the client,
// and its loop must still run (or have stopped for good) when the client is destroyed.
std::unique_ptr<client::Client> MakeDirectClient(EventLoop& loop, Core& core, UserInfo user,
                                                 storage::Mark mark = storage::Mark::kApplied);

}  // namespace drakkar::apiserver
