#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "api/tree/value.h"
#include "cli/session.h"

namespace drakkar::cli {

// Looks at one object, now and after each change, until `check` is satisfied: true; false if time
// is up before. `check` gets an absent value while there is no such object. `ref` has a name.
// `timeout`: none for ever, zero for one look.
Result<bool> Follow(Session& session, const client::ResourceRef& ref,
                    std::optional<Duration> timeout, std::string_view what,
                    std::function<bool(api::Value object)> check);

}  // namespace drakkar::cli
