#pragma once

#include <string>
#include <string_view>

namespace drakkar::cli {

// `text` without control characters, which could move the cursor or hide what follows: they are
// shown as "^[", tabs and carriage returns too. Line feeds stay.
std::string Printable(std::string_view text);

}  // namespace drakkar::cli
