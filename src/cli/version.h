#pragma once

#include <string_view>

#include "base/version.h"

namespace drakkar::cli {

// The version of this program, and the Kubernetes release that it implements.
inline constexpr std::string_view kVersion = "v" DRAKKAR_VERSION;
inline constexpr std::string_view kKubernetesVersion = "v1.37.0";

}  // namespace drakkar::cli
