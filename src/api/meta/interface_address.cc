#include "api/meta/interface_address.h"

#include <arpa/inet.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/text/text.h"

// Go's old reader is lenient (leading zeros in IPv4, IPv4 inside
// IPv6); what is stored must be the one form it prints.
namespace drakkar::api {
namespace {

std::optional<int> DecimalUpTo(std::string_view text, int limit) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
    if (value > limit) return std::nullopt;
  }
  return value;
}

// "010.009.008.000" reads as decimal numbers, as it always has in Kubernetes.
std::optional<std::string> CanonicalV4(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  std::string canonical;
  for (const std::string_view part : parts) {
    const std::optional<int> value = DecimalUpTo(part, 255);
    if (!value) return std::nullopt;
    if (!canonical.empty()) canonical += '.';
    canonical += std::to_string(*value);
  }
  return canonical;
}

struct V6 {
  std::string canonical;
  bool maps_v4 = false;
};

std::optional<V6> CanonicalV6(std::string_view text) {
  std::string lenient(text);
  if (const std::size_t colon = lenient.rfind(':');
      colon != std::string::npos && lenient.find('.', colon) != std::string::npos) {
    const std::optional<std::string> tail =
        CanonicalV4(std::string_view(lenient).substr(colon + 1));
    if (!tail) return std::nullopt;
    lenient = lenient.substr(0, colon + 1) + *tail;
  }
  std::array<unsigned char, 16> bytes;
  if (inet_pton(AF_INET6, lenient.c_str(), bytes.data()) != 1) return std::nullopt;
  bool mapped = bytes[10] == 0xff && bytes[11] == 0xff;
  for (int i = 0; i < 10; ++i) mapped = mapped && bytes[static_cast<std::size_t>(i)] == 0;
  V6 result;
  result.maps_v4 = mapped;
  if (mapped) {
    result.canonical =
        StrCat(int{bytes[12]}, ".", int{bytes[13]}, ".", int{bytes[14]}, ".", int{bytes[15]});
    return result;
  }
  // The longest run of two or more zero groups is elided; of equal ones, the first.
  std::array<unsigned, 8> groups;
  for (std::size_t i = 0; i < 8; ++i) {
    groups[i] = static_cast<unsigned>(bytes[2 * i]) << 8 | bytes[2 * i + 1];
  }
  std::size_t run_start = 8;
  std::size_t run_size = 1;
  for (std::size_t i = 0; i < 8;) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > run_size) {
      run_start = i;
      run_size = end - i;
    }
    i = end == i ? i + 1 : end;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == run_start) {
      result.canonical += "::";
      i += run_size - 1;
      continue;
    }
    if (i > 0 && !result.canonical.ends_with(':')) result.canonical += ':';
    std::string hex;
    for (unsigned value = groups[i];; value >>= 4) {
      hex.insert(hex.begin(), kDigits[value & 15]);
      if (value < 16) break;
    }
    result.canonical += hex;
  }
  return result;
}

// Whether the IPv4 part of an IPv6 address has a number like "010".
bool HasLeadingZero(std::string_view v6) {
  const std::size_t colon = v6.rfind(':');
  const std::string_view tail = v6.substr(colon == std::string_view::npos ? 0 : colon + 1);
  if (tail.find('.') == std::string_view::npos) return false;
  const std::optional<std::string> canonical = CanonicalV4(tail);
  return canonical && *canonical != tail;
}

struct Network {
  bool is_v6 = false;
  int prefix_bits = 0;
  std::array<unsigned char, 16> bytes{};

  int size_bits() const { return is_v6 ? 128 : 32; }
  bool bit(int index) const {
    return bytes[static_cast<std::size_t>(index / 8)] >> (7 - index % 8) & 1;
  }
};

// Leniently, as Kubernetes does.
std::optional<Network> ReadNetwork(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view host = text.substr(0, slash);
  Network network;
  std::string canonical;
  if (const std::optional<std::string> v4 = CanonicalV4(host)) {
    canonical = *v4;
  } else if (const std::optional<V6> v6 = CanonicalV6(host)) {
    network.is_v6 = true;
    canonical = v6->maps_v4 ? "::ffff:" + v6->canonical : v6->canonical;
  } else {
    return std::nullopt;
  }
  const std::optional<int> bits = DecimalUpTo(text.substr(slash + 1), network.size_bits());
  if (!bits) return std::nullopt;
  network.prefix_bits = *bits;
  if (inet_pton(network.is_v6 ? AF_INET6 : AF_INET, canonical.c_str(), network.bytes.data()) != 1) {
    return std::nullopt;
  }
  return network;
}

}  // namespace

Result<void> CheckInterfaceAddress(std::string_view address) {
  const std::size_t slash = address.find('/');
  std::string canonical;
  if (slash != std::string_view::npos) {
    const std::string_view host = address.substr(0, slash);
    const std::string_view length = address.substr(slash + 1);
    if (const std::optional<std::string> v4 = CanonicalV4(host)) {
      if (const std::optional<int> bits = DecimalUpTo(length, 32)) {
        canonical = StrCat(*v4, "/", *bits);
      }
    } else if (const std::optional<V6> v6 = CanonicalV6(host)) {
      if (std::optional<int> bits = DecimalUpTo(length, 128)) {
        if (v6->maps_v4 && *bits > 32) *bits -= 96;
        canonical = StrCat(v6->canonical, "/", *bits);
      }
    }
  }
  if (canonical.empty()) {
    return InvalidArgument(
        "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
  }
  if (canonical == address) return Ok();
  return InvalidArgument(StrCat("must be in canonical form (", Quote(canonical), ")"));
}

Problems CheckIpAddress(std::string_view address) {
  if (const std::optional<std::string> v4 = CanonicalV4(address)) {
    if (*v4 == address) return {};
    return {"must not have leading 0s"};
  }
  const std::optional<V6> v6 = CanonicalV6(address);
  if (!v6) return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
  if (HasLeadingZero(address)) return {"must not have leading 0s"};
  if (v6->maps_v4) return {"must not be an IPv4-mapped IPv6 address"};
  return {};
}

Problems CheckNetwork(std::string_view text) {
  const std::optional<Network> network = ReadNetwork(text);
  if (!network) return {"must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"};
  const std::string_view host = text.substr(0, text.find('/'));
  const std::string_view length = text.substr(host.size() + 1);
  const bool has_zeros = (length.size() > 1 && length.front() == '0') ||
                         (network->is_v6 ? HasLeadingZero(host) : *CanonicalV4(host) != host);
  if (has_zeros) return {"must not have leading 0s in IP or prefix length"};
  if (network->is_v6 && CanonicalV6(host)->maps_v4) {
    return {"must not have an IPv4-mapped IPv6 address"};
  }
  for (int index = network->prefix_bits; index < network->size_bits(); ++index) {
    if (network->bit(index)) return {"must not have bits set beyond the prefix length"};
  }
  return {};
}

std::optional<bool> IsStrictSubnet(std::string_view network, std::string_view outer) {
  const std::optional<Network> inside = ReadNetwork(network);
  const std::optional<Network> around = ReadNetwork(outer);
  if (!inside || !around) return std::nullopt;
  if (inside->is_v6 != around->is_v6 || inside->prefix_bits <= around->prefix_bits) return false;
  for (int index = 0; index < around->prefix_bits; ++index) {
    if (inside->bit(index) != around->bit(index)) return false;
  }
  return true;
}

}  // namespace drakkar::api
