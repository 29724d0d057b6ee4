#pragma once

#include <span>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::features {

// Checks JSON input from other programs. Kubernetes objects may have fields that this version does
// not know, but fields that the catalog inspects must have the right type: an unreadable field
// would otherwise count as absent, and the pod would seem to require nothing.

// `object` must have only these keys.
Result<void> CheckKeys(api::Value object, std::span<const std::string_view> known);

// The string value of a key; empty if absent. Errors name the key.
Result<std::string_view> OptionalText(api::Value object, api::FieldName key);

// Checks whole objects; `what` starts the paths in errors ("oldPod"). Absent objects are an error.
Result<void> CheckPodShape(api::Value pod, std::string_view what);
Result<void> CheckClaimShape(api::Value claim, std::string_view what);
Result<void> CheckNodeShape(api::Value node, std::string_view what);

}  // namespace drakkar::features
