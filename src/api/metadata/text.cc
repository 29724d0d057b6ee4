#include "api/metadata/text.h"

namespace drakkar::metadata {
namespace {

struct TextOf {
  std::string_view separator;

  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(bool truth) const { return truth ? "true" : "false"; }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const Version& version) const { return version.text; }
  template <typename T>
  std::string operator()(const std::vector<T>& items) const {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += separator;
      text += (*this)(items[i]);
    }
    return text;
  }
};

}  // namespace

std::string EnvironmentName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    name += letter ? static_cast<char>(c & ~0x20) : digit ? c : '_';
  }
  return name;
}

std::string AttributeText(const AttributeValue& value, std::string_view separator) {
  return std::visit(TextOf{separator}, value);
}

}  // namespace drakkar::metadata
