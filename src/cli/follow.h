#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "api/tree/value.h"
#include "cli/session.h"

namespace drakkar::cli {

// Checks one object now and after each change until `check` returns true; returns false if
// `timeout` passes first. `check` gets an absent value if the object does not exist. `ref` must
// have a name. Without a `timeout` it waits indefinitely; zero checks once.
Result<bool> Follow(Session& session, const client::ResourceRef& ref,
                    std::optional<Duration> timeout, std::string_view what,
                    std::function<bool(api::Value object)> check);

}  // namespace drakkar::cli
