#pragma once

#include <optional>

#include "apiserver/rest/core.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// Whether a header asks for impersonation.
bool AsksToImpersonate(const net::Headers& headers);

// Impersonate-User, -Group, -Uid and -Extra-*: replaces `user` by the user in the headers if that
// is allowed, and fails otherwise.
std::optional<Failure> Impersonate(Core& core, const net::Headers& headers, UserInfo& user);

}  // namespace drakkar::apiserver
