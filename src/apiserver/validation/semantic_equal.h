#pragma once

#include <string_view>

#include "api/meta/skipped_operations.h"
#include "api/schema/schema.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {

// Whether two values are semantically equal: quantities by amount, an empty list or map like none,
// skipNodeOperations in any form (true is ["*"], false and [] are nothing; the order of a set does
// not matter).
bool SemanticEqual(api::Value a, api::Value b, const api::TypeSchema& type);
// `structure` is a name of the v1 schema without its package: "ResourceSliceSpec".
bool SemanticEqual(api::Value a, api::Value b, std::string_view structure);
bool SemanticEqual(api::Value a, api::Value b, const api::StructSchema& structure);

using api::SameSkippedOperations;
using api::SkippedOperations;

}  // namespace drakkar::apiserver
