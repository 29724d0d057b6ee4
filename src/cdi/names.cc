#include "cdi/names.h"

#include "base/text/text.h"

namespace drakkar::cdi {
namespace {

// ASCII only, independent of the locale.
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsLetterOrDigit(char c) {
  return IsLetter(c) || (c >= '0' && c <= '9');
}

Result<void> ValidateName(std::string_view what, std::string_view name, bool starts_with_letter,
                          std::string_view inside) {
  if (name.empty()) return InvalidArgument(StrCat(what, " name must not be empty"));
  const bool good_start =
      starts_with_letter ? IsLetter(name.front()) : IsLetterOrDigit(name.front());
  if (!good_start) {
    return InvalidArgument(StrCat(what, " name ", Quote(name), " must start with a letter",
                                  starts_with_letter ? "" : " or digit"));
  }
  for (const char c : name) {
    if (!IsLetterOrDigit(c) && inside.find(c) == std::string_view::npos) {
      return InvalidArgument(StrCat(what, " name ", Quote(name), " contains ",
                                    Quote(std::string_view(&c, 1)), ", which is not allowed"));
    }
  }
  if (!IsLetterOrDigit(name.back())) {
    return InvalidArgument(StrCat(what, " name ", Quote(name), " must end with a letter or digit"));
  }
  return Ok();
}

}  // namespace

std::string QualifiedName::ToString() const {
  return StrCat(vendor, "/", device_class, "=", device);
}

Result<QualifiedName> ParseQualifiedName(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::size_t equals = text.find('=');
  if (slash == std::string_view::npos || equals == std::string_view::npos || slash > equals) {
    return InvalidArgument(
        StrCat("CDI device ", Quote(text), " is not of the form <vendor>/<class>=<device>"));
  }
  QualifiedName name{.vendor = std::string(text.substr(0, slash)),
                     .device_class = std::string(text.substr(slash + 1, equals - slash - 1)),
                     .device = std::string(text.substr(equals + 1))};
  for (Result<void> valid : {ValidateVendor(name.vendor), ValidateClass(name.device_class),
                             ValidateDeviceName(name.device)}) {
    if (!valid.ok()) return valid.error().Prefixed(StrCat("CDI device ", Quote(text)));
  }
  return name;
}

Result<void> ValidateVendor(std::string_view vendor) {
  return ValidateName("vendor", vendor, /*starts_with_letter=*/true, "._-");
}

Result<void> ValidateClass(std::string_view device_class) {
  return ValidateName("class", device_class, /*starts_with_letter=*/true, "._-");
}

Result<void> ValidateKind(std::string_view kind) {
  const std::size_t slash = kind.find('/');
  if (slash == std::string_view::npos) {
    return InvalidArgument(StrCat("kind ", Quote(kind), " is not of the form <vendor>/<class>"));
  }
  RETURN_IF_ERROR(ValidateVendor(kind.substr(0, slash)));
  return ValidateClass(kind.substr(slash + 1));
}

Result<void> ValidateDeviceName(std::string_view name) {
  return ValidateName("device", name, /*starts_with_letter=*/false, "._-:");
}

}  // namespace drakkar::cdi
