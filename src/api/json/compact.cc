#include "api/json/compact.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

}  // namespace

std::string CompactJson(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string && kSpaces.find(c) != std::string_view::npos) continue;
    out += c;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

}  // namespace drakkar::api
