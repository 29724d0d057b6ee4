#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"

namespace drakkar {

// An in-memory file system that can fail and crash on purpose.
//
// A file's bytes become durable at SyncFile, a directory's entries at SyncDirectory. `Crash`
// reverts to the durable state. `FailCall(n)` makes the n-th call from now (0 is the next) fail
// once, so that a test can fail each call in turn.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();

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
  Result<void> OverwriteFile(const std::string& path, std::uint64_t offset,
                             std::string_view content, bool sync) override;

  // Creates a socket file, as listening on a path does. Remove deletes it.
  void MakeSocket(const std::string& path);

  void FailCall(std::size_t calls_from_now);
  void Crash();
  std::size_t calls() const { return calls_; }

 private:
  struct Inode {
    FileType type = FileType::kRegular;
    std::uint32_t mode = 0;
    std::string content;
    std::string durable_content;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  Result<void> Enter(std::string_view what, const std::string& path);
  Result<void> Store(const std::string& path, std::string_view content, std::uint32_t mode,
                     bool append);

  Names names_;
  Names durable_names_;
  std::size_t calls_ = 0;
  std::size_t fail_at_ = SIZE_MAX;
};

}  // namespace drakkar
