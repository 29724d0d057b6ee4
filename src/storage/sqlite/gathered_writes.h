#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace drakkar::storage {

// Combines adjacent writes to one file into a single write of at most kMaxBytes. The buffer is
// allocated with the first write. Not thread-safe.
class GatheredWrites {
 public:
  // SQLite's own layer writes less than 128 KiB in one call.
  static constexpr std::size_t kMaxBytes = 124 * 1024;

  // Whether a write can be added: it fits, and it continues the previous one or is the first.
  bool CanTake(std::int64_t offset, std::size_t size_bytes) const;
  // CanTake must be true for this write.
  void Add(std::int64_t offset, std::string_view bytes);

  bool empty() const { return size_ == 0; }
  std::int64_t offset() const { return offset_; }
  std::string_view bytes() const { return {buffer_.get(), size_}; }
  void Clear() { size_ = 0; }

 private:
  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
  std::int64_t offset_ = 0;
};

}  // namespace drakkar::storage
