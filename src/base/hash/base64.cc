#include "base/hash/base64.h"

#include <array>
#include <cstdint>

namespace drakkar {
namespace {

constexpr char kStandard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kUrl[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Encode(std::string_view bytes, const char* alphabet, bool pad) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    std::uint32_t group = static_cast<std::uint8_t>(bytes[i]) << 16;
    if (left > 1) group |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i + 1]) << 8);
    if (left > 2) group |= static_cast<std::uint8_t>(bytes[i + 2]);
    text += alphabet[group >> 18];
    text += alphabet[(group >> 12) & 63];
    if (left > 1) text += alphabet[(group >> 6) & 63];
    if (left > 2) text += alphabet[group & 63];
    if (pad && left < 3) text.append(3 - left, '=');
  }
  return text;
}

Result<std::string> Decode(std::string_view text, const char* alphabet) {
  std::array<std::int8_t, 256> digits;
  digits.fill(-1);
  for (int i = 0; i < 64; ++i) {
    digits[static_cast<std::uint8_t>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (char c : text) {
    const int digit = digits[static_cast<std::uint8_t>(c)];
    if (digit < 0) return InvalidArgument("illegal base64 data");
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>((group >> bits) & 0xff);
    }
  }
  if (text.size() % 4 == 1 || (group & ((1u << bits) - 1)) != 0) {
    return InvalidArgument("illegal base64 data");
  }
  return bytes;
}

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  return Encode(bytes, kStandard, true);
}

std::string Base64UrlEncode(std::string_view bytes) {
  return Encode(bytes, kUrl, false);
}

Result<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return InvalidArgument("illegal base64 data");
  for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  return Decode(text, kStandard);
}

Result<std::string> Base64UrlDecode(std::string_view text) {
  return Decode(text, kUrl);
}

}  // namespace drakkar
