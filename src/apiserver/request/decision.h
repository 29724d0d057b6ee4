#pragma once

#include <string>
#include <utility>

namespace drakkar::apiserver {

// An authorizer's answer. The default is a denial.
struct [[nodiscard]] Decision {
  bool allowed = false;
  std::string reason = {};  // of a denial; may be empty

  static Decision Allow() { return {.allowed = true}; }
  static Decision Deny(std::string reason = {}) { return {.reason = std::move(reason)}; }

  bool operator==(const Decision&) const = default;
};

}  // namespace drakkar::apiserver
