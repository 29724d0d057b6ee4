#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar {

std::string Base64Encode(std::string_view bytes);
// URL-safe alphabet, no padding (JWT, socket names).
std::string Base64UrlEncode(std::string_view bytes);
// Standard alphabet with padding, strict.
Result<std::string> Base64Decode(std::string_view text);
// URL-safe alphabet without padding, strict.
Result<std::string> Base64UrlDecode(std::string_view text);

}  // namespace drakkar
