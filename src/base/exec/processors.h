#pragma once

#include <cstddef>

namespace drakkar {

// How many processors this process may use; at least one.
std::size_t ProcessorCount();

}  // namespace drakkar
