#include "base/testing/faulty_file_system.h"

#include <cerrno>
#include <utility>

namespace drakkar {

void FaultyFileSystem::FailCall(std::size_t calls_from_now) {
  std::lock_guard lock(mutex_);
  fail_at_ = calls_ + calls_from_now;
  failed_.clear();
}

void FaultyFileSystem::FailNext(std::string_view what, std::string_view part, int times) {
  std::lock_guard lock(mutex_);
  fail_what_ = what;
  fail_part_ = part;
  fail_times_ = times;
  failed_.clear();
}

void FaultyFileSystem::Stop() {
  std::lock_guard lock(mutex_);
  fail_at_ = SIZE_MAX;
  fail_times_ = 0;
}

std::size_t FaultyFileSystem::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

std::string FaultyFileSystem::failed() const {
  std::lock_guard lock(mutex_);
  return failed_;
}

Result<void> FaultyFileSystem::Enter(std::string_view what, const std::string& path) {
  std::lock_guard lock(mutex_);
  const bool is_its_turn = calls_++ == fail_at_;
  const bool is_waited_for =
      fail_times_ > 0 && what == fail_what_ && path.find(fail_part_) != std::string::npos;
  if (!is_its_turn && !is_waited_for) return Ok();
  if (is_its_turn) fail_at_ = SIZE_MAX;
  if (is_waited_for) --fail_times_;
  failed_ = std::string(what) + " " + path;
  return ErrnoError(EIO, failed_);
}

Result<std::string> FaultyFileSystem::ReadFile(const std::string& path) {
  RETURN_IF_ERROR(Enter("read", path));
  return inner_.ReadFile(path);
}

Result<void> FaultyFileSystem::SyncFile(const std::string& path) {
  RETURN_IF_ERROR(Enter("sync", path));
  return inner_.SyncFile(path);
}

Result<void> FaultyFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Enter("sync directory", path));
  return inner_.SyncDirectory(path);
}

Result<void> FaultyFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Enter("remove", path));
  return inner_.Remove(path);
}

Result<void> FaultyFileSystem::RemoveTree(const std::string& path) {
  RETURN_IF_ERROR(Enter("remove tree", path));
  return inner_.RemoveTree(path);
}

Result<std::vector<std::string>> FaultyFileSystem::ListDirectory(const std::string& path) {
  RETURN_IF_ERROR(Enter("list", path));
  return inner_.ListDirectory(path);
}

Result<FileInfo> FaultyFileSystem::Stat(const std::string& path) {
  RETURN_IF_ERROR(Enter("stat", path));
  return inner_.Stat(path);
}

Result<FileInfo> FaultyFileSystem::LinkStat(const std::string& path) {
  RETURN_IF_ERROR(Enter("link stat", path));
  return inner_.LinkStat(path);
}

Result<std::string> FaultyFileSystem::ReadLink(const std::string& path) {
  RETURN_IF_ERROR(Enter("read link", path));
  return inner_.ReadLink(path);
}

Result<void> FaultyFileSystem::WriteFile(const std::string& path, std::string_view content,
                                         std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("write", path));
  return inner_.WriteFile(path, content, mode);
}

Result<void> FaultyFileSystem::AppendFile(const std::string& path, std::string_view content,
                                          std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("append", path));
  return inner_.AppendFile(path, content, mode);
}

Result<void> FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Enter("rename", from));
  return inner_.Rename(from, to);
}

Result<void> FaultyFileSystem::MakeDirectories(const std::string& path, std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("make directory", path));
  return inner_.MakeDirectories(path, mode);
}

Result<void> FaultyFileSystem::SetMode(const std::string& path, std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("change mode", path));
  return inner_.SetMode(path, mode);
}

Result<std::string> FaultyFileSystem::ReadFileRange(const std::string& path, std::uint64_t offset,
                                                    std::size_t max_bytes) {
  RETURN_IF_ERROR(Enter("read range", path));
  return inner_.ReadFileRange(path, offset, max_bytes);
}

Result<void> FaultyFileSystem::OverwriteFile(const std::string& path, std::uint64_t offset,
                                             std::string_view content, bool sync) {
  RETURN_IF_ERROR(Enter("overwrite", path));
  return inner_.OverwriteFile(path, offset, content, sync);
}

}  // namespace drakkar
