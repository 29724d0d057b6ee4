#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/env/tree_walk.h"

namespace drakkar {
namespace {

Result<void> WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "write " + path);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return Ok();
}

Error BeyondTheEnd(const std::string& path) {
  return FailedPrecondition("overwrite " + path + ": the file is shorter");
}

FileInfo ToInfo(const struct stat& st) {
  FileInfo info;
  if (S_ISREG(st.st_mode)) info.type = FileType::kRegular;
  if (S_ISDIR(st.st_mode)) info.type = FileType::kDirectory;
  if (S_ISLNK(st.st_mode)) info.type = FileType::kSymlink;
  if (S_ISSOCK(st.st_mode)) info.type = FileType::kSocket;
  info.size_bytes = static_cast<std::uint64_t>(st.st_size);
  info.mode = st.st_mode & 07777;
  info.modified_seconds = st.st_mtim.tv_sec;
  return info;
}

class MachineFileSystem final : public FileSystem {
 public:
  Result<std::string> ReadFile(const std::string& path) override {
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    std::string content;
    char buffer[65536];
    while (true) {
      ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
      if (n < 0) {
        if (errno == EINTR) continue;
        return ErrnoError(errno, "read " + path);
      }
      if (n == 0) return content;
      content.append(buffer, static_cast<std::size_t>(n));
    }
  }

  Result<std::string> ReadFileRange(const std::string& path, std::uint64_t offset,
                                    std::size_t max_bytes) override {
    // Containers write such files (logs, for example), so do not follow links or block on a FIFO.
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    std::string content(max_bytes, '\0');
    std::size_t filled = 0;
    while (filled < max_bytes) {
      const ssize_t n = ::pread(fd.get(), content.data() + filled, max_bytes - filled,
                                static_cast<off_t>(offset + filled));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(errno, "read " + path);
      if (n == 0) break;
      filled += static_cast<std::size_t>(n);
    }
    content.resize(filled);
    return content;
  }

  Result<void> WriteFile(const std::string& path, std::string_view content,
                         std::uint32_t mode) override {
    return Write(path, content, mode, O_TRUNC);
  }

  Result<void> AppendFile(const std::string& path, std::string_view content,
                          std::uint32_t mode) override {
    return Write(path, content, mode, O_APPEND);
  }

  Result<void> SyncFile(const std::string& path) override { return Sync(path, O_RDWR); }
  Result<void> SyncDirectory(const std::string& path) override {
    return Sync(path, O_RDONLY | O_DIRECTORY);
  }

  Result<void> Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoError(errno, "rename " + from);
    return Ok();
  }

  Result<void> Remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0) return ErrnoError(errno, "remove " + path);
    return Ok();
  }

  Result<void> RemoveTree(const std::string& path) override {
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0) {
      if (errno == ENOENT) return Ok();
      return ErrnoError(errno, "stat " + path);
    }
    if (S_ISDIR(st.st_mode)) {
      auto unlink = [](int directory, const std::string& name, int flags) -> Result<void> {
        if (::unlinkat(directory, name.c_str(), flags) == 0 || errno == ENOENT) return Ok();
        return ErrnoError(errno, "remove " + name);
      };
      auto emptied = WalkTree(
          path,
          {.on_entry = [&](int directory, const std::string& name,
                           const struct stat&) { return unlink(directory, name, 0); },
           .on_directory = [&](int parent, const std::string& name,
                               const struct stat&) { return unlink(parent, name, AT_REMOVEDIR); }});
      if (!emptied.ok()) return std::move(emptied).error().Prefixed("remove " + path);
    }
    if (::remove(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
    return Ok();
  }

  Result<void> MakeDirectories(const std::string& path, std::uint32_t mode) override {
    if (path.empty()) return InvalidArgument("make directory: empty path");
    struct stat st;
    // Usually the directory exists or only its last part is missing; checking each part costs more.
    if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return Ok();
    if (::mkdir(path.c_str(), mode) == 0) return Ok();
    if (errno == ENOENT) {
      // Create the parent first; usually it exists.
      const std::string parent = DirectoryName(path);
      if (parent != path) RETURN_IF_ERROR(MakeDirectories(parent, mode));
      if (::mkdir(path.c_str(), mode) == 0) return Ok();
    }
    if (errno != EEXIST) return ErrnoError(errno, "make directory " + path);
    if (::stat(path.c_str(), &st) != 0) return ErrnoError(errno, "stat " + path);
    if (!S_ISDIR(st.st_mode)) return ErrnoError(ENOTDIR, "make directory " + path);
    return Ok();
  }

  Result<std::vector<std::string>> ListDirectory(const std::string& path) override {
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) return ErrnoError(errno, "open directory " + path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory)) {
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int reason = errno;  // fail instead of returning a partial list
    ::closedir(directory);
    if (reason != 0) return ErrnoError(reason, "list directory " + path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<FileInfo> Stat(const std::string& path) override {
    struct stat st;
    if (::stat(path.c_str(), &st) != 0) return ErrnoError(errno, "stat " + path);
    return ToInfo(st);
  }

  Result<FileInfo> LinkStat(const std::string& path) override {
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0) return ErrnoError(errno, "stat " + path);
    return ToInfo(st);
  }

  Result<std::string> ReadLink(const std::string& path) override {
    char buffer[4096];
    ssize_t n = ::readlink(path.c_str(), buffer, sizeof(buffer));
    if (n < 0) return ErrnoError(errno, "read link " + path);
    return std::string(buffer, static_cast<std::size_t>(n));
  }

  Result<void> SetMode(const std::string& path, std::uint32_t mode) override {
    if (::chmod(path.c_str(), mode) != 0) return ErrnoError(errno, "change mode of " + path);
    return Ok();
  }

  Result<void> OverwriteFile(const std::string& path, std::uint64_t offset,
                             std::string_view content, bool sync) override {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    struct stat st;
    if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat " + path);
    if (offset + content.size() > static_cast<std::uint64_t>(st.st_size)) return BeyondTheEnd(path);
    while (!content.empty()) {
      const ssize_t n =
          ::pwrite(fd.get(), content.data(), content.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(errno, "write " + path);
      content.remove_prefix(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
    if (sync && ::fdatasync(fd.get()) != 0) return ErrnoError(errno, "sync " + path);
    return Ok();
  }

 protected:
  // Like the default, but opens the file only once.
  Result<void> WriteTemporary(const std::string& path, std::string_view content, std::uint32_t mode,
                              bool sync) override {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    struct stat st;
    if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "stat " + path);
    if ((st.st_mode & 07777) != mode && ::fchmod(fd.get(), mode) != 0) {
      return ErrnoError(errno, "change mode of " + path);
    }
    RETURN_IF_ERROR(WriteAll(fd.get(), content, path));
    if (sync && ::fsync(fd.get()) != 0) return ErrnoError(errno, "sync " + path);
    return Ok();
  }

 private:
  Result<void> Write(const std::string& path, std::string_view content, std::uint32_t mode,
                     int flag) {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flag, mode));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    return WriteAll(fd.get(), content, path);
  }

  Result<void> Sync(const std::string& path, int flags) {
    Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC));
    if (!fd.ok()) return ErrnoError(errno, "open " + path);
    if (::fsync(fd.get()) != 0) return ErrnoError(errno, "sync " + path);
    return Ok();
  }
};

}  // namespace

