#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drakkar::api {

// "line 3, column 7" for a byte offset, both counted from 1.
std::string DescribePosition(std::string_view text, std::size_t offset);

}  // namespace drakkar::api
