#pragma once

#include <string_view>

namespace drakkar::answers {

// Names as people count: gpu-2 before gpu-10.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace drakkar::answers
