#include "answers/cluster/attributes.h"

#include "device/attribute.h"

namespace drakkar::answers {
namespace {

struct TextVisitor {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t each) const { return std::to_string(each); }
  std::string operator()(bool each) const { return each ? "true" : "false"; }
  std::string operator()(const std::string& each) const { return each; }
  std::string operator()(const device::VersionText& each) const { return each.text; }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text;
    for (const auto& each : values) {
      if (!text.empty()) text += ',';
      text += (*this)(static_cast<const T&>(each));
    }
    return text;
  }
};

}  // namespace

std::string AttributeText(const device::AttributeValue& value) {
  return std::visit(TextVisitor(), value);
}

std::string FindAttributeText(std::string_view driver, const device::Device& device,
                              std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    const auto* value = device::FindAttribute(device.attributes, driver, name);
    return value == nullptr ? std::string() : AttributeText(*value);
  }
  for (const device::Attribute& attribute : device.attributes) {
    const std::size_t slash = attribute.name.find('/');
    const std::string_view id = slash == std::string::npos
                                    ? std::string_view(attribute.name)
                                    : std::string_view(attribute.name).substr(slash + 1);
    if (id == name) return AttributeText(attribute.value);
  }
  return {};
}

std::string ModelOf(std::string_view driver, const device::Device& device) {
  for (const std::string_view name : {"model", "productName", "product", "type"}) {
    if (std::string text = FindAttributeText(driver, device, name); !text.empty()) return text;
  }
  return {};
}

}  // namespace drakkar::answers
