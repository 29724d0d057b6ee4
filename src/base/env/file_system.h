#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar {

enum class FileType { kRegular, kDirectory, kSymlink, kSocket, kOther };

struct FileInfo {
  FileType type = FileType::kOther;
  std::uint64_t size_bytes = 0;
  std::uint32_t mode = 0;  // permission bits
  std::int64_t modified_seconds = 0;
};

// The only access to files. Calls block. They are short, except SyncFile and WriteFileAtomically
// with sync, which belong on a WorkerPool if a loop must not stall. Paths are used as given.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::string> ReadFile(const std::string& path) = 0;
  // Creates or truncates in place, for files that must keep their inode.
  virtual Result<void> WriteFile(const std::string& path, std::string_view content,
                                 std::uint32_t mode) = 0;
  virtual Result<void> AppendFile(const std::string& path, std::string_view content,
                                  std::uint32_t mode) = 0;
  virtual Result<void> SyncFile(const std::string& path) = 0;
  virtual Result<void> SyncDirectory(const std::string& path) = 0;
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> Remove(const std::string& path) = 0;      // a file or an empty directory
  virtual Result<void> RemoveTree(const std::string& path) = 0;  // absent is not an error
  virtual Result<void> MakeDirectories(const std::string& path, std::uint32_t mode) = 0;
  virtual Result<std::vector<std::string>> ListDirectory(const std::string& path) = 0;  // sorted
  virtual Result<FileInfo> Stat(const std::string& path) = 0;      // follows links
  virtual Result<FileInfo> LinkStat(const std::string& path) = 0;  // does not
  virtual Result<std::string> ReadLink(const std::string& path) = 0;
  virtual Result<void> SetMode(const std::string& path, std::uint32_t mode) = 0;

  // Reads at most `max_bytes` from `offset`; empty at the end. For files that grow while they are
  // read.
  virtual Result<std::string> ReadFileRange(const std::string& path, std::uint64_t offset,
                                            std::size_t max_bytes);

  // Replaces bytes in place, within the file's current size; with `sync` they are on disk
  // afterwards. If all bytes were written and synced before, this needs one disk flush and no
  // metadata update, which makes it the cheapest durable write. A crash may leave a mixture.
  virtual Result<void> OverwriteFile(const std::string& path, std::uint64_t offset,
                                     std::string_view content, bool sync);

  bool Exists(const std::string& path);
  // Writes a temporary file `.<base>.<pid>.tmp` next to `path`, syncs it, renames it over `path`
  // and syncs the directory. After a crash the file has the old or the new content, never a
  // mixture.
  Result<void> WriteFileAtomically(const std::string& path, std::string_view content,
                                   std::uint32_t mode, bool sync = true);
  // Ensures that the file has this content: leaves an equal file untouched, and replaces any other
  // atomically without a sync. Creates the directory if needed.
  Result<void> EnsureFile(const std::string& path, std::string_view content, std::uint32_t mode);

 protected:
  // WriteFile, SetMode and SyncFile for a new file.
  virtual Result<void> WriteTemporary(const std::string& path, std::string_view content,
                                      std::uint32_t mode, bool sync);
};

FileSystem& RealFileSystem();

// "a/b", without a double slash.
std::string JoinPath(std::string_view directory, std::string_view name);
std::string_view BaseName(std::string_view path);
std::string DirectoryName(std::string_view path);

}  // namespace drakkar
