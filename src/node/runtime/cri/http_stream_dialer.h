#pragma once

#include "base/exec/uv_loop.h"
#include "node/runtime/cri/stream_dialer.h"

namespace drakkar::node {

// Dials over HTTP/1.1 with POST, as the streaming servers of container runtimes expect. The dialer
// and its dials live on the loop.
StreamDialer MakeHttpStreamDialer(UvLoop& loop);

}  // namespace drakkar::node