Result<std::string> FileSystem::ReadFileRange(const std::string& path, std::uint64_t offset,
                                              std::size_t max_bytes) {
  ASSIGN_OR_RETURN(std::string content, ReadFile(path));
  if (offset >= content.size()) return std::string();
  return content.substr(offset, max_bytes);
}

Result<void> FileSystem::OverwriteFile(const std::string& path, std::uint64_t offset,
                                       std::string_view content, bool sync) {
  ASSIGN_OR_RETURN(std::string whole, ReadFile(path));
  if (offset + content.size() > whole.size()) return BeyondTheEnd(path);
  whole.replace(offset, content.size(), content);
  RETURN_IF_ERROR(WriteFile(path, whole, 0600));
  return sync ? SyncFile(path) : Ok();
}

Result<void> FileSystem::WriteTemporary(const std::string& path, std::string_view content,
                                        std::uint32_t mode, bool sync) {
  RETURN_IF_ERROR(WriteFile(path, content, mode));
  RETURN_IF_ERROR(SetMode(path, mode));
  return sync ? SyncFile(path) : Ok();
}

bool FileSystem::Exists(const std::string& path) {
  return LinkStat(path).ok();
}

Result<void> FileSystem::WriteFileAtomically(const std::string& path, std::string_view content,
                                             std::uint32_t mode, bool sync) {
  const std::string directory = DirectoryName(path);
  const std::string temporary = JoinPath(
      directory, "." + std::string(BaseName(path)) + "." + std::to_string(::getpid()) + ".tmp");
  Result<void> written = WriteTemporary(temporary, content, mode, sync);
  if (written.ok()) written = Rename(temporary, path);
  if (!written.ok()) {
    static_cast<void>(Remove(temporary));
    return written;
  }
  if (sync) return SyncDirectory(directory);
  return Ok();
}

Result<void> FileSystem::EnsureFile(const std::string& path, std::string_view content,
                                    std::uint32_t mode) {
  auto now = ReadFile(path);
  if (now.ok() && *now == content) return Ok();
  if (!now.ok() && now.error().code != ErrorCode::kNotFound) return std::move(now).error();
  Result<void> written = WriteFileAtomically(path, content, mode, /*sync=*/false);
  if (written.ok() || written.error().code != ErrorCode::kNotFound) return written;
  // Usually the directory exists, so create it only after the first attempt failed.
  RETURN_IF_ERROR(MakeDirectories(DirectoryName(path), 0755));
  return WriteFileAtomically(path, content, mode, /*sync=*/false);
}

FileSystem& RealFileSystem() {
  static MachineFileSystem files;
  return files;
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

std::string_view BaseName(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string DirectoryName(std::string_view path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  if (slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

}  // namespace drakkar
