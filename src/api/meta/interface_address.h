#pragma once

#include <optional>
#include <string_view>

#include "api/meta/names.h"
#include "base/result/result.h"

namespace drakkar::api {

// Checks the address of a network interface ("10.9.8.7/24"). The error is Kubernetes': "must be
// ...".
Result<void> CheckInterfaceAddress(std::string_view address);

// The problems of an IP address ("10.9.8.7") and of a network ("10.9.8.0/24") in Kubernetes' words;
// none if it is valid. Forms that programs read differently (leading zeros, IPv4 inside IPv6, bits
// beyond the prefix) are problems too.
Problems CheckIpAddress(std::string_view address);
Problems CheckNetwork(std::string_view network);
// Whether the network is in `outer` and smaller; nullopt if one of them is not a network.
std::optional<bool> IsStrictSubnet(std::string_view network, std::string_view outer);

}  // namespace drakkar::api
