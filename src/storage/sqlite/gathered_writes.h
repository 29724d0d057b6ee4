#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace drakkar::storage {

// Writes to one file that follow each other, put together so that they go to the file as one. At
// most kMaxBytes, allocated with the first. Not thread-safe.
class GatheredWrites {
 public:
  // SQLite's own layer writes less than 128 KiB in one call.
  static constexpr std::size_t kMaxBytes = 124 * 1024;

  // Whether a write can join what is here: it fits, and continues it unless there is nothing yet.
  bool CanTake(std::int64_t offset, std::size_t size_bytes) const;
  // `CanTake` must hold.
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
