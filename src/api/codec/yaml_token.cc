#include "api/codec/yaml_token.h"

#include <libfyaml.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

bool IsBreak(char c) {
  return c == '\n' || c == '\r';
}
bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

// Skips white space including line breaks, starting at a break; returns the number of breaks.
std::size_t SkipBreaks(std::string_view source, std::size_t& i) {
  std::size_t breaks = 0;
  for (; i < source.size() && (IsBreak(source[i]) || IsBlank(source[i])); ++i) {
    const bool is_pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (IsBreak(source[i]) && !is_pair) ++breaks;
  }
  return breaks;
}

// Folds line breaks between words: one becomes a space, further ones are kept. White space around
// them is dropped, except before `kept`.
void FoldBreaks(std::string_view source, std::size_t& i, std::size_t kept, std::string& text) {
  while (text.size() > kept && IsBlank(text.back())) text.pop_back();
  const std::size_t breaks = SkipBreaks(source, i);
  text += breaks <= 1 ? std::string(" ") : std::string(breaks - 1, '\n');
}

// The text of a single-quoted scalar: two quotes stand for one.
std::string DecodeSingleQuoted(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size();) {
    if (IsBreak(source[i])) {
      FoldBreaks(source, i, 0, text);
    } else {
      text += source[i];
      i += source[i] == '\'' ? 2 : 1;
    }
  }
  return text;
}

// The character after a backslash, including its digits.
void AppendEscaped(std::string_view source, std::size_t& i, std::string& text) {
  const char c = source[i++];
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits > 0) {
    std::uint32_t code = 0;
    std::from_chars(source.data() + i, source.data() + std::min(i + digits, source.size()), code,
                    16);
    i = std::min(i + digits, source.size());
    return AppendUtf8(text, code);
  }
  switch (c) {
    case '0':
      text += '\0';
      break;
    case 'a':
      text += '\a';
      break;
    case 'b':
      text += '\b';
      break;
    case 't':
      text += '\t';
      break;
    case 'n':
      text += '\n';
      break;
    case 'v':
      text += '\v';
      break;
    case 'f':
      text += '\f';
      break;
    case 'r':
      text += '\r';
      break;
    case 'e':
      text += '\x1b';
      break;
    case 'N':
      AppendUtf8(text, 0x85);
      break;
    case '_':
      AppendUtf8(text, 0xA0);
      break;
    case 'L':
      AppendUtf8(text, 0x2028);
      break;
    case 'P':
      AppendUtf8(text, 0x2029);
      break;
    default:
      text += c;  // a space, a tab, a quote, a slash, a backslash
  }
}

// The text of a double-quoted scalar, which the parser has found well formed. A backslash at the
// end of a line joins it with the next; empty lines after either kind of line break are kept.
std::string DecodeDoubleQuoted(std::string_view source) {
  std::string text;
  std::size_t kept = 0;  // escaped white space is not trimmed
  for (std::size_t i = 0; i < source.size();) {
    if (source[i] == '\\' && i + 1 < source.size()) {
      ++i;
      if (IsBreak(source[i])) {
        text.append(SkipBreaks(source, i) - 1, '\n');
      } else {
        AppendEscaped(source, i, text);
      }
      kept = text.size();
    } else if (IsBreak(source[i])) {
      FoldBreaks(source, i, kept, text);
    } else {
      text += source[i++];
    }
  }
  return text;
}

}  // namespace

std::string_view YamlTokenText(fy_token* token) {
  if (token == nullptr) return {};
  std::size_t size = 0;
  const char* text = fy_token_get_text(token, &size);
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

std::string_view YamlScalarText(fy_token* token, std::string_view document, std::string& decoded) {
  if (token == nullptr) return {};
  const fy_scalar_style style = fy_token_scalar_style(token);
  const fy_mark* start = fy_token_start_mark(token);
  const fy_mark* end = fy_token_end_mark(token);
  if (start == nullptr || end == nullptr || start->input_pos > end->input_pos ||
      end->input_pos > document.size()) {
    return YamlTokenText(token);
  }
  const std::string_view source =
      document.substr(start->input_pos, end->input_pos - start->input_pos);
  if (style == FYSS_SINGLE_QUOTED && source.find_first_of("'\r\n") != std::string_view::npos) {
    decoded = DecodeSingleQuoted(source);
  } else if (style == FYSS_DOUBLE_QUOTED &&
             source.find_first_of("\r\n") != std::string_view::npos) {
    decoded = DecodeDoubleQuoted(source);
  } else {
    return YamlTokenText(token);
  }
  return decoded;
}

}  // namespace drakkar::api
