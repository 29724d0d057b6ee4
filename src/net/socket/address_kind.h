#pragma once

#include <string>

namespace drakkar::net {

// What an IP address in its usual text form is for. IPv4 addresses inside IPv6 ones ("::ffff:") are
// told as IPv4.
enum class AddressKind {
  kNoAddress,    // a name, or not well-formed
  kUnspecified,  // 0.0.0.0, ::
  kLoopback,
  kLinkLocal,
  kMulticast,  // broadcast, too
  kOther,
};
AddressKind KindOfAddress(const std::string& text);

// Whether connecting to this address would end on this machine, by its interfaces of now.
bool IsThisMachine(const std::string& text);

}  // namespace drakkar::net
