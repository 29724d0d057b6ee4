#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/device_input.h"

namespace drakkar::device {

struct Attribute {
  std::string name;  // as published: "domain/id", or "id" in the driver's own domain
  AttributeValue value;

  bool operator==(const Attribute&) const = default;
};

// Finds the attribute `name` ("domain/id") on a device of `driver`: published under exactly that
// name, or under the bare id if the domain is the driver's. Null if there is none. `attributes`
// must be sorted by name.
const AttributeValue* FindAttribute(const std::vector<Attribute>& attributes,
                                    std::string_view driver, std::string_view name);

}  // namespace drakkar::device
