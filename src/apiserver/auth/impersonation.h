#pragma once

#include <optional>

#include "apiserver/rest/core.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// Whether any header asks to act as somebody else.
bool AsksToImpersonate(const net::Headers& headers);

// Impersonate-User, -Group, -Uid and -Extra-*: `user` becomes who the headers say, if it may. The
// failure otherwise.
std::optional<Failure> Impersonate(Core& core, const net::Headers& headers, UserInfo& user);

}  // namespace drakkar::apiserver
