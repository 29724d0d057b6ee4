#pragma once

#include <optional>
#include <string>

#include "api/apply/field_set.h"
#include "api/schema/schema.h"

// Shared by the parts of typed_value.
namespace drakkar::api::typed {

inline bool IsMergedList(const TypeSchema& type) {
  return type.kind == FieldKind::kList && type.merge != MergeKind::kAtomic;
}
inline bool IsGranularMap(const TypeSchema& type) {
  return type.kind == FieldKind::kMap && type.merge == MergeKind::kGranular;
}
inline bool IsGranularStruct(const TypeSchema& type) {
  return type.kind == FieldKind::kStruct && type.merge == MergeKind::kGranular;
}

// How an element of a merged list is called: JSON of its value, or of its keys. Nothing if it lacks
// all keys or is of the wrong kind; `problem` then says so.
struct Element {
  char kind = 'v';
  std::string text;
};
std::optional<Element> ElementOf(const TypeSchema& list, Value element, std::string* problem);

// A struct as a type of its own, for the root.
TypeSchema RootType(const StructSchema& schema);

}  // namespace drakkar::api::typed
