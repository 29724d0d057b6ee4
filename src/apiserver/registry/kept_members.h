#pragma once

#include <string_view>

#include "api/tree/draft.h"

// What an update may not change becomes again what it was. The drafts borrow from `before`.
namespace drakkar::apiserver {

// `object` gets the member as it is in `before`, or loses it.
void KeepMember(api::FieldName member, api::Value before, api::Draft& object);
// Everything but `member` becomes what it is in `before` (apiVersion, kind and metadata excepted).
void KeepAllBut(api::FieldName member, api::Value before, api::Draft& object);

}  // namespace drakkar::apiserver
