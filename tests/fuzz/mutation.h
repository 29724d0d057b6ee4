#pragma once

#include <string>
#include <vector>

#include "base/env/random.h"

namespace drakkar::fuzz {

// One of the seeds with one to four changes: flipped bits, changed bytes or numbers, and pieces
// removed, repeated or taken from another seed. Deterministic for a given generator. `seeds` must
// not be empty.
std::string Mutate(const std::vector<std::string>& seeds, Random& random);

}  // namespace drakkar::fuzz
