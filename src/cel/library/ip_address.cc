#include "cel/library/ip_address.h"

#include <arpa/inet.h>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

Error AddressError(std::string_view text, std::string_view reason) {
  return InvalidArgument(StrCat("ParseAddr(", Quote(text), "): ", reason));
}

Result<IpAddress> ParseV4(std::string_view text) {
  IpAddress address;
  std::size_t field = 0;
  int value = 0;
  int digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      if (digits == 1 && value == 0)
        return AddressError(text, "IPv4 field has octet with leading zero");
      value = value * 10 + (c - '0');
      ++digits;
      if (value > 255) return AddressError(text, "IPv4 field has value >255");
    } else if (c == '.') {
      if (i == 0 || i + 1 == text.size() || text[i - 1] == '.') {
        return AddressError(text, StrCat("IPv4 field must have at least one digit (at ",
                                         Quote(text.substr(i)), ")"));
      }
      if (field == 3) return AddressError(text, "IPv4 address too long");
      address.bytes[field++] = static_cast<std::uint8_t>(value);
      value = 0;
      digits = 0;
    } else {
      return AddressError(text, StrCat("unexpected character (at ", Quote(text.substr(i)), ")"));
    }
  }
  if (field < 3) return AddressError(text, "IPv4 address too short");
  address.bytes[3] = static_cast<std::uint8_t>(value);
  return address;
}

Result<IpAddress> ParseV6(std::string_view text) {
  IpAddress address;
  address.is_v4 = false;
  std::string_view body = text;
  if (const std::size_t percent = body.find('%'); percent != std::string_view::npos) {
    address.zone = body.substr(percent + 1);
    if (address.zone.empty()) return AddressError(text, "zone must be a non-empty string");
    body = body.substr(0, percent);
  }
  const std::string copy(body);
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) != 1) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const char c = body[i];
      const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
                        (c >= 'A' && c <= 'F') || c == ':' || c == '.';
      if (!fits) {
        return AddressError(text,
                            StrCat("each colon-separated field must have at least one digit (at ",
                                   Quote(body.substr(i)), ")"));
      }
    }
    return AddressError(text, "address string too short");
  }
  return address;
}

}  // namespace

bool IpAddress::IsMapped() const {
  if (is_v4) return false;
  for (std::size_t i = 0; i < 10; ++i) {
    if (bytes[i] != 0) return false;
  }
  return bytes[10] == 0xFF && bytes[11] == 0xFF;
}

std::string IpAddress::ToString() const {
  if (is_v4) {
    return StrCat(int{bytes[0]}, ".", int{bytes[1]}, ".", int{bytes[2]}, ".", int{bytes[3]});
  }
  char buffer[INET6_ADDRSTRLEN];
  std::string text;
  if (IsMapped()) {
    text = StrCat("::ffff:", int{bytes[12]}, ".", int{bytes[13]}, ".", int{bytes[14]}, ".",
                  int{bytes[15]});
  } else {
    // The C library also prints IPv4-compatible addresses with dots; we never do.
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < 8; ++i)
      groups[i] = static_cast<unsigned>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    std::size_t best = 8, best_length = 1;
    for (std::size_t i = 0; i < 8; ++i) {
      std::size_t length = 0;
      while (i + length < 8 && groups[i + length] == 0) ++length;
      if (length > best_length) {
        best = i;
        best_length = length;
      }
    }
    for (std::size_t i = 0; i < 8; ++i) {
      if (i == best) {
        text += "::";
        i += best_length - 1;
        continue;
      }
      if (i > 0 && !text.ends_with(':')) text += ':';
      std::snprintf(buffer, sizeof(buffer), "%x", groups[i]);
      text += buffer;
    }
  }
  return zone.empty() ? text : StrCat(text, "%", zone);
}

IpPrefix IpPrefix::Masked() const {
  IpPrefix masked = *this;
  for (std::size_t i = 0; i < address.size(); ++i) {
    const int keep = bits - static_cast<int>(i) * 8;
    if (keep >= 8) continue;
    const int mask = keep <= 0 ? 0 : 0xFF << (8 - keep);
    masked.address.bytes[i] = static_cast<std::uint8_t>(masked.address.bytes[i] & mask);
  }
  return masked;
}

bool IpPrefix::Contains(const IpAddress& other) const {
  if (other.is_v4 != address.is_v4 || !other.zone.empty()) return false;
  return Masked().address == IpPrefix{other, bits}.Masked().address;
}

std::string IpPrefix::ToString() const {
  return StrCat(address.ToString(), "/", bits);
}

Result<IpAddress> ParseIpAddress(std::string_view text) {
  for (const char c : text) {
    if (c == '.') return ParseV4(text);
    if (c == ':') return ParseV6(text);
    if (c == '%') return AddressError(text, "missing IPv6 address");
  }
  return AddressError(text, "unable to parse IP");
}

Result<IpPrefix> ParseIpPrefix(std::string_view text) {
  const auto fail = [&](std::string_view reason) {
    return InvalidArgument(StrCat("netip.ParsePrefix(", Quote(text), "): ", reason));
  };
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return fail("no '/'");
  Result<IpAddress> address = ParseIpAddress(text.substr(0, slash));
  if (!address.ok()) return fail(address.error().message);
  if (!address->zone.empty()) return fail("IPv6 zones cannot be present in a prefix");
  const std::string_view digits = text.substr(slash + 1);
  const std::optional<std::int64_t> bits = ParseInt64(digits);
  if (!bits || *bits < 0 || digits.size() > 3 || (digits.size() > 1 && digits[0] == '0') ||
      digits[0] == '+') {
    return fail(StrCat("bad bits after slash: ", Quote(digits)));
  }
  if (*bits > static_cast<std::int64_t>(address->size() * 8))
    return fail("prefix length out of range");
  return IpPrefix{*address, static_cast<int>(*bits)};
}

}  // namespace drakkar::cel
