#pragma once

#include <string_view>

#include "base/text/text.h"

namespace drakkar::apiserver {

// The value that a field selector requires of `field` with "="; "" if there is none.
inline std::string_view DemandedValue(std::string_view selector, std::string_view field) {
  while (!selector.empty()) {
    const std::size_t comma = selector.find(',');
    std::string_view part = Trim(selector.substr(0, comma));
    selector = comma == std::string_view::npos ? std::string_view() : selector.substr(comma + 1);
    if (!part.starts_with(field)) continue;
    part.remove_prefix(field.size());
    if (part.starts_with("==")) return part.substr(2);
    if (part.starts_with("=")) return part.substr(1);
  }
  return {};
}

}  // namespace drakkar::apiserver
