#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace drakkar::device {

// A semantic version as published; compared as text, parsed only by expressions.
struct VersionText {
  std::string text;
  bool operator==(const VersionText&) const = default;
};

// The value of a device attribute. The first alternative is "none of the known fields is set",
// which fails every expression on the device and every constraint on the attribute.
using AttributeValue =
    std::variant<std::monostate, std::int64_t, bool, std::string, VersionText,
                 std::vector<std::int64_t>, std::vector<bool>, std::vector<std::string>,
                 std::vector<VersionText>>;

struct Attribute {
  std::string name;  // as published: "domain/id", or "id" in the driver's own domain
  AttributeValue value;

  bool operator==(const Attribute&) const = default;
};

// The attribute that `name` ("domain/id") means on a device of `driver`: published under exactly
// that name, or under the bare id if the domain is the driver's. Null if there is none. `attributes`
// must be sorted by name.
const AttributeValue* FindAttribute(const std::vector<Attribute>& attributes,
                                    std::string_view driver, std::string_view name);

}  // namespace drakkar::device
