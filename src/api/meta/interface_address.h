#pragma once

#include <string_view>

#include "base/result/result.h"

namespace drakkar::api {

// Checks the address of a network interface ("10.9.8.7/24"). The error is Kubernetes': "must be
// ...".
Result<void> CheckInterfaceAddress(std::string_view address);

}  // namespace drakkar::api
