#include "net/socket/address_kind.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace drakkar::net {
namespace {

// IPv4 as "::ffff:a.b.c.d", so that only one form needs to be compared.
using Bytes = std::array<std::uint8_t, 16>;
constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Bytes FromIpv4(const in_addr& address) {
  Bytes bytes{};
  std::copy(kMapped.begin(), kMapped.end(), bytes.begin());
  std::memcpy(bytes.data() + kMapped.size(), &address, 4);
  return bytes;
}

Bytes FromIpv6(const in6_addr& address) {
  Bytes bytes{};
  std::memcpy(bytes.data(), &address, bytes.size());
  return bytes;
}

std::optional<Bytes> Parse(const std::string& text) {
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return FromIpv4(four);
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) return FromIpv6(six);
  return std::nullopt;
}

bool IsIpv4(const Bytes& bytes) {
  return std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
}

AddressKind KindOf(const Bytes& bytes) {
  if (IsIpv4(bytes)) {
    const std::uint8_t first = bytes[12];
    if (first == 0) return AddressKind::kUnspecified;  // "this network", which nothing answers
    if (first == 127) return AddressKind::kLoopback;
    if (first == 169 && bytes[13] == 254) return AddressKind::kLinkLocal;
    return first >= 224 ? AddressKind::kMulticast : AddressKind::kOther;
  }
  const bool zeros = std::all_of(bytes.begin(), bytes.end() - 1, [](auto b) { return b == 0; });
  if (zeros && bytes[15] == 0) return AddressKind::kUnspecified;
  if (zeros && bytes[15] == 1) return AddressKind::kLoopback;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return AddressKind::kLinkLocal;
  return bytes[0] == 0xff ? AddressKind::kMulticast : AddressKind::kOther;
}

}  // namespace

AddressKind KindOfAddress(const std::string& text) {
  const std::optional<Bytes> bytes = Parse(text);
  return bytes ? KindOf(*bytes) : AddressKind::kNoAddress;
}

bool IsMetadataService(const std::string& text) {
  const std::optional<Bytes> bytes = Parse(text);
  constexpr const char* kServices[] = {"169.254.169.254", "100.100.100.200", "168.63.129.16",
                                       "192.0.0.192",     "fd00:ec2::254",   "fd20:ce::254"};
  return bytes &&
         std::ranges::any_of(kServices, [&](const char* each) { return Parse(each) == bytes; });
}

std::string CanonicalAddress(const std::string& text) {
  char out[INET6_ADDRSTRLEN] = {};
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    return ::inet_ntop(AF_INET, &four, out, sizeof(out));
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) {
    return ::inet_ntop(AF_INET6, &six, out, sizeof(out));
  }
  return {};
}

std::string PlainAddress(const std::string& text) {
  constexpr std::string_view kMappedText = "::ffff:";
  std::string plain = CanonicalAddress(text);
  if (plain.starts_with(kMappedText) && plain.find('.') != std::string::npos) {
    plain.erase(0, kMappedText.size());
  }
  return plain;
}

bool IsThisMachine(const std::string& text) {
  const std::optional<Bytes> wanted = Parse(text);
  if (!wanted) return false;
  const AddressKind kind = KindOf(*wanted);
  if (kind == AddressKind::kLoopback || kind == AddressKind::kUnspecified) return true;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return true;  // unknown; err on the safe side
  bool found = false;
  for (const ifaddrs* each = first; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      found = FromIpv4(reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr) == *wanted;
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      found = FromIpv6(reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr) == *wanted;
    }
  }
  ::freeifaddrs(first);
  return found;
}

}  // namespace drakkar::net
