#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/hash/sha256.h"
#include "base/result/result.h"

namespace drakkar::node {

// A stream of bytes, read once from front to back. Blocking: belongs on a worker.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `size` bytes; 0 is the end.
  virtual Result<std::size_t> Read(char* buffer, std::size_t size) = 0;
};

Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path);
std::unique_ptr<ByteSource> MakeStringSource(std::string_view bytes);  // borrows

// Passes bytes through and hashes them.
class HashingSource final : public ByteSource {
 public:
  explicit HashingSource(ByteSource& inner) : inner_(inner) {}
  Result<std::size_t> Read(char* buffer, std::size_t size) override;
  // Reads the rest, then returns the digest of everything: "sha256:...".
  Result<std::string> Finish();
  std::uint64_t bytes() const { return bytes_; }

 private:
  ByteSource& inner_;
  Sha256 hash_;
  std::uint64_t bytes_ = 0;
};

// Decompresses gzip (including multiple members) and zstd, or passes the stream through if it
// starts like neither.
std::unique_ptr<ByteSource> MakeDecompressor(ByteSource& inner);

}  // namespace drakkar::node
