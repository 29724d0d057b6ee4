#pragma once

#include <string_view>

#include "api/tree/draft.h"

// Undo changes that an update may not make. The drafts borrow from `before`.
namespace drakkar::apiserver {

// Sets the member of `object` to its value in `before`, or removes it.
void KeepMember(api::FieldName member, api::Value before, api::Draft& object);
// Sets everything but `member` to its value in `before`, except apiVersion, kind and metadata.
void KeepAllBut(api::FieldName member, api::Value before, api::Draft& object);

}  // namespace drakkar::apiserver
