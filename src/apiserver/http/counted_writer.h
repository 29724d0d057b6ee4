#pragma once

#include <functional>
#include <memory>

#include "net/server/http_server.h"

namespace drakkar::apiserver {

// `writer`, telling `answered` the code of the answer once: when it begins (101 for an upgrade), or
// 0 when it is given up before. For answers that somebody else makes.
std::shared_ptr<net::ResponseWriter> CountAnswer(std::shared_ptr<net::ResponseWriter> writer,
                                                 std::function<void(int code)> answered);

}  // namespace drakkar::apiserver
