#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::cli {

// Numbers by size, texts by letters; what is not there comes first.
bool SortsBefore(api::Value a, api::Value b);

// The order of `objects` by the field that --sort-by names: indices. `path` must be valid.
std::vector<std::size_t> SortedBy(const std::string& path,
                                  const std::vector<api::TreePtr>& objects);
std::vector<std::size_t> SortedBy(const std::string& path, const std::vector<api::Value>& objects);

}  // namespace drakkar::cli
