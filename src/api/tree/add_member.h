#pragma once

#include <string_view>
#include <utility>

#include "api/tree/draft.h"

namespace drakkar::api {

// Adds a member without looking for one of the same name: there must be none. For loops over the
// members of another object, which would otherwise take quadratic time.
inline void AddMember(Draft& object, std::string_view name, Draft value) {
  object.MutableMembers().emplace_back(KeyRef(name), std::move(value));
}

}  // namespace drakkar::api
