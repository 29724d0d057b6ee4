#pragma once

#include <string>
#include <string_view>

namespace drakkar::cdi::internal {

// Appends `text` as a JSON string with the escapes of Go's encoder: <, > and & as \u00xx, the line
// separators U+2028 and U+2029, and \ufffd for each byte that is not UTF-8.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace drakkar::cdi::internal
