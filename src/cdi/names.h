#pragma once

#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::cdi {

// "<vendor>/<class>=<device>".
struct QualifiedName {
  std::string vendor;
  std::string device_class;
  std::string device;

  std::string ToString() const;
  bool operator==(const QualifiedName&) const = default;
};

Result<QualifiedName> ParseQualifiedName(std::string_view text);

// Vendor and class: start with a letter, contain letters, digits, '.', '_' and '-', and end with a
// letter or digit.
Result<void> ValidateVendor(std::string_view vendor);
Result<void> ValidateClass(std::string_view device_class);
// "<vendor>/<class>".
Result<void> ValidateKind(std::string_view kind);
// Device: starts and ends with a letter or digit, and may also contain ':'.
Result<void> ValidateDeviceName(std::string_view name);

}  // namespace drakkar::cdi
