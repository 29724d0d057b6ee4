#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Value Encode(CallContext& c, Args args) {
  std::string out;
  const std::string_view bytes = args[0].text();
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * j) & 63];
    }
  }
  return NewString(c.arena, out);
}

// Padding is optional.
Value Decode(CallContext& c, Args args) {
  std::string_view text = args[0].text();
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char character : text) {
    const std::size_t digit = kAlphabet.find(character);
    if (digit == std::string_view::npos) return NewError(c.arena, "illegal base64 data");
    group = group << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(static_cast<unsigned char>(group >> bits & 255));
    }
  }
  return MakeBytes(CopyText(c.arena, out));
}

}  // namespace

void AddEncoders(Declarations& d) {
  Global(d, "base64.encode", "base64_encode_bytes", {Bytes()}, String(), Encode);
  Global(d, "base64.decode", "base64_decode_string", {String()}, Bytes(), Decode);
}

}  // namespace drakkar::cel::library
