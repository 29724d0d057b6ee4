#pragma once

#include <string_view>

namespace drakkar::answers {

// Compares numbers in names by value: gpu-2 comes before gpu-10.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace drakkar::answers
