#pragma once

#include <optional>

#include "api/tree/value.h"
#include "apiserver/http/request_info.h"
#include "net/http/url.h"

namespace drakkar::apiserver {

// What admission webhooks see of a request that opens a connection (operation CONNECT): the
// parameters of its URL as an object.
struct ConnectOptions {
  const api::KindSchema* kind = nullptr;  // PodExecOptions, ...
  api::TreePtr object;
};
// Nothing for other requests (logs).
std::optional<ConnectOptions> ConnectOptionsOf(const RequestInfo& info, const net::Query& query);

}  // namespace drakkar::apiserver
