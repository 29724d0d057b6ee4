#pragma once

#include <string_view>

#include "api/tree/draft.h"

// Walks drafts that have not been validated.
namespace drakkar::apiserver {

// The object in a field; null if the field is absent or not an object.
inline api::Draft* FindObject(api::Draft& owner, api::FieldName field) {
  api::Draft* found = owner.is_object() ? owner.Find(field) : nullptr;
  return found != nullptr && found->is_object() ? found : nullptr;
}

// Calls `change` for every object in a list field.
template <typename Change>
void ForEach(api::Draft& owner, api::FieldName field, const Change& change) {
  api::Draft* list = owner.is_object() ? owner.Find(field) : nullptr;
  if (list == nullptr || !list->is_array()) return;
  for (api::Draft& item : list->MutableElements()) {
    if (item.is_object()) change(item);
  }
}

}  // namespace drakkar::apiserver
