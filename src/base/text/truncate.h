#pragma once

#include <string>
#include <string_view>

namespace drakkar {

// Truncates to `limit` bytes (at least 3) at a UTF-8 character boundary, with "..." at the end if
// truncated. For text of others that goes into messages.
inline std::string TruncateMessage(std::string_view message, std::size_t limit) {
  if (message.size() <= limit) return std::string(message);
  std::size_t size = limit - 3;
  while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xc0) == 0x80) --size;
  return std::string(message.substr(0, size)) + "...";
}

}  // namespace drakkar
