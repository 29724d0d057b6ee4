#pragma once

#include <functional>
#include <memory>

#include "net/server/http_server.h"

namespace drakkar::apiserver {

// Wraps `writer` and reports the status code of the response to `answered` once: when the response
// starts (101 for an upgrade), or 0 if it is dropped first. For responses that other code writes.
std::shared_ptr<net::ResponseWriter> CountAnswer(std::shared_ptr<net::ResponseWriter> writer,
                                                 std::function<void(int code)> answered);

}  // namespace drakkar::apiserver
