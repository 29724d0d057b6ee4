#pragma once

#include <string_view>

#include "api/metadata/device_metadata.h"
#include "api/schema/schema.h"

namespace drakkar::metadata::internal {

// The fields of a version of the format; null if the version is unknown. These types belong to no
// served API group, so they are not in schema/.
const api::StructSchema* FindSchema(std::string_view api_version, Dialect dialect);

}  // namespace drakkar::metadata::internal
