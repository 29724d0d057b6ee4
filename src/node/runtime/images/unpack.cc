#include "node/runtime/images/unpack.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

Descriptor OpenInRoot(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return Descriptor(static_cast<int>(
      ::syscall(SYS_openat2, root, path.empty() ? "." : path.c_str(), &how, sizeof(how))));
}

std::pair<std::string, std::string> SplitLast(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

// The names in a directory except "." and "..". Does not close it.
Result<std::vector<std::string>> NamesIn(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  DIR* directory = copy < 0 ? nullptr : ::fdopendir(copy);
  if (directory == nullptr) {
    const int reason = errno;
    if (copy >= 0) ::close(copy);
    return ErrnoError(reason, "list");
  }
  std::vector<std::string> names;
  ::rewinddir(directory);
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int reason = errno;
  ::closedir(directory);
  if (reason != 0) return ErrnoError(reason, "list");
  return names;
}

Result<void> RemoveAt(int parent, const std::string& name, int depth = 0) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return Ok();
  if (errno != EISDIR && errno != EPERM) return ErrnoError(errno, "remove " + name);
  if (depth > 1024) return Error{ErrorCode::kDataLoss, "directories nested too deeply"};
  const Descriptor directory(
      ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.ok()) return ErrnoError(errno, "remove " + name);
  ASSIGN_OR_RETURN(const auto children, NamesIn(directory.get()));
  for (const std::string& child : children)
    RETURN_IF_ERROR(RemoveAt(directory.get(), child, depth + 1));
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0)
    return ErrnoError(errno, "remove " + name);
  return Ok();
}

class Unpacker {
 public:
  Unpacker(TarReader& reader, int root, const UnpackOptions& options)
      : reader_(reader), root_(root), options_(options), is_root_(::geteuid() == 0) {}

  Result<UnpackSummary> Run() {
    while (true) {
      ASSIGN_OR_RETURN(auto entry, reader_.Next());
      if (!entry) return summary_;
      ASSIGN_OR_RETURN(const std::string path, CleanTarPath(entry->path));
      ++summary_.entries;
      Result<void> result = One(*entry, path);
      if (!result.ok()) return std::move(result).error().Prefixed(path.empty() ? "/" : path);
    }
  }

 private:
  Result<void> One(const TarEntry& entry, const std::string& path) {
    if (path.empty()) {
      if (entry.type == TarEntryType::kDirectory) return Attributes(root_, entry);
      return Error{ErrorCode::kDataLoss, "an entry without a name is not a directory"};
    }
    auto [parent_path, name] = SplitLast(path);
    if (options_.whiteouts && name.starts_with(".wh.")) return Whiteout(parent_path, name);
    ASSIGN_OR_RETURN(const Descriptor parent, Parent(parent_path));
    if (options_.whiteouts) RETURN_IF_ERROR(Remember(path));
    switch (entry.type) {
      case TarEntryType::kDirectory:
        return Directory(parent.get(), name, entry);
      case TarEntryType::kFile:
        return File(parent.get(), name, entry);
      case TarEntryType::kSymlink:
        RETURN_IF_ERROR(RemoveAt(parent.get(), name));
        if (::symlinkat(entry.link_target.c_str(), parent.get(), name.c_str()) != 0) {
          return ErrnoError(errno, "link");
        }
        return Owner(parent.get(), name, entry);
      case TarEntryType::kHardLink:
        return HardLink(parent.get(), name, entry);
      case TarEntryType::kFifo:
        RETURN_IF_ERROR(RemoveAt(parent.get(), name));
        if (::mkfifoat(parent.get(), name.c_str(), entry.mode) != 0)
          return ErrnoError(errno, "fifo");
        return Owner(parent.get(), name, entry);
      case TarEntryType::kCharacterDevice:
      case TarEntryType::kBlockDevice:
        ++summary_.skipped_devices;
        return Ok();
    }
    return Ok();
  }

  // Opens the parent directory of an entry. Missing parents are created, since archives may omit
  // them.
  Result<Descriptor> Parent(const std::string& path) {
    Descriptor found = OpenInRoot(root_, path, O_PATH | O_DIRECTORY);
    if (found.ok()) return found;
    if (errno != ENOENT) return ErrnoError(errno, "open " + path);
    auto [above, name] = SplitLast(path);
    if (name.empty()) return Error{ErrorCode::kDataLoss, "the directory vanished"};
    ASSIGN_OR_RETURN(const Descriptor parent, Parent(above));
    if (::mkdirat(parent.get(), name.c_str(), 0755) != 0)
      return ErrnoError(errno, "create " + path);
    found = OpenInRoot(root_, path, O_PATH | O_DIRECTORY);
    if (!found.ok()) return ErrnoError(errno, "open " + path);
    return found;
  }

