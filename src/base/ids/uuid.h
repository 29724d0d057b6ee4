#pragma once

#include <string>
#include <string_view>

#include "base/env/random.h"

namespace drakkar {

// A random (version 4) UUID in the lower-case form Kubernetes uses for UIDs.
std::string NewUuid(Random& random);

bool IsUuid(std::string_view text);

}  // namespace drakkar
