#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/meta/quantity.h"

namespace drakkar::device {

// A version as written: it is parsed when the device is prepared for evaluation.
struct VersionText {
  std::string text;
  bool operator==(const VersionText&) const = default;
};

// One value of an attribute, or a list of one kind; monostate is an attribute without a value.
using AttributeValue = std::variant<std::monostate, std::int64_t, bool, std::string, VersionText,
                                    std::vector<std::int64_t>, std::vector<bool>,
                                    std::vector<std::string>, std::vector<VersionText>>;

// The part of a device that selectors see. Names are as in the slice: "domain/name", or "name" for
// the driver's own domain.
struct DeviceInput {
  std::string driver;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  std::vector<std::pair<std::string, api::Quantity>> capacity;
  bool allow_multiple_allocations = false;
};

}  // namespace drakkar::device
