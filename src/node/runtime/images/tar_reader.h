#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "node/runtime/images/byte_source.h"

namespace drakkar::node {

enum class TarEntryType {
  kFile,
  kHardLink,
  kSymlink,
  kCharacterDevice,
  kBlockDevice,
  kDirectory,
  kFifo
};

struct TarEntry {
  TarEntryType type = TarEntryType::kFile;
  std::string path;  // as written; see CleanTarPath
  std::string link_target;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_seconds = 0;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::map<std::string, std::string> extended_attributes;
};

// Limits, because an archive is untrusted input; exceeding one is an error.
constexpr std::size_t kMaxTarPathBytes = 4096;
constexpr std::size_t kMaxTarHeaderBytes = 1u << 20;  // of one pax or long-name record
constexpr std::uint64_t kMaxTarEntries = 4'000'000;

// Reads ustar, pax and GNU archives from front to back. Sparse files and volume headers are
// refused; checksums are verified. Does no file I/O itself.
class TarReader {
 public:
  explicit TarReader(ByteSource& source) : source_(source) {}

  // The next entry, or nothing at the end. Skips unread content of the current one.
  Result<std::optional<TarEntry>> Next();
  // Content of the current entry; 0 is its end.
  Result<std::size_t> Read(char* buffer, std::size_t size);

 private:
  Result<bool> ReadBlock(char* block);  // false: the stream ended at a block boundary
  Result<void> Skip(std::uint64_t bytes);
  Result<void> Drain();
  Result<std::string> ReadRecord(std::uint64_t size);

  ByteSource& source_;
  std::uint64_t left_ = 0;  // content of the current entry not read yet
  std::uint64_t padding_ = 0;
  std::uint64_t entries_ = 0;
  std::map<std::string, std::string> global_pax_;
};

// "./a//b/" -> "a/b", "/" -> "". Refuses ".." and NUL: such an archive is broken or hostile.
Result<std::string> CleanTarPath(std::string_view path);

}  // namespace drakkar::node
