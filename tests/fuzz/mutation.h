#pragma once

#include <string>
#include <vector>

#include "base/env/random.h"

namespace drakkar::fuzz {

// One of the seeds with one to four changes: bits, bytes, numbers, pieces left out, repeated, or
// taken from another seed. Equal generators give equal bytes. `seeds` must not be empty.
std::string Mutate(const std::vector<std::string>& seeds, Random& random);

}  // namespace drakkar::fuzz
