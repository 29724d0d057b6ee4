#pragma once

#include <string_view>

#include "api/tree/draft.h"
#include "api/tree/value.h"

namespace drakkar::api {

// Set by a delete request; the garbage collector removes them when it has done its part.
inline constexpr std::string_view kOrphanFinalizer = "orphan";
inline constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// `metadata` is an object's metadata.
bool HasFinalizer(Value metadata, std::string_view finalizer);
bool HasFinalizerOtherThan(Value metadata, std::string_view finalizer);
void AddFinalizer(Draft& metadata, std::string_view finalizer);
// Removes the list with its last entry.
void RemoveFinalizer(Draft& metadata, std::string_view finalizer);

}  // namespace drakkar::api
