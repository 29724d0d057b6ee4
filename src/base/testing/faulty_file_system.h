#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"

namespace drakkar {

// Wraps a file system and makes chosen calls fail with EIO and without effect. For code that needs
// real files (links, mounts, other programs); MemoryFileSystem does the same in memory. The steps
// of WriteFileAtomically count individually. Thread-safe.
class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& inner) : inner_(inner) {}

  // Fails the n-th call from now (0 is the next).
  void FailCall(std::size_t calls_from_now);
  // Fails the next such calls ("read", "write", "stat", ...) for paths that contain `part`.
  void FailNext(std::string_view what, std::string_view part, int times = 1);
  // Stops injecting failures.
  void Stop();
  std::size_t calls() const;
  std::string failed()
      const;  // "read /path": the call that failed since one was chosen; empty if none

  Result<std::string> ReadFile(const std::string& path) override;
  Result<void> WriteFile(const std::string& path, std::string_view content,
                         std::uint32_t mode) override;
  Result<void> AppendFile(const std::string& path, std::string_view content,
                          std::uint32_t mode) override;
  Result<void> SyncFile(const std::string& path) override;
  Result<void> SyncDirectory(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> RemoveTree(const std::string& path) override;
  Result<void> MakeDirectories(const std::string& path, std::uint32_t mode) override;
  Result<std::vector<std::string>> ListDirectory(const std::string& path) override;
  Result<FileInfo> Stat(const std::string& path) override;
  Result<FileInfo> LinkStat(const std::string& path) override;
  Result<std::string> ReadLink(const std::string& path) override;
  Result<void> SetMode(const std::string& path, std::uint32_t mode) override;
  Result<std::string> ReadFileRange(const std::string& path, std::uint64_t offset,
                                    std::size_t max_bytes) override;
  Result<void> OverwriteFile(const std::string& path, std::uint64_t offset,
                             std::string_view content, bool sync) override;

 private:
  Result<void> Enter(std::string_view what, const std::string& path);

  FileSystem& inner_;
  mutable std::mutex mutex_;
  std::size_t calls_ = 0;
  std::size_t fail_at_ = SIZE_MAX;
  std::string fail_what_;
  std::string fail_part_;
  int fail_times_ = 0;  // remaining failures
  std::string failed_;
};

}  // namespace drakkar
