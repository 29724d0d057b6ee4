#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/slice.h"

namespace drakkar::device {

struct Toleration {
  std::string key;
  std::string op;  // Equal (also when empty) or Exists
  std::string value;
  std::string effect;
  std::optional<std::int64_t> toleration_seconds;

  bool operator==(const Toleration&) const = default;
};

bool Tolerates(const Toleration& toleration, const Taint& taint);

// The first taint that keeps a device from being allocated, or null.
const Taint* FindUntolerated(const std::vector<Taint>& taints,
                             const std::vector<Toleration>& tolerations);

}  // namespace drakkar::device
