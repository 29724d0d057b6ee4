#include "cdi/internal/json_text.h"

#include "base/text/text.h"

namespace drakkar::cdi::internal {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void AppendAscii(unsigned char c, std::string* out) {
  switch (c) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\b':
      *out += "\\b";
      return;
    case '\f':
      *out += "\\f";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      break;
  }
  if (c < 0x20 || c == '<' || c == '>' || c == '&') {
    *out += "\\u00";
    *out += kHex[c >> 4];
    *out += kHex[c & 15];
  } else {
    *out += static_cast<char>(c);
  }
}

// Bytes of the UTF-8 character at the start of `text`, or 0 if there is none.
std::size_t CharacterLength(std::string_view text) {
  for (std::size_t length = 2; length <= 4 && length <= text.size(); ++length) {
    if (IsValidUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) {
      AppendAscii(first, out);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      *out += "\\ufffd";
    } else if (character == "\xE2\x80\xA8") {
      *out += "\\u2028";
    } else if (character == "\xE2\x80\xA9") {
      *out += "\\u2029";
    } else {
      *out += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  *out += '"';
}

}  // namespace drakkar::cdi::internal
