#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::cli {

// Numbers by value, strings alphabetically; missing values first.
bool SortsBefore(api::Value a, api::Value b);

// The indices of `objects`, sorted by the field of --sort-by. `path` must be valid.
std::vector<std::size_t> SortedBy(const std::string& path,
                                  const std::vector<api::TreePtr>& objects);
std::vector<std::size_t> SortedBy(const std::string& path, const std::vector<api::Value>& objects);

}  // namespace drakkar::cli
