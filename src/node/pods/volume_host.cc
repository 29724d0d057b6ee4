#include "node/pods/volume_host.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/env/descriptor.h"
#include "base/env/tree_walk.h"
#include "base/text/text.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/oci/host.h"

namespace drakkar::node {
namespace {

constexpr int kMostStackedMounts = 16;
// openat2 returns EAGAIN when a rename races with the lookup. A pod that keeps renaming only makes
// its own container fail.
constexpr int kResolveAttempts = 32;

Descriptor OpenInRoot(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 1;; ++attempt) {
    Descriptor opened(
        static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
    if (opened.ok() || errno != EAGAIN || attempt == kResolveAttempts) return opened;
  }
}

// Creates the missing directories of `path` with the mode of the volume. Each is created in the
// directory that was opened before it, so that no symlink is followed.
Result<void> MakeInside(int root, const std::string& path) {
  struct stat volume {};
  if (::fstat(root, &volume) != 0) return ErrnoError(errno, "stat the volume");
  Descriptor parent(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.ok()) return ErrnoError(errno, "open the volume");
  std::string prefix;
  for (std::string_view part_view : Split(path, '/')) {
    if (part_view.empty() || part_view == ".") continue;
    const std::string part(part_view);
    prefix = JoinPath(prefix, part);
    Descriptor next = OpenInRoot(root, prefix, O_PATH | O_DIRECTORY);
    if (!next.ok() && errno != ENOENT) return ErrnoError(errno, "open " + prefix);
    if (!next.ok()) {
      if (::mkdirat(parent.get(), part.c_str(), volume.st_mode & 0777) != 0) {
        // For example a dangling link.
        return ErrnoError(errno, "make directory " + prefix);
      }
      next = Descriptor(
          ::openat(parent.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.ok()) return ErrnoError(errno, "open " + prefix);
      // The volume's mode regardless of the umask; the group is inherited.
      if (::fchmod(next.get(), volume.st_mode & 07777) != 0) {
        return ErrnoError(errno, "change mode of " + prefix);
      }
    }
    parent = std::move(next);
  }
  return Ok();
}

Result<void> MakeMountPoint(const std::string& target, bool directory) {
  FileSystem& files = RealFileSystem();
  int stacked = 0;
  while (::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    if (++stacked > kMostStackedMounts)
      return FailedPrecondition(
          StrCat("more than ", kMostStackedMounts, " mounts are stacked on ", target));
  }
  if (errno != EINVAL && errno != ENOENT) return ErrnoError(errno, "unmount " + target);
  if (directory) {
    if (auto now = files.LinkStat(target); now.ok() && now->type != FileType::kDirectory) {
      RETURN_IF_ERROR(files.Remove(target));
    }
    return files.MakeDirectories(target, 0700);
  }
  if (auto now = files.LinkStat(target); now.ok() && now->type == FileType::kDirectory) {
    RETURN_IF_ERROR(files.Remove(target));
  }
  RETURN_IF_ERROR(files.MakeDirectories(DirectoryName(target), 0700));
  return files.WriteFile(target, "", 0600);
}

Result<std::string> NoLarger(Result<std::string> text, std::size_t max_bytes) {
  if (text.ok() && text->size() > max_bytes) {
    return FailedPrecondition(StrCat("it is larger than ", max_bytes, " bytes"));
  }
  return text;
}

class MachineVolumeHost final : public VolumeHost {
 public:
  Result<void> MountMemory(const std::string& path, std::uint64_t size_bytes,
                           std::optional<std::uint32_t> group) override {
    std::string options = Access(group);
    if (size_bytes > 0) options += StrCat(",size=", size_bytes);
    ASSIGN_OR_RETURN(const bool mounted, MountOnce("tmpfs", path, options));
    static_cast<void>(mounted);
    return Ok();
  }

  Result<void> MountHugePages(const std::string& path, const std::string& page_size,
                              std::optional<std::uint32_t> group) override {
    const auto mounted =
        MountOnce("hugetlbfs", path, StrCat(Access(group), ",pagesize=", page_size));
    if (!mounted.ok()) return mounted.error().Prefixed(StrCat("huge pages of ", page_size));
    // hugetlbfs drops the bit that lets files inherit the group.
    if (*mounted && group) return RealFileSystem().SetMode(path, 02777);
    return Ok();
  }

  Result<void> SetGroup(const std::string& path, std::uint32_t group) override {
    if (::lchown(path.c_str(), static_cast<uid_t>(-1), group) != 0) {
      return ErrnoError(errno, "change group of " + path);
    }
    return Ok();
  }

  Result<void> ShowFiles(const std::string& directory, const VolumeFiles& files,
                         std::optional<std::uint32_t> group) override {
    return ShowVolumeFiles(RealClock(), directory, files, group);
  }

  Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                 const std::string& target) override {
    const Descriptor root(::open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root.ok()) return ErrnoError(errno, "open " + volume);
    Descriptor source = OpenInRoot(root.get(), sub_path, O_PATH);
    if (!source.ok() && errno == ENOENT) {
      RETURN_IF_ERROR(MakeInside(root.get(), sub_path));
      source = OpenInRoot(root.get(), sub_path, O_PATH);
    }
    if (!source.ok()) return ErrnoError(errno, "open " + sub_path);
    struct stat info {};
    if (::fstat(source.get(), &info) != 0) return ErrnoError(errno, "stat " + sub_path);
    RETURN_IF_ERROR(MakeMountPoint(target, S_ISDIR(info.st_mode)));
    // Mount the open descriptor: the path may name something else by now.
    const std::string opened = StrCat("/proc/self/fd/", source.get());
    if (::mount(opened.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
      return ErrnoError(errno, StrCat("mount ", sub_path, " on ", target));
    }
    return target;
  }

  Result<std::string> ReadInside(const std::string& volume, const std::string& path,
                                 std::size_t max_bytes) override {
    return NoLarger(ReadFileInRoot(volume, path, max_bytes + 1), max_bytes);
  }

  Result<void> UnmountBelow(const std::string& path) override { return UnmountAll(path); }

  Result<std::uint64_t> Usage(const std::string& path) override { return TreeUsage(path); }

 private:
  static std::string Access(std::optional<std::uint32_t> group) {
    return group ? StrCat("mode=2777,gid=", *group) : "mode=0777";
  }

  // False if something is mounted there already.
  static Result<bool> MountOnce(const char* type, const std::string& path,
                                const std::string& options) {
    struct stat own {
    }, above{};
    if (::lstat(path.c_str(), &own) != 0) return ErrnoError(errno, "stat " + path);
    if (::lstat(DirectoryName(path).c_str(), &above) != 0) {
      return ErrnoError(errno, "stat " + DirectoryName(path));
    }
    if (own.st_dev != above.st_dev) return false;
    if (::mount(type, path.c_str(), type, MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
      return ErrnoError(errno, StrCat("mount ", type, " on ", path));
    }
    return true;
  }
};

class PlainVolumeHost final : public VolumeHost {
 public:
  explicit PlainVolumeHost(FileSystem& files) : files_(files) {}

  Result<void> MountMemory(const std::string&, std::uint64_t,
                           std::optional<std::uint32_t>) override {
    return Ok();
  }
  Result<void> MountHugePages(const std::string&, const std::string&,
                              std::optional<std::uint32_t>) override {
    return Ok();
  }
  Result<void> SetGroup(const std::string&, std::uint32_t) override { return Ok(); }
  // One by one, because this file system has no links.
  Result<void> ShowFiles(const std::string& directory, const VolumeFiles& content,
                         std::optional<std::uint32_t>) override {
    RETURN_IF_ERROR(files_.MakeDirectories(directory, 0755));
    RETURN_IF_ERROR(RemoveOthers(directory, "", content));
    for (const auto& [path, file] : content) {
      const std::string full = JoinPath(directory, path);
      RETURN_IF_ERROR(files_.MakeDirectories(DirectoryName(full), 0755));
      if (auto old = files_.ReadFile(full); !old.ok() || *old != file.content) {
        RETURN_IF_ERROR(files_.WriteFileAtomically(full, file.content, file.mode, /*sync=*/false));
        RETURN_IF_ERROR(files_.SetMode(full, file.mode));
      }
    }
    return Ok();
  }
  Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                 const std::string&) override {
    const std::string path = JoinPath(volume, sub_path);
    if (!files_.Exists(path)) RETURN_IF_ERROR(files_.MakeDirectories(path, 0755));
    return path;
  }
  Result<std::string> ReadInside(const std::string& volume, const std::string& path,
                                 std::size_t max_bytes) override {
    return NoLarger(files_.ReadFile(JoinPath(volume, path)), max_bytes);
  }
  Result<void> UnmountBelow(const std::string&) override { return Ok(); }
  Result<std::uint64_t> Usage(const std::string&) override { return std::uint64_t{0}; }

 private:
  // Removes files that should not exist. `prefix` is the path of `directory` in the volume.
  Result<void> RemoveOthers(const std::string& directory, const std::string& prefix,
                            const VolumeFiles& content) {
    ASSIGN_OR_RETURN(const auto names, files_.ListDirectory(directory));
    for (const std::string& name : names) {
      const std::string path = prefix + name;
      if (content.contains(path)) continue;
      const std::string full = JoinPath(directory, name);
      // If any name is below this path, the first one not less than "<path>/" is.
      const auto below = content.lower_bound(path + "/");
      if (below != content.end() && below->first.starts_with(path + "/")) {
        RETURN_IF_ERROR(RemoveOthers(full, path + "/", content));
      } else {
        RETURN_IF_ERROR(files_.RemoveTree(full));
      }
    }
    return Ok();
  }

  FileSystem& files_;
};

}  // namespace

VolumeHost& RealVolumeHost() {
  static MachineVolumeHost host;
  return host;
}

std::unique_ptr<VolumeHost> MakePlainVolumeHost(FileSystem& files) {
  return std::make_unique<PlainVolumeHost>(files);
}

}  // namespace drakkar::node
