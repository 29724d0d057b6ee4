#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "api/field_names.h"
#include "api/tree/key.h"

namespace drakkar::api {
namespace internal {

// Neither constexpr nor defined: reaching this call while a FieldName is constructed is a compile
// error that quotes both names.
void this_field_name_is_not_in_schema(const char* name);

consteval bool Less(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<unsigned char>(*a) < static_cast<unsigned char>(*b);
}

consteval std::size_t IndexOfFieldName(const char* name) {
  std::size_t low = 1;  // entry 0 is no name
  std::size_t high = generated::kFieldNameCount;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (Less(generated::kFieldNames[middle], name)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == generated::kFieldNameCount || Less(name, generated::kFieldNames[low])) {
    this_field_name_is_not_in_schema(name);
  }
  return low;
}

}  // namespace internal

// The name of a field, checked by the compiler: a literal that is neither a field in
// schema/*.schema nor listed in schema/documents.names does not compile. At run time it is the
// address of the schema's Key. Names that are known only at run time, and keys of maps, go through
// Value::Entry and Draft::Entry instead.
class FieldName {
 public:
  consteval FieldName(const char* name)  // NOLINT: implicit, so that pod["spec"] reads as JSON does
      : key_(&generated::kKeys[internal::IndexOfFieldName(name)]) {}

  constexpr const Key& key() const { return *key_; }
  std::string_view view() const { return key_->view(); }
  operator std::string_view() const { return view(); }  // NOLINT: implicit, a name is a text
  friend constexpr bool operator==(FieldName, FieldName) = default;

 private:
  const Key* key_;
};

// for (FieldName list : FieldNames{"initContainers", "containers"}) ...
using FieldNames = std::initializer_list<FieldName>;

}  // namespace drakkar::api