  Result<void> Remember(const std::string& path) {
    // Record parents too: an opaque marker must not remove a directory that this layer has written
    // to.
    for (std::string part = path; !part.empty(); part = SplitLast(part).first) {
      const auto [added, is_new] = made_.insert(part);
      if (!is_new) break;
      made_bytes_ += sizeof(std::string) + added->capacity();
    }
    if (made_bytes_ <= options_.max_path_bytes) return Ok();
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("the paths of the layer have more than ", options_.max_path_bytes,
                        " bytes altogether")};
  }

  Result<void> Whiteout(const std::string& parent_path, const std::string& name) {
    Descriptor parent = OpenInRoot(root_, parent_path, O_RDONLY | O_DIRECTORY);
    if (!parent.ok() && (errno == ENOENT || errno == ENOTDIR)) return Ok();  // nothing to hide
    if (!parent.ok()) return ErrnoError(errno, "open " + parent_path);
    if (name == ".wh..wh..opq") return RemoveEarlier(parent.get(), parent_path, 0);
    const std::string hidden = name.substr(4);
    if (hidden.empty() || hidden == "." || hidden == "..") {
      return Error{ErrorCode::kDataLoss, "whiteout without a name"};
    }
    const std::string path = parent_path.empty() ? hidden : parent_path + "/" + hidden;
    if (made_.contains(path)) return Ok();  // recreated by this layer
    return RemoveAt(parent.get(), hidden);
  }

  // Removes everything in the directory that this layer did not add.
  Result<void> RemoveEarlier(int directory_fd, const std::string& path, int depth) {
    if (depth > 1024) return Error{ErrorCode::kDataLoss, "directories nested too deeply"};
    ASSIGN_OR_RETURN(const auto names, NamesIn(directory_fd));
    for (const std::string& name : names) {
      const std::string child = path.empty() ? name : path + "/" + name;
      if (!made_.contains(child)) {
        RETURN_IF_ERROR(RemoveAt(directory_fd, name));
        continue;
      }
      Descriptor below(
          ::openat(directory_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!below.ok() && errno != ENOTDIR && errno != ELOOP)
        return ErrnoError(errno, "open " + child);
      if (below.ok()) RETURN_IF_ERROR(RemoveEarlier(below.get(), child, depth + 1));
    }
    return Ok();
  }

  Result<void> Directory(int parent, const std::string& name, const TarEntry& entry) {
    if (::mkdirat(parent, name.c_str(), 0755) != 0) {
      if (errno != EEXIST) return ErrnoError(errno, "create directory");
      struct stat st {};
      if (::fstatat(parent, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return ErrnoError(errno, "stat it");
      }
      if (!S_ISDIR(st.st_mode)) {
        RETURN_IF_ERROR(RemoveAt(parent, name));
        if (::mkdirat(parent, name.c_str(), 0755) != 0)
          return ErrnoError(errno, "create directory");
      }
    }
    Descriptor made(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made.ok()) return ErrnoError(errno, "open directory");
    return Attributes(made.get(), entry);
  }

  Result<void> File(int parent, const std::string& name, const TarEntry& entry) {
    RETURN_IF_ERROR(RemoveAt(parent, name));
    Descriptor file(
        ::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.ok()) return ErrnoError(errno, "create file");
    char buffer[65536];
    while (true) {
      ASSIGN_OR_RETURN(const std::size_t got, reader_.Read(buffer, sizeof(buffer)));
      if (got == 0) break;
      summary_.bytes += got;
      if (summary_.bytes > options_.max_bytes) {
        return Error{ErrorCode::kResourceExhausted,
                     StrCat("the archive unpacks to more than ", options_.max_bytes, " bytes")};
      }
      for (std::size_t done = 0; done < got;) {
        const ssize_t written = ::write(file.get(), buffer + done, got - done);
        if (written < 0) {
          if (errno == EINTR) continue;
          return ErrnoError(errno, "write");
        }
        done += static_cast<std::size_t>(written);
      }
      if (options_.progress) options_.progress(summary_.bytes);
    }
    RETURN_IF_ERROR(Attributes(file.get(), entry));
    const timespec times[2] = {{entry.modified_seconds, 0}, {entry.modified_seconds, 0}};
    ::futimens(file.get(), times);
    return Ok();
  }

  Result<void> HardLink(int parent, const std::string& name, const TarEntry& entry) {
    ASSIGN_OR_RETURN(const std::string target, CleanTarPath(entry.link_target));
    auto [target_parent_path, target_name] = SplitLast(target);
    Descriptor target_parent = OpenInRoot(root_, target_parent_path, O_PATH | O_DIRECTORY);
    if (!target_parent.ok() || target_name.empty()) {
      return Error{ErrorCode::kDataLoss,
                   "hard link to " + Quote(entry.link_target) + ", which does not exist"};
    }
    RETURN_IF_ERROR(RemoveAt(parent, name));
    if (::linkat(target_parent.get(), target_name.c_str(), parent, name.c_str(), 0) != 0) {
      return ErrnoError(errno, "hard link to " + entry.link_target);
    }
    return Ok();
  }

  Result<void> Owner(int parent, const std::string& name, const TarEntry& entry) {
    if (is_root_ &&
        ::fchownat(parent, name.c_str(), entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoError(errno, "change owner");
    }
    return Ok();
  }

  // After chown, which clears setuid bits and file capabilities.
  Result<void> Attributes(int fd, const TarEntry& entry) {
    if (is_root_ && ::fchown(fd, entry.uid, entry.gid) != 0)
      return ErrnoError(errno, "change owner");
    if (::fchmod(fd, entry.mode) != 0) return ErrnoError(errno, "change mode");
    for (const auto& [key, value] : entry.extended_attributes) {
      // overlayfs interprets its own attributes in lower directories: an image must not be able to
      // set them.
      if (key.starts_with("trusted.")) continue;
      if (::fsetxattr(fd, key.c_str(), value.data(), value.size(), 0) != 0 && errno != ENOTSUP &&
          errno != EPERM) {
        return ErrnoError(errno, "set attribute " + key);
      }
    }
    return Ok();
  }

  TarReader& reader_;
  int root_;
  const UnpackOptions& options_;
  bool is_root_;
  UnpackSummary summary_;
  std::set<std::string> made_;
  std::uint64_t made_bytes_ = 0;
};

Result<void> CopyEntries(int from, int to, int depth) {
  if (depth > 1024) return Error{ErrorCode::kDataLoss, "directories nested too deeply"};
  ASSIGN_OR_RETURN(const auto names, NamesIn(from));
  for (const std::string& name : names) {
    struct stat st {};
    if (::fstatat(from, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return ErrnoError(errno, name);
    if (S_ISLNK(st.st_mode)) {
      char target[4097];
      const ssize_t size = ::readlinkat(from, name.c_str(), target, sizeof(target) - 1);
      if (size < 0) return ErrnoError(errno, name);
      target[size] = '\0';
      if (::symlinkat(target, to, name.c_str()) != 0) return ErrnoError(errno, name);
      if (::fchownat(to, name.c_str(), st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return ErrnoError(errno, name);
      }
      continue;
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) continue;
    const bool is_directory = S_ISDIR(st.st_mode);
    if (is_directory && ::mkdirat(to, name.c_str(), 0700) != 0) return ErrnoError(errno, name);
    const Descriptor source(::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const Descriptor copy(
        is_directory ? ::openat(to, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                     : ::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!source.ok() || !copy.ok()) return ErrnoError(errno, name);
    if (is_directory) {
      Result<void> result = CopyEntries(source.get(), copy.get(), depth + 1);
      if (!result.ok()) return std::move(result).error().Prefixed(name);
    } else {
      for (off_t left = st.st_size; left > 0;) {
        const ssize_t copied = ::copy_file_range(source.get(), nullptr, copy.get(), nullptr,
                                                 static_cast<std::size_t>(left), 0);
        if (copied <= 0) return ErrnoError(copied == 0 ? EIO : errno, "copy " + name);
        left -= copied;
      }
    }
    if (::fchown(copy.get(), st.st_uid, st.st_gid) != 0) return ErrnoError(errno, name);
    if (::fchmod(copy.get(), st.st_mode & 07777) != 0) return ErrnoError(errno, name);
    const timespec times[2] = {st.st_atim, st.st_mtim};
    ::futimens(copy.get(), times);
  }
  return Ok();
}

}  // namespace

Result<UnpackSummary> UnpackTar(TarReader& reader, const std::string& root,
                                const UnpackOptions& options) {
  const Descriptor directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok()) return ErrnoError(errno, "open " + root);
  return Unpacker(reader, directory.get(), options).Run();
}

Result<std::string> ReadFileInRoot(const std::string& root, const std::string& path,
                                   std::size_t max_bytes) {
  const Descriptor directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok()) return ErrnoError(errno, "open " + root);
  // Non-blocking, so that a fifo planted under this name cannot block us.
  const Descriptor file = OpenInRoot(directory.get(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok() && (errno == ENOTDIR || errno == ELOOP))
    return NotFound(path + " is a dangling link");
  if (!file.ok()) return ErrnoError(errno, "open " + path);
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return ErrnoError(errno, "stat " + path);
  if (!S_ISREG(st.st_mode)) return FailedPrecondition(path + " is not a regular file");
  std::string content(max_bytes, '\0');
  std::size_t have = 0;
  while (have < max_bytes) {
    const ssize_t got = ::read(file.get(), content.data() + have, max_bytes - have);
    if (got < 0) return ErrnoError(errno, "read " + path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return content;
}

Result<std::string> ResolveInRoot(const std::string& root, const std::string& path) {
  const Descriptor directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.ok()) return ErrnoError(errno, "open " + root);
  const Descriptor file = OpenInRoot(directory.get(), path, O_PATH);
  struct stat st {};
  if (!file.ok() || ::fstat(file.get(), &st) != 0) return ErrnoError(errno, "open " + path);
  if (!S_ISREG(st.st_mode)) return FailedPrecondition(path + " is not a regular file");
  return RealFileSystem().ReadLink("/proc/self/fd/" + std::to_string(file.get()));
}

Result<void> CopyTree(const std::string& from, const std::string& to) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!source.ok()) return ErrnoError(errno, "open " + from);
  const Descriptor target(::open(to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!target.ok()) return ErrnoError(errno, "open " + to);
  return CopyEntries(source.get(), target.get(), 0);
}

}  // namespace drakkar::node
