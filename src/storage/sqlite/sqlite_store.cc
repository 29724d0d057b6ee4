#include "storage/sqlite/sqlite_store.h"

#include <sys/vfs.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/env/file_system.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/directory_lock.h"
#include "storage/sqlite/sqlite_log.h"

namespace drakkar::storage {
namespace {

// How often loading evicts superseded values, so that the memory limit also holds while it reads.
constexpr std::size_t kRowsBetweenEvictions = 1'024;

std::string FileSystemName(const std::string& directory) {
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0) return "unknown";
  switch (static_cast<std::uint32_t>(info.f_type)) {
    case 0xEF53:
      return "ext4";  // ext2 and ext3 have the same magic number
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlay";
    case 0x6969:
      return "nfs";
    case 0x2FC12FC1:
      return "zfs";
    case 0xF2F52010:
      return "f2fs";
    case 0x65735546:
      return "fuse";
    case 0x01021997:
      return "9p";
    default:
      break;
  }
  char text[24];
  std::snprintf(text, sizeof text, "0x%x", static_cast<unsigned>(info.f_type));
  return text;
}

// Whether a damaged row changed a key that it no longer names. That key would appear in the state
// before the change.
bool IsStray(const Row& row, const VersionIndex& index) {
  if (row.create_revision == RowRevision(row.id)) return false;  // it created its key
  const Version* before = index.Find(row.key);
  return before == nullptr || before->create_revision != row.create_revision;
}

Result<LoadedRows> Load(Database& database, std::size_t resident_bytes_max) {
  LoadedRows loaded;
  loaded.compacted = database.compacted();
  std::size_t rows = 0;
  std::vector<Row> strays;
  RETURN_IF_ERROR(database.Load([&](Row row) {
    loaded.newest = RowRevision(row.id);
    if (row.damaged) {
      // Watchers cannot be told what changed here, so they have to list again.
      loaded.compacted = std::max(loaded.compacted, loaded.newest);
      if (IsStray(row, loaded.index)) strays.push_back({row.id, row.create_revision, {}, {}});
      if (row.key.empty()) return true;
      row.create_revision = std::clamp(row.create_revision, Revision{1}, loaded.newest);
    }
    loaded.index.Apply(std::move(row));
    if (++rows % kRowsBetweenEvictions == 0) {
      loaded.index.EvictSuperseded(resident_bytes_max, loaded.newest);
    }
    return true;
  }));
  for (const Row& stray : strays) loaded.index.MarkDamaged(stray.create_revision, stray.id);
  loaded.index.EvictSuperseded(resident_bytes_max, loaded.newest);
  return loaded;
}

}  // namespace

Result<std::unique_ptr<Store>> OpenSqliteStore(EventLoop& loop, SqliteStoreOptions options) {
  RETURN_IF_ERROR(RealFileSystem().MakeDirectories(options.directory, 0700));
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, DirectoryLock::Take(options.directory));
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                   Database::Open({.directory = options.directory,
                                   .file_bytes_max = options.file_bytes_max,
                                   .log_bytes = options.log_bytes,
                                   .observer = options.observer}));
  ASSIGN_OR_RETURN(LoadedRows loaded, Load(*database, options.limits.history_resident_bytes_max));
  auto log = std::make_unique<SqliteLog>(loop, std::move(lock), std::move(database),
                                         FileSystemName(options.directory), options.space_interval);
  return std::unique_ptr<Store>(
      std::make_unique<LocalStore>(loop, options.limits, std::move(loaded), std::move(log)));
}

}  // namespace drakkar::storage
