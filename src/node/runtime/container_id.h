#pragma once

#include <string>

#include "base/env/random.h"

namespace drakkar::node {

// 256 random bits in hexadecimal, as usual for container tools.
std::string NewContainerId(Random& random);

}  // namespace drakkar::node
