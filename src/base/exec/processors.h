#pragma once

#include <cstddef>

namespace drakkar {

// The number of processors that this process may use; at least one.
std::size_t ProcessorCount();

}  // namespace drakkar
