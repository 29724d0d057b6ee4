#pragma once

#include <cstdint>
#include <string_view>

#include "cel/types/type.h"
#include "cel/value/value.h"

namespace drakkar::cel {

// What an overload requires of one argument, computed at planning time. Elements of lists and maps
// are not checked.
struct ArgumentGuard {
  std::uint32_t kinds = 0;                 // a bit for each Kind
  const ObjectTypeName* object = nullptr;  // objects of this type only, unless null
  std::string_view object_name;            // or of this name only, unless empty

  bool Passes(const Value& value) const {
    if ((kinds >> static_cast<unsigned>(value.kind) & 1) == 0) return false;
    if (value.kind != Kind::kObject) return true;
    if (object != nullptr) return value.object->type_id() == object;
    return object_name.empty() || value.object->type_name() == object_name;
  }
};
// `type` must outlive the guard.
ArgumentGuard GuardFor(const Type& type);

// The name Kubernetes' error messages give a value's type: "types.String".
std::string_view GoTypeName(const Value& value);

}  // namespace drakkar::cel
