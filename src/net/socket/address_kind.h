#pragma once

#include <string>

namespace drakkar::net {

// The kind of an IP address in text form. IPv4-mapped IPv6 addresses ("::ffff:") count as IPv4.
enum class AddressKind {
  kNoAddress,    // a name, or not well-formed
  kUnspecified,  // 0.0.0.0, ::
  kLoopback,
  kLinkLocal,
  kMulticast,  // including broadcast
  kOther,
};
AddressKind KindOfAddress(const std::string& text);
// Whether a cloud's metadata service, which gives machines their credentials, has this address.
// Those of most clouds are link-local anyway.
bool IsMetadataService(const std::string& text);
// The shortest form of an address ("fd00::1"), to compare texts; "" if it is none.
std::string CanonicalAddress(const std::string& text);
// The same, but an IPv4-mapped address is the IPv4 address: "::ffff:10.0.0.7" is "10.0.0.7".
std::string PlainAddress(const std::string& text);

// Whether connecting to this address would reach this machine, according to its current interfaces.
bool IsThisMachine(const std::string& text);

}  // namespace drakkar::net
