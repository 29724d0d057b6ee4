#include "cel/value/arena.h"

#include <algorithm>

namespace drakkar::cel {

void* Arena::AllocateSlow(std::size_t size) {
  constexpr std::size_t kFirstBlockBytes = 1'024;
  while (block_ + 1 < blocks_.size()) {
    ++block_;
    used_ = 0;
    if (size <= blocks_[block_].size) {
      used_ = size;
      return blocks_[block_].memory.get();
    }
  }
  const std::size_t last = blocks_.empty() ? kFirstBlockBytes : blocks_.back().size * 2;
  const std::size_t block_size = std::max(size, std::min<std::size_t>(last, 1 << 20));
  blocks_.push_back({std::make_unique<std::byte[]>(block_size), block_size});
  block_ = blocks_.size() - 1;
  used_ = size;
  return blocks_[block_].memory.get();
}

}  // namespace drakkar::cel
