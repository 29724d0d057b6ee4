#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/rest/failure.h"

// Builders of the causes validation reports, in Kubernetes' words.
namespace drakkar::apiserver {

Cause Required(std::string field, std::string_view detail = {});
// `shown` is the value as it is printed: quoted for strings, JSON for everything else.
Cause Invalid(std::string field, std::string shown, std::string_view detail);
Cause InvalidText(std::string field, std::string_view value, std::string_view detail);
Cause Duplicate(std::string field, std::string_view value);
Cause Forbidden(std::string field, std::string_view detail);
Cause TooLong(std::string field, std::size_t limit_bytes);
Cause TooMany(std::string field, std::size_t count, std::size_t limit);
Cause NotFoundValue(std::string field, std::string_view value, std::string_view detail = {});
// The supported values are printed sorted.
Cause NotSupported(std::string field, std::string_view value,
                   std::vector<std::string_view> supported);

}  // namespace drakkar::apiserver
