#pragma once

#include <optional>
#include <string_view>

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// The user of a bootstrap token: system:bootstrap:ID in the group system:bootstrappers and those
// that its Secret names. The Secret is read at every use, so deleting it revokes the token. nullopt
// if the token is unknown, has expired or does not authenticate.
std::optional<UserInfo> VerifyBootstrapToken(const Core& core, std::string_view token,
                                             WallTime now);

}  // namespace drakkar::apiserver
