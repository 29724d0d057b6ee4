#include "rpc/internal/codec.h"

namespace drakkar::rpc::internal {

std::string ValidUtf8(std::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string valid;
  while (!text.empty()) {
    // The shortest valid prefix is one character; four bytes is the longest.
    std::size_t length = 1;
    while (length <= 4 && length <= text.size() && !IsValidUtf8(text.substr(0, length))) ++length;
    if (length > 4 || length > text.size()) {
      valid += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return valid;
}

}  // namespace drakkar::rpc::internal
