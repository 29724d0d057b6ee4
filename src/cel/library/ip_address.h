#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::cel {

// An IPv4 or IPv6 address with an optional zone.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  // the first four for IPv4
  bool is_v4 = true;
  std::string zone;

  std::size_t size() const { return is_v4 ? 4 : 16; }
  bool IsMapped() const;  // ::ffff:a.b.c.d
  std::string ToString() const;
  bool operator==(const IpAddress&) const = default;
};

struct IpPrefix {
  IpAddress address;
  int bits = 0;

  IpPrefix Masked() const;
  bool Contains(const IpAddress& other) const;
  std::string ToString() const;
  bool operator==(const IpPrefix&) const = default;
};

// Errors are those of Go's net/netip.
Result<IpAddress> ParseIpAddress(std::string_view text);
Result<IpPrefix> ParseIpPrefix(std::string_view text);

}  // namespace drakkar::cel
