#include "node/runtime/container_id.h"

#include <cstdint>

namespace drakkar::node {

std::string NewContainerId(Random& random) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t bits = random.Next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

}  // namespace drakkar::node
