#pragma once

#include <span>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::features {

// Checks of JSON that programs hand us. Objects of Kubernetes may have fields that this version
// does not know; what the catalog looks at must be of the right type, since a field that cannot be
// read would otherwise count as one that is not there, and a pod would need nothing.

// `object` must have no other keys than these.
Result<void> CheckKeys(api::Value object, std::span<const std::string_view> known);

// The text of a key; empty if there is none.
Result<std::string_view> OptionalText(api::Value object, api::FieldName key);

// Whole objects; `what` begins the paths in errors ("oldPod"). Absent ones are an error.
Result<void> CheckPodShape(api::Value pod, std::string_view what);
Result<void> CheckClaimShape(api::Value claim, std::string_view what);
Result<void> CheckNodeShape(api::Value node, std::string_view what);

}  // namespace drakkar::features
