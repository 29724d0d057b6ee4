#include "node/pods/volume_content.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>

#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr char kData[] = "..data";
// A link under its temporary name; a rename moves it to its place.
constexpr char kNewLink[] = "..new_link";
constexpr std::uint32_t kDirectoryMode = 0755;
constexpr std::uint32_t kGroupDirectoryMode = 02755;

FileSystem& Disk() {
  return RealFileSystem();
}

// Modes are set explicitly, regardless of the umask.
Result<void> SetAccess(const std::string& path, std::uint32_t mode,
                       std::optional<std::uint32_t> group,
                       std::optional<std::uint32_t> user = std::nullopt) {
  constexpr auto kSame = static_cast<std::uint32_t>(-1);
  if ((group || user) && ::lchown(path.c_str(), user.value_or(kSame), group.value_or(kSame)) != 0) {
    return ErrnoError(errno, "change owner of " + path);
  }
  return Disk().SetMode(path, mode);
}

// Replaces `directory`/`name` by a link, in one step unless a directory is in its place.
Result<void> PutLink(const std::string& directory, const std::string& name,
                     const std::string& target) {
  const std::string path = JoinPath(directory, name), fresh = JoinPath(directory, kNewLink);
  if (auto now = Disk().LinkStat(path); now.ok() && now->type == FileType::kDirectory) {
    RETURN_IF_ERROR(Disk().RemoveTree(path));
  }
  RETURN_IF_ERROR(Disk().RemoveTree(fresh));
  if (::symlink(target.c_str(), fresh.c_str()) != 0) return ErrnoError(errno, "link " + path);
  return Disk().Rename(fresh, path);
}

Result<std::size_t> CountFiles(const std::string& directory) {
  std::size_t count = 0;
  ASSIGN_OR_RETURN(const auto names, Disk().ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    ASSIGN_OR_RETURN(const FileInfo info, Disk().LinkStat(path));
    std::size_t inside = 1;
    if (info.type == FileType::kDirectory) {
      ASSIGN_OR_RETURN(inside, CountFiles(path));
    }
    count += inside;
  }
  return count;
}

// Whether the directory has these files and no others.
bool Holds(const std::string& directory, const VolumeFiles& files) {
  const auto count = CountFiles(directory);
  if (!count.ok() || *count != files.size()) return false;
  for (const auto& [path, file] : files) {
    const std::string full = JoinPath(directory, path);
    const auto info = Disk().LinkStat(full);
    if (!info.ok() || info->type != FileType::kRegular || (info->mode & 07777) != file.mode) {
      return false;
    }
    const auto content = Disk().ReadFile(full);
    if (!content.ok() || *content != file.content) return false;
  }
  return true;
}

Result<void> WriteInto(const std::string& directory, const VolumeFiles& files,
                       std::optional<std::uint32_t> group) {
  const std::uint32_t mode = group ? kGroupDirectoryMode : kDirectoryMode;
  RETURN_IF_ERROR(SetAccess(directory, mode, group));
  for (const auto& [path, file] : files) {
    std::string above = directory;
    for (const std::string_view part : Split(DirectoryName(path), '/')) {
      if (part.empty() || part == ".") continue;
      above = JoinPath(above, std::string(part));
      RETURN_IF_ERROR(Disk().MakeDirectories(above, kDirectoryMode));
      RETURN_IF_ERROR(SetAccess(above, mode, group));
    }
    const std::string full = JoinPath(directory, path);
    RETURN_IF_ERROR(Disk().WriteFile(full, file.content, file.mode));
    RETURN_IF_ERROR(SetAccess(full, file.mode, group, file.user));
  }
  return Ok();
}

// Returns the name of the new directory.
Result<std::string> WriteNew(const Clock& clock, const std::string& directory,
                             const VolumeFiles& files, std::optional<std::uint32_t> group) {
  const std::time_t now = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(clock.Now()));
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char stamp[64];
  std::strftime(stamp, sizeof(stamp), "..%Y_%m_%d_%H_%M_%S.XXXXXX", &parts);
  std::string path = JoinPath(directory, stamp);
  if (::mkdtemp(path.data()) == nullptr)
    return ErrnoError(errno, "make a directory in " + directory);
  if (auto written = WriteInto(path, files, group); !written.ok()) {
    static_cast<void>(Disk().RemoveTree(path).ok());  // what stays is removed with the next change
    return std::move(written).error();
  }
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Result<void> ShowVolumeFiles(const Clock& clock, const std::string& directory,
                             const VolumeFiles& files, std::optional<std::uint32_t> group) {
  RETURN_IF_ERROR(Disk().MakeDirectories(directory, kDirectoryMode));
  RETURN_IF_ERROR(SetAccess(directory, group ? kGroupDirectoryMode : kDirectoryMode, group));
  const std::string data = JoinPath(directory, kData);
  auto current = Disk().ReadLink(data);
  const bool is_current = current.ok() && current->starts_with("..") &&
                          current->find('/') == std::string::npos &&
                          Holds(JoinPath(directory, *current), files);
  if (!is_current) {
    ASSIGN_OR_RETURN(current, WriteNew(clock, directory, files, group));
    RETURN_IF_ERROR(PutLink(directory, kData, *current));
  }
  std::set<std::string, std::less<>> kept = {kData, *current};
  for (const auto& [path, file] : files) {
    std::string top = path.substr(0, path.find('/'));
    const std::string target = StrCat(kData, "/", top);
    if (auto link = Disk().ReadLink(JoinPath(directory, top)); !link.ok() || *link != target) {
      RETURN_IF_ERROR(PutLink(directory, top, target));
    }
    kept.insert(std::move(top));
  }
  // Former content, and what an interrupted call left.
  ASSIGN_OR_RETURN(const auto names, Disk().ListDirectory(directory));
  for (const std::string& name : names) {
    if (!kept.contains(name)) RETURN_IF_ERROR(Disk().RemoveTree(JoinPath(directory, name)));
  }
  return Ok();
}

}  // namespace drakkar::node
