#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar {

std::vector<std::string_view> Split(std::string_view text, char separator);
std::string_view Trim(std::string_view text);  // spaces, tabs and line ends on both sides
std::string ToLower(std::string_view text);    // ASCII only
constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// "a, b": the parts with `separator` between them. Parts are anything a string_view is made from.
template <typename Parts>
std::string Join(const Parts& parts, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) text += separator;
    first = false;
    text += std::string_view(part);
  }
  return text;
}

// Concatenates strings and integers.
template <typename... Parts>
std::string StrCat(const Parts&... parts);

std::optional<std::int64_t> ParseInt64(std::string_view text);  // the whole text, decimal

// `text` in double quotes with Go's %q escapes, as Kubernetes prints values in errors.
std::string Quote(std::string_view text);

bool IsValidUtf8(std::string_view text);
// `code` is at most 0x10FFFF.
void AppendUtf8(std::string& out, char32_t code);

namespace internal {
inline void AppendPart(std::string& out, std::string_view part) {
  out += part;
}
inline void AppendPart(std::string& out, const std::string& part) {
  out += part;
}
inline void AppendPart(std::string& out, const char* part) {
  out += part;
}
inline void AppendPart(std::string& out, char part) {
  out += part;
}
template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, bool>)
void AppendPart(std::string& out, T part) {
  out += std::to_string(part);
}

// At least what AppendPart adds.
inline std::size_t PartBytes(std::string_view part) {
  return part.size();
}
inline std::size_t PartBytes(const std::string& part) {
  return part.size();
}
inline std::size_t PartBytes(const char* part) {
  return std::string_view(part).size();
}
inline std::size_t PartBytes(char) {
  return 1;
}
template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, bool>)
std::size_t PartBytes(T) {
  return 20;
}
}  // namespace internal

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  out.reserve((internal::PartBytes(parts) + ...));
  (internal::AppendPart(out, parts), ...);
  return out;
}

}  // namespace drakkar
