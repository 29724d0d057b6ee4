#include "storage/sqlite/store_file.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/env/file_system.h"
#include "storage/sqlite/salvage.h"

namespace drakkar::storage {
namespace {

// Rows of one commit while a file is built.
constexpr std::size_t kCommitBytes = std::size_t{4} << 20;
constexpr std::size_t kLogBytes = std::size_t{16} << 20;
constexpr std::uint64_t kRowsBetweenReports = 10'000;

std::string StorePath(const std::string& directory) {
  return JoinPath(directory, "store.db");
}

// Gives the current file and its log another name.
Result<std::string> MoveAside(const std::string& directory, const Clock& clock,
                              std::string_view what) {
  FileSystem& files = RealFileSystem();
  const std::string path = StorePath(directory);
  if (!files.Exists(path)) return std::string();
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock.Now().time_since_epoch());
  const std::string aside = path + "." + std::string(what) + "-" + std::to_string(now.count());
  if (files.Exists(aside)) return FailedPrecondition(aside + " exists; move it away first");
  if (files.Exists(path + "-wal")) RETURN_IF_ERROR(files.Rename(path + "-wal", aside + "-wal"));
  RETURN_IF_ERROR(files.Rename(path, aside));
  return aside;
}

// The rows available to a repair: the newest intact one of each key, and what is known about
// damaged ones.
class Remains {
 public:
  void Add(Row row) {
    newest_ = std::max(newest_, RowRevision(row.id));
    if (row.damaged) {
      damaged_.push_back({row.id, row.create_revision, std::move(row.key), nullptr, true});
      return;
    }
    auto [place, is_new] = keys_.try_emplace(row.key);
    if (is_new || row.id > place->second.id) place->second = std::move(row);
  }

