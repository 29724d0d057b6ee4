#pragma once

#include <string>
#include <string_view>

namespace drakkar::api {

// What Kubernetes finds wrong with an address of a network interface ("10.9.8.7/24"), in its words;
// "" if it is fine.
std::string InterfaceAddressProblem(std::string_view address);

}  // namespace drakkar::api
