#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/draft.h"

// Shared by applying and creating strategic merge patches.
namespace drakkar::api::strategic {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList/";

// The type of member `name` of an object of type `type`; null if the schema has none.
const TypeSchema* MemberType(const TypeSchema* type, std::string_view name);

inline bool MergesList(const TypeSchema* type) {
  return type != nullptr && type->kind == FieldKind::kList && type->patch_merge;
}
inline bool RetainsKeys(const TypeSchema* type) {
  return type != nullptr && type->patch_retain_keys;
}
inline std::string_view MergeKey(const TypeSchema* type) {
  return type == nullptr ? std::string_view() : type->patch_merge_key;
}
inline const TypeSchema* ElementType(const TypeSchema* type) {
  return type == nullptr ? nullptr : type->element;
}

// A value as Go's %v shows it: map[a:1 b:[x y]].
std::string GoText(Value value);

}  // namespace drakkar::api::strategic