  Revision newest() const { return newest_; }
  const std::map<std::string, Row>& keys() const { return keys_; }
  // Keys whose newest row is damaged.
  std::vector<std::string> DamagedKeys() const {
    std::vector<std::string> found;
    for (const Row& row : damaged_) {
      const auto same = keys_.find(row.key);
      const bool named = same != keys_.end() && same->second.create_revision == row.create_revision;
      if (named ? same->second.id < row.id : row.create_revision == RowRevision(row.id)) {
        found.push_back(row.key);
      }
      if (named) continue;
      // Its key may be wrong: see IsStray in sqlite_store.cc.
      for (const auto& [key, intact] : keys_) {
        if (intact.create_revision == row.create_revision && intact.id < row.id) {
          found.push_back(key);
        }
      }
      if (same == keys_.end()) found.push_back(row.key);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  bool has_damaged() const { return !damaged_.empty(); }

 private:
  std::map<std::string, Row> keys_;
  std::vector<Row> damaged_;
  Revision newest_ = 1;
};

}  // namespace

Result<StoreCheck> CheckStoreFile(const std::string& directory,
                                  const std::function<void(const StoreCheck&)>& progress) {
  if (!RealFileSystem().Exists(StorePath(directory))) {
    return NotFound("there is no store at " + StorePath(directory));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<DirectoryLock> lock, DirectoryLock::Take(directory));
  StoreCheck check;
  Result<std::unique_ptr<Database>> database =
      Database::Open({.directory = directory, .log_bytes = kLogBytes, .read_only = true});
  if (!database.ok()) {
    if (database.error().code != ErrorCode::kDataLoss) return std::move(database).error();
    check.structure = database.error();
    return check;
  }
  check.format = (*database)->format();
  Result<void> read = (*database)->Load([&](Row row) {
    ++check.rows;
    check.bytes += row.key.size() + (row.value == nullptr ? 0 : row.value->size());
    if (row.damaged) {
      check.damaged.push_back({row.key, RowRevision(row.id),
                               "row " + std::to_string(row.id) + " does not match its checksum"});
    }
    if (progress && check.rows % kRowsBetweenReports == 0) progress(check);
    return true;
  });
  if (read.ok()) read = (*database)->CheckStructure();
  if (!read.ok()) check.structure = read.error();
  return check;
}

Result<StoreRepair> RepairStoreFile(const std::string& directory, const Clock& clock,
                                    bool drop_damaged) {
  StoreRepair repair;
  ASSIGN_OR_RETURN(const StoreCheck check, CheckStoreFile(directory));
  if (check.ok()) {
    repair.was_intact = true;
    return repair;
  }
  Remains remains;
  if (check.structure) {
    FileSystem& files = RealFileSystem();
    ASSIGN_OR_RETURN(const std::string file, files.ReadFile(StorePath(directory)));
    std::string log;
    if (files.Exists(StorePath(directory) + "-wal")) {
      ASSIGN_OR_RETURN(log, files.ReadFile(StorePath(directory) + "-wal"));
    }
    SalvageRows(file, log, [&](Row row) { remains.Add(std::move(row)); });
    repair.may_have_lost_more = true;
  } else {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Database> database,
        Database::Open({.directory = directory, .log_bytes = kLogBytes, .read_only = true}));
    RETURN_IF_ERROR(database->Load([&](Row row) {
      remains.Add(std::move(row));
      return true;
    }));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<StoreFileWriter> writer,
                   StoreFileWriter::Open(directory, clock, /*replace=*/true));
  const std::vector<std::string> damaged = remains.DamagedKeys();
  // The revision of restored versions, which no client has seen.
  const Revision restored_at = remains.newest() + kRevisionLeap;
  for (const auto& [key, row] : remains.keys()) {
    if (row.value == nullptr) continue;
    Entry entry{key, row.value, row.create_revision, RowRevision(row.id)};
    if (std::binary_search(damaged.begin(), damaged.end(), key)) {
      if (drop_damaged) continue;
      entry.mod_revision = restored_at;
      repair.restored.push_back(key);
    }
    RETURN_IF_ERROR(writer->Add(entry));
    ++repair.objects;
  }
  std::set_difference(damaged.begin(), damaged.end(), repair.restored.begin(),
                      repair.restored.end(), std::back_inserter(repair.lost));
  ASSIGN_OR_RETURN(repair.kept_as, writer->Finish(restored_at));
  return repair;
}

StoreFileWriter::StoreFileWriter(std::string directory, const Clock& clock,
                                 std::unique_ptr<DirectoryLock> lock)
    : directory_(std::move(directory)),
      building_(JoinPath(directory_, "building")),
      clock_(clock),
      lock_(std::move(lock)) {}

StoreFileWriter::~StoreFileWriter() {
  database_.reset();
  (void)RealFileSystem().RemoveTree(building_);
}

Result<std::unique_ptr<StoreFileWriter>> StoreFileWriter::Open(const std::string& directory,
                                                               const Clock& clock, bool replace) {
  FileSystem& files = RealFileSystem();
  RETURN_IF_ERROR(files.MakeDirectories(directory, 0700));
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, DirectoryLock::Take(directory));
  for (const char* suffix : {"", "-wal"}) {
    if (replace || !files.Exists(StorePath(directory) + suffix)) continue;
    return FailedPrecondition("there is a store in " + directory +
                              "; use --force to replace it (it is kept under another name)");
  }
  std::unique_ptr<StoreFileWriter> writer(new StoreFileWriter(directory, clock, std::move(lock)));
  RETURN_IF_ERROR(files.RemoveTree(writer->building_));
  RETURN_IF_ERROR(files.MakeDirectories(writer->building_, 0700));
  ASSIGN_OR_RETURN(writer->database_,
                   Database::Open({.directory = writer->building_, .log_bytes = kLogBytes}));
  return writer;
}

Result<void> StoreFileWriter::Add(const Entry& entry) {
  std::size_t& position = positions_[entry.mod_revision];
  if (position >= kMaxOperationsPerTransaction) {
    return InvalidArgument("too many keys have revision " + std::to_string(entry.mod_revision));
  }
  batch_.rows.push_back(
      {MakeRowId(entry.mod_revision, position++), entry.create_revision, entry.key, entry.value});
  batch_bytes_ += entry.key.size() + entry.value->size();
  return batch_bytes_ < kCommitBytes ? Ok() : Flush();
}

Result<void> StoreFileWriter::Flush() {
  std::vector<RowBatch> batches;
  batches.push_back(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  RETURN_IF_ERROR(database_->WriteGroup(batches));
  return database_->TendLog();
}

Result<std::string> StoreFileWriter::Finish(Revision revision) {
  batch_.compacted = revision;
  RETURN_IF_ERROR(Flush());
  database_.reset();  // copies the log into the file and removes it
  FileSystem& files = RealFileSystem();
  const std::string built = StorePath(building_);
  if (files.Exists(built + "-wal")) {
    return Unavailable("the new store in " + building_ + " could not be completed");
  }
  RETURN_IF_ERROR(files.SyncFile(built));
  ASSIGN_OR_RETURN(std::string aside, MoveAside(directory_, clock_, "old"));
  RETURN_IF_ERROR(files.Rename(built, StorePath(directory_)));
  RETURN_IF_ERROR(files.SyncDirectory(directory_));
  return aside;
}

}  // namespace drakkar::storage
