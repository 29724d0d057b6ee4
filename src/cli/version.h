#pragma once

#include <string_view>

namespace drakkar::cli {

// Of this program, and of the Kubernetes release whose behaviour it has.
inline constexpr std::string_view kVersion = "v0.1.0";
inline constexpr std::string_view kKubernetesVersion = "v1.37.0";

}  // namespace drakkar::cli
