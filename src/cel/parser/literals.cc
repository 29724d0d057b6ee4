#include "cel/parser/literals.h"

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c - 'A' + 10;
}

char32_t ReadDigits(std::string_view& text, std::size_t count, char32_t base) {
  char32_t code = 0;
  for (std::size_t i = 0; i < count && !text.empty(); ++i) {
    code = code * base + static_cast<char32_t>(HexValue(text[0]));
    text.remove_prefix(1);
  }
  return code;
}

bool IsCharacter(char32_t code) {
  return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF);
}

}  // namespace

Result<std::string> UnescapeText(std::string_view token, bool is_bytes) {
  bool raw = false;
  while (!token.empty() && token[0] != '"' && token[0] != '\'') {
    raw = raw || token[0] == 'r' || token[0] == 'R';
    token.remove_prefix(1);
  }
  const std::size_t quotes =
      token.size() >= 6 && token.substr(0, 3) == std::string(3, token[0]) ? 3 : 1;
  token = token.substr(quotes, token.size() - 2 * quotes);
  std::string out;
  while (!token.empty()) {
    // Line endings are one character, whatever platform wrote the expression.
    if (token[0] == '\r') {
      token.remove_prefix(token.starts_with("\r\n") ? 2 : 1);
      out += '\n';
      continue;
    }
    if (token[0] != '\\' || raw) {
      out += token[0];
      token.remove_prefix(1);
      continue;
    }
    const char kind = token[1];
    token.remove_prefix(2);
    static constexpr std::string_view kFrom = "abfnrtv\"'\\?`";
    static constexpr std::string_view kTo = "\a\b\f\n\r\t\v\"'\\?`";
    if (const std::size_t i = kFrom.find(kind); i != std::string_view::npos) {
      out += kTo[i];
      continue;
    }
    char32_t code = 0;
    if (kind == 'x' || kind == 'X') {
      code = ReadDigits(token, 2, 16);
    } else if (kind == 'u' || kind == 'U') {
      if (is_bytes) return InvalidArgument("unable to unescape string");
      code = ReadDigits(token, kind == 'u' ? 4 : 8, 16);
    } else {
      code = static_cast<char32_t>(kind - '0') * 64;
      code += ReadDigits(token, 2, 8);
    }
    if (is_bytes) {
      out += static_cast<char>(static_cast<unsigned char>(code));
    } else {
      if (!IsCharacter(code)) return InvalidArgument("invalid unicode code point");
      AppendUtf8(out, code);
    }
  }
  return out;
}

}  // namespace drakkar::cel
