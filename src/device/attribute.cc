#include "device/attribute.h"

#include <algorithm>

namespace drakkar::device {
namespace {

const AttributeValue* FindExact(const std::vector<Attribute>& attributes, std::string_view name) {
  const auto found = std::lower_bound(
      attributes.begin(), attributes.end(), name,
      [](const Attribute& attribute, std::string_view wanted) { return attribute.name < wanted; });
  if (found == attributes.end() || found->name != name) return nullptr;
  return &found->value;
}

}  // namespace

const AttributeValue* FindAttribute(const std::vector<Attribute>& attributes,
                                    std::string_view driver, std::string_view name) {
  if (const AttributeValue* exact = FindExact(attributes, name)) return exact;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.substr(0, slash) != driver) return nullptr;
  return FindExact(attributes, name.substr(slash + 1));
}

}  // namespace drakkar::device
