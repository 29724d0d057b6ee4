#include "api/codec/yaml_token.h"

#include <libfyaml.h>

namespace drakkar::api {
namespace {

// The text between single quotes: two quotes stand for one, a line end for a space, and further
// line ends for themselves.
std::string DecodeSingleQuoted(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '\'') {
      text += c;
      ++i;
      continue;
    }
    if (c != '\n' && c != '\r') {
      text += c;
      continue;
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
    std::size_t breaks = 0;
    for (; i < source.size() && std::string_view(" \t\r\n").find(source[i]) != std::string_view::npos;
         ++i) {
      breaks += source[i] == '\n';
    }
    --i;
    text += breaks <= 1 ? std::string(" ") : std::string(breaks - 1, '\n');
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
  if (token == nullptr || fy_token_scalar_style(token) != FYSS_SINGLE_QUOTED) {
    return YamlTokenText(token);
  }
  const fy_mark* start = fy_token_start_mark(token);
  const fy_mark* end = fy_token_end_mark(token);
  if (start == nullptr || end == nullptr || start->input_pos > end->input_pos ||
      end->input_pos > document.size()) {
    return YamlTokenText(token);
  }
  const std::string_view source =
      document.substr(start->input_pos, end->input_pos - start->input_pos);
  if (source.find('\'') == std::string_view::npos) return YamlTokenText(token);
  decoded = DecodeSingleQuoted(source);
  return decoded;
}

}  // namespace drakkar::api
