#include "base/env/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "base/env/descriptor.h"

namespace drakkar {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct Level {
  struct stat info {};
  std::string name;                // in its parent
  std::vector<std::string> below;  // subdirectories not visited yet
};

// EXDEV means that it is a mount point.
Descriptor OpenDirectory(int parent, const std::string& name) {
  open_how how{};
  how.flags = kDirectoryFlags;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  return Descriptor(
      static_cast<int>(::syscall(SYS_openat2, parent, name.c_str(), &how, sizeof(how))));
}

// Reports everything but directories, and records those.
Result<void> ReadLevel(int fd, const TreeCallbacks& callbacks, Level& level) {
  const int own = ::openat(fd, ".", kDirectoryFlags);
  DIR* directory = own < 0 ? nullptr : ::fdopendir(own);
  if (directory == nullptr) {
    const int reason = errno;
    if (own >= 0) ::close(own);
    return ErrnoError(reason, "open directory " + level.name);
  }
  Result<void> result;
  while (result.ok()) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) {
      if (errno != 0) result = ErrnoError(errno, "list directory " + level.name);
      break;
    }
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info {};
    if (::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) result = ErrnoError(errno, "stat " + name);
    } else if (S_ISDIR(info.st_mode)) {
      level.below.push_back(std::move(name));
    } else {
      result = callbacks.on_entry(fd, name, info);
    }
  }
  ::closedir(directory);
  return result;
}

}  // namespace

Result<void> WalkTree(const std::string& path, const TreeCallbacks& callbacks) {
  Descriptor current(::open(path.c_str(), kDirectoryFlags));
  if (!current.ok()) return ErrnoError(errno, "open directory " + path);
  std::vector<Level> levels(1);
  levels.back().name = path;
  if (::fstat(current.get(), &levels.back().info) != 0) return ErrnoError(errno, "stat " + path);
  RETURN_IF_ERROR(ReadLevel(current.get(), callbacks, levels.back()));
  while (true) {
    if (!levels.back().below.empty()) {
      Level next;
      next.name = std::move(levels.back().below.back());
      levels.back().below.pop_back();
      Descriptor child = OpenDirectory(current.get(), next.name);
      if (!child.ok()) {
        const bool is_mount = errno == EXDEV;
        // replaced in the meantime
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) continue;
        if (is_mount && callbacks.skip_mounts) continue;
        if (is_mount) return FailedPrecondition("something is mounted on " + next.name);
        return ErrnoError(errno, "open directory " + next.name);
      }
      if (::fstat(child.get(), &next.info) != 0) return ErrnoError(errno, "stat " + next.name);
      RETURN_IF_ERROR(ReadLevel(child.get(), callbacks, next));
      current = std::move(child);
      levels.push_back(std::move(next));
      continue;
    }
    if (levels.size() == 1) return Ok();
    const Level done = std::move(levels.back());
    levels.pop_back();
    Descriptor parent(::openat(current.get(), "..", kDirectoryFlags));
    struct stat info {};
    if (!parent.ok() || ::fstat(parent.get(), &info) != 0) {
      return ErrnoError(errno, "return from " + done.name);
    }
    // If the directory is moved meanwhile, do not follow it elsewhere.
    if (info.st_ino != levels.back().info.st_ino || info.st_dev != levels.back().info.st_dev) {
      return Error{ErrorCode::kConflict, "directory " + done.name + " was moved away"};
    }
    current = std::move(parent);
    RETURN_IF_ERROR(callbacks.on_directory(current.get(), done.name, done.info));
  }
}

Result<std::uint64_t> TreeUsage(const std::string& path) {
  constexpr std::uint64_t kBlockBytes = 512;
  // At most this many files with several names are remembered, because users can create as many as
  // the disk holds. Beyond it, such a file counts once for each name.
  constexpr std::size_t kMaxCounted = 500'000;
  std::uint64_t blocks = 0;
  std::set<std::pair<dev_t, ino_t>> counted;
  auto walked = WalkTree(
      path, {.on_entry = [&](int, const std::string&, const struct stat& info) -> Result<void> {
               if (info.st_nlink > 1) {
                 const std::pair file(info.st_dev, info.st_ino);
                 if (counted.contains(file)) return Ok();
                 if (counted.size() < kMaxCounted) counted.insert(file);
               }
               blocks += static_cast<std::uint64_t>(info.st_blocks);
               return Ok();
             },
             .on_directory = [&](int, const std::string&, const struct stat& info) -> Result<void> {
               blocks += static_cast<std::uint64_t>(info.st_blocks);
               return Ok();
             },
             .skip_mounts = true});
  // If directories keep moving, use what was counted so far.
  if (!walked.ok() && walked.error().code != ErrorCode::kConflict) return std::move(walked).error();
  return blocks * kBlockBytes;
}

}  // namespace drakkar
