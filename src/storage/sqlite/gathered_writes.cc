#include "storage/sqlite/gathered_writes.h"

#include <algorithm>

#include "base/result/check.h"

namespace drakkar::storage {

bool GatheredWrites::CanTake(std::int64_t offset, std::size_t size_bytes) const {
  if (size_bytes > kMaxBytes - size_) return false;
  return empty() || offset_ + static_cast<std::int64_t>(size_) == offset;
}

void GatheredWrites::Add(std::int64_t offset, std::string_view bytes) {
  CHECK(CanTake(offset, bytes.size()));
  if (buffer_ == nullptr) buffer_.reset(new char[kMaxBytes]);
  if (empty()) offset_ = offset;
  std::copy_n(bytes.data(), bytes.size(), buffer_.get() + size_);
  size_ += bytes.size();
}

}  // namespace drakkar::storage
