#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::cel {

// The value of a string or bytes token, quotes and prefix included. Bytes escapes name bytes,
// string escapes name characters.
Result<std::string> UnescapeText(std::string_view token, bool is_bytes);

}  // namespace drakkar::cel
