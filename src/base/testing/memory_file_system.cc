#include "base/testing/memory_file_system.h"

#include <cerrno>

namespace drakkar {
namespace {

bool IsChild(const std::string& directory, const std::string& path) {
  const std::string prefix = directory == "/" ? "/" : directory + "/";
  return path.size() > prefix.size() && path.compare(0, prefix.size(), prefix) == 0;
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() {
  auto root = std::make_shared<Inode>();
  root->type = FileType::kDirectory;
  root->mode = 0755;
  names_["/"] = root;
  durable_names_ = names_;
}

Result<void> MemoryFileSystem::Enter(std::string_view what, const std::string& path) {
  const std::size_t call = calls_++;
  if (call != fail_at_) return Ok();
  fail_at_ = SIZE_MAX;
  return ErrnoError(EIO, std::string(what) + " " + path);
}

Result<std::string> MemoryFileSystem::ReadFile(const std::string& path) {
  RETURN_IF_ERROR(Enter("read", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "open " + path);
  if (found->second->type != FileType::kRegular) return ErrnoError(EISDIR, "read " + path);
  return found->second->content;
}

Result<void> MemoryFileSystem::Store(const std::string& path, std::string_view content,
                                     std::uint32_t mode, bool append) {
  RETURN_IF_ERROR(Enter("write", path));
  auto parent = names_.find(DirectoryName(path));
  if (parent == names_.end()) return ErrnoError(ENOENT, "open " + path);
  auto& inode = names_[path];
  if (inode == nullptr) {
    inode = std::make_shared<Inode>();
    inode->mode = mode;
  }
  if (inode->type != FileType::kRegular) return ErrnoError(EISDIR, "open " + path);
  if (!append) inode->content.clear();
  inode->content += content;
  return Ok();
}

Result<void> MemoryFileSystem::WriteFile(const std::string& path, std::string_view content,
                                         std::uint32_t mode) {
  return Store(path, content, mode, false);
}

Result<void> MemoryFileSystem::AppendFile(const std::string& path, std::string_view content,
                                          std::uint32_t mode) {
  return Store(path, content, mode, true);
}

Result<void> MemoryFileSystem::OverwriteFile(const std::string& path, std::uint64_t offset,
                                             std::string_view content, bool sync) {
  RETURN_IF_ERROR(Enter("write", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "open " + path);
  Inode& inode = *found->second;
  if (inode.type != FileType::kRegular) return ErrnoError(EISDIR, "open " + path);
  if (offset + content.size() > inode.content.size()) {
    return FailedPrecondition("overwrite " + path + ": the file is shorter");
  }
  inode.content.replace(offset, content.size(), content);
  return sync ? SyncFile(path) : Ok();
}

Result<void> MemoryFileSystem::SyncFile(const std::string& path) {
  RETURN_IF_ERROR(Enter("sync", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "open " + path);
  found->second->durable_content = found->second->content;
  return Ok();
}

Result<void> MemoryFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Enter("sync", path));
  if (!names_.contains(path)) return ErrnoError(ENOENT, "open " + path);
  std::erase_if(durable_names_, [&](const auto& entry) {
    return DirectoryName(entry.first) == path && !names_.contains(entry.first);
  });
  for (const auto& [name, inode] : names_) {
    if (DirectoryName(name) == path) durable_names_[name] = inode;
  }
  return Ok();
}

Result<void> MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Enter("rename", from));
  auto found = names_.find(from);
  if (found == names_.end()) return ErrnoError(ENOENT, "rename " + from);
  auto inode = found->second;
  for (const auto& [name, child] : names_) {
    if (IsChild(to, name)) return ErrnoError(ENOTEMPTY, "rename " + from);
  }
  Names moved;
  for (const auto& [name, child] : names_) {
    if (IsChild(from, name)) moved[to + name.substr(from.size())] = child;
  }
  std::erase_if(names_, [&](const auto& e) { return e.first == from || IsChild(from, e.first); });
  names_[to] = inode;
  names_.merge(moved);
  return Ok();
}

Result<void> MemoryFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Enter("remove", path));
  if (!names_.contains(path)) return ErrnoError(ENOENT, "remove " + path);
  for (const auto& [name, inode] : names_) {
    if (IsChild(path, name)) return ErrnoError(ENOTEMPTY, "remove " + path);
  }
  names_.erase(path);
  return Ok();
}

Result<void> MemoryFileSystem::RemoveTree(const std::string& path) {
  RETURN_IF_ERROR(Enter("remove", path));
  std::erase_if(names_, [&](const auto& e) { return e.first == path || IsChild(path, e.first); });
  return Ok();
}

Result<void> MemoryFileSystem::MakeDirectories(const std::string& path, std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("make directory", path));
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    std::string part = path.substr(0, end);
    auto& inode = names_[part];
    if (inode == nullptr) {
      inode = std::make_shared<Inode>();
      inode->type = FileType::kDirectory;
      inode->mode = mode;
      // A directory lost in a crash would only take its synced files with it. Keeping it models the
      // usual order of journals and keeps tests about files.
      durable_names_[part] = inode;
    } else if (inode->type != FileType::kDirectory) {
      return ErrnoError(ENOTDIR, "make directory " + part);
    }
  }
  return Ok();
}

Result<std::vector<std::string>> MemoryFileSystem::ListDirectory(const std::string& path) {
  RETURN_IF_ERROR(Enter("list", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "open directory " + path);
  if (found->second->type != FileType::kDirectory) return ErrnoError(ENOTDIR, "list " + path);
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (name != "/" && DirectoryName(name) == path) names.emplace_back(BaseName(name));
  }
  return names;
}

Result<FileInfo> MemoryFileSystem::Stat(const std::string& path) {
  RETURN_IF_ERROR(Enter("stat", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "stat " + path);
  return FileInfo{.type = found->second->type,
                  .size_bytes = found->second->content.size(),
                  .mode = found->second->mode};
}

Result<FileInfo> MemoryFileSystem::LinkStat(const std::string& path) {
  return Stat(path);
}

Result<std::string> MemoryFileSystem::ReadLink(const std::string& path) {
  RETURN_IF_ERROR(Enter("read link", path));
  return ErrnoError(EINVAL, "read link " + path);
}

Result<void> MemoryFileSystem::SetMode(const std::string& path, std::uint32_t mode) {
  RETURN_IF_ERROR(Enter("change mode", path));
  auto found = names_.find(path);
  if (found == names_.end()) return ErrnoError(ENOENT, "change mode of " + path);
  found->second->mode = mode;
  return Ok();
}

void MemoryFileSystem::MakeSocket(const std::string& path) {
  auto inode = std::make_shared<Inode>();
  inode->type = FileType::kSocket;
  inode->mode = 0600;
  names_[path] = std::move(inode);
}

void MemoryFileSystem::FailCall(std::size_t calls_from_now) {
  fail_at_ = calls_ + calls_from_now;
}

void MemoryFileSystem::Crash() {
  names_ = durable_names_;
  for (auto& [name, inode] : names_) {
    // A new inode, so that handles from before the crash do not leak into the time after it.
    auto survivor = std::make_shared<Inode>(*inode);
    survivor->content = survivor->durable_content;
    inode = survivor;
  }
  durable_names_ = names_;
}

}  // namespace drakkar
