#pragma once

#include <cmath>
#include <cstdint>

// The cost units of Kubernetes and CEL. They decide which expressions an API server accepts, so
// they must never change.
namespace drakkar::cel::cost {

inline constexpr std::uint64_t kSelectOrIdent = 1;
inline constexpr std::uint64_t kListCreate = 10;
inline constexpr std::uint64_t kMapCreate = 30;
inline constexpr std::uint64_t kStructCreate = 40;
inline constexpr double kStringTraversal = 0.1;  // per character
inline constexpr double kRegexLength = 0.25;     // per character of a pattern

inline std::uint64_t Scaled(std::uint64_t size, double factor) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(size) * factor));
}

}  // namespace drakkar::cel::cost
