#include "storage/sqlite/store_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "base/result/check.h"
#include "storage/sqlite/gathered_writes.h"
#include "storage/sqlite/shared_file.h"

namespace drakkar::storage {

struct StoreVfs::Impl {
  sqlite3_vfs vfs;  // must be first: SQLite passes us its address
  sqlite3_vfs* real;
  IoObserver* observer;
  SharedFile shared;
  std::atomic<int> databases{0};  // number of open ones
};

namespace {

// State of a database file that its log does not have.
struct DatabaseLocks {
  SharedFile& shared;
  std::atomic<int>& databases;
  bool keeps_others_out;
  SharedFile::Holder holder = {};
};

struct OpenFile {
  IoObserver& observer;
  const std::string_view path;  // SQLite keeps the string alive while the file is open
  GatheredWrites gathered = {};
  int lost = SQLITE_OK;  // gathered bytes could not be written, and SQLite does not know it yet
  std::unique_ptr<DatabaseLocks> locks = nullptr;  // null for a log
};

// SQLite allocates it, with room for the real file after it.
struct File {
  sqlite3_file base;
  OpenFile* open;
};
constexpr int kHeaderBytes = (sizeof(File) + 7) & ~7;

sqlite3_file* Real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kHeaderBytes);
}
OpenFile& Own(sqlite3_file* file) {
  return *reinterpret_cast<File*>(file)->open;
}

// SQLite writes its log as separate frame headers and pages, and copies it into the file page by
// page. Gathered bytes are written before the file is synced, read or accessed in any other way.
// Durability is promised only after a sync.
//
// Bytes that cannot be written are dropped: SQLite fails the commit or the copy they belong to and
// writes everything again. Kept, they would later overwrite what was written since. SQLite heeds
// the failure of a write or a sync, so those report it, even if it happened in another call.
int Flush(sqlite3_file* file) {
  GatheredWrites& gathered = Own(file).gathered;
  if (gathered.empty()) return SQLITE_OK;
  const std::string_view bytes = gathered.bytes();
  const int code = Real(file)->pMethods->xWrite(Real(file), bytes.data(),
                                                static_cast<int>(bytes.size()), gathered.offset());
  gathered.Clear();
  if (code != SQLITE_OK) Own(file).lost = code;
  return code;
}

// Flush for writes and syncs.
int FlushAndReport(sqlite3_file* file) {
  Flush(file);
  return std::exchange(Own(file).lost, SQLITE_OK);
}

int Close(sqlite3_file* file) {
  const int flushed = Flush(file);
  const std::unique_ptr<OpenFile> open(std::exchange(reinterpret_cast<File*>(file)->open, nullptr));
  if (DatabaseLocks* locks = open->locks.get()) {
    locks->shared.UnmapIndex(locks->holder);
    locks->shared.Unlock(locks->holder, SQLITE_LOCK_NONE);
    --locks->databases;
  }
  const int closed = Real(file)->pMethods->xClose(Real(file));
  return flushed != SQLITE_OK ? flushed : closed;
}

int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xRead(Real(file), out, size, offset);
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  OpenFile& own = Own(file);
  if (!own.observer.OnWrite(own.path)) return SQLITE_IOERR_WRITE;
  if (!own.observer.HasSpace(own.path)) return SQLITE_FULL;
  const std::string_view bytes(static_cast<const char*>(data), static_cast<std::size_t>(size));
  if (own.lost != SQLITE_OK || !own.gathered.CanTake(offset, bytes.size())) {
    if (const int code = FlushAndReport(file); code != SQLITE_OK) return code;
    if (bytes.size() > GatheredWrites::kMaxBytes) {
      return Real(file)->pMethods->xWrite(Real(file), data, size, offset);
    }
  }
  own.gathered.Add(offset, bytes);
  return SQLITE_OK;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (!Own(file).observer.OnWrite(Own(file).path)) return SQLITE_IOERR_TRUNCATE;
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xTruncate(Real(file), size);
}

int Sync(sqlite3_file* file, int flags) {
  OpenFile& own = Own(file);
  if (!own.observer.OnSync(own.path)) return SQLITE_IOERR_FSYNC;
  if (const int code = FlushAndReport(file); code != SQLITE_OK) return code;
  const int code = Real(file)->pMethods->xSync(Real(file), flags);
  if (code == SQLITE_OK) own.observer.AfterSync(own.path);
  return code;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xFileSize(Real(file), size);
}

// Connections of this process coordinate through SharedFile. Other programs do not know the index
// in our memory, so the first connection locks them out, from its first lock to its last.
int Lock(sqlite3_file* file, int level) {
  DatabaseLocks& locks = *Own(file).locks;
  if (locks.keeps_others_out && locks.holder.level == SQLITE_LOCK_NONE) {
    int code = Real(file)->pMethods->xLock(Real(file), SQLITE_LOCK_SHARED);
    if (code == SQLITE_OK) code = Real(file)->pMethods->xLock(Real(file), SQLITE_LOCK_EXCLUSIVE);
    if (code != SQLITE_OK) {
      Real(file)->pMethods->xUnlock(Real(file), SQLITE_LOCK_NONE);
      return code;
    }
  }
  return locks.shared.Lock(locks.holder, level) ? SQLITE_OK : SQLITE_BUSY;
}

int Unlock(sqlite3_file* file, int level) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  DatabaseLocks& locks = *Own(file).locks;
  locks.shared.Unlock(locks.holder, level);
  if (!locks.keeps_others_out || level != SQLITE_LOCK_NONE) return SQLITE_OK;
  return Real(file)->pMethods->xUnlock(Real(file), SQLITE_LOCK_NONE);
}

int CheckReservedLock(sqlite3_file* file, int* out) {
  *out = Own(file).locks->shared.IsReserved() ? 1 : 0;
  return SQLITE_OK;
}

int ShmMap(sqlite3_file* file, int region, int bytes, int make, void volatile** out) {
  DatabaseLocks& locks = *Own(file).locks;
  *out = locks.shared.MapIndex(locks.holder, static_cast<std::size_t>(region),
                               static_cast<std::size_t>(bytes), make != 0);
  return SQLITE_OK;
}

int ShmLock(sqlite3_file* file, int first, int count, int flags) {
  DatabaseLocks& locks = *Own(file).locks;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    locks.shared.UnlockIndex(locks.holder, first, count);
    return SQLITE_OK;
  }
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  return locks.shared.LockIndex(locks.holder, first, count, exclusive) ? SQLITE_OK : SQLITE_BUSY;
}

void ShmBarrier(sqlite3_file* file) {
  Own(file).locks->shared.Barrier();
}

int ShmUnmap(sqlite3_file* file, int) {
  DatabaseLocks& locks = *Own(file).locks;
  locks.shared.UnmapIndex(locks.holder);
  return SQLITE_OK;
}

int FileControl(sqlite3_file* file, int operation, void* argument) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xFileControl(Real(file), operation, argument);
}

int SectorSize(sqlite3_file* file) {
  return Real(file)->pMethods->xSectorSize(Real(file));
}

int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,  // has shared memory, does not map the file
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = CheckReservedLock,
    .xFileControl = FileControl,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = DeviceCharacteristics,
    .xShmMap = ShmMap,
    .xShmLock = ShmLock,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = ShmUnmap,
};

}  // namespace

StoreVfs::StoreVfs(IoObserver& observer) : impl_(std::make_unique<Impl>()) {
  static std::atomic<unsigned> next{0};
  name_ = "drakkar-" + std::to_string(next++);
  impl_->real = sqlite3_vfs_find(nullptr);
  CHECK(impl_->real != nullptr);
  impl_->observer = &observer;
  // Everything except opening goes straight to the real functions, which use only pAppData.
  impl_->vfs = *impl_->real;
  impl_->vfs.zName = name_.c_str();
  impl_->vfs.pNext = nullptr;
  impl_->vfs.szOsFile = kHeaderBytes + impl_->real->szOsFile;
  impl_->vfs.xOpen = [](sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                        int* out_flags) {
    auto* self = reinterpret_cast<Impl*>(vfs);
    file->pMethods = nullptr;
    const int code = self->real->xOpen(self->real, path, Real(file), flags, out_flags);
    if (Real(file)->pMethods == nullptr) return code;
    auto open = std::make_unique<OpenFile>(
        OpenFile{.observer = *self->observer, .path = path == nullptr ? "" : path});
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
      open->locks = std::make_unique<DatabaseLocks>(
          DatabaseLocks{.shared = self->shared,
                        .databases = self->databases,
                        .keeps_others_out = self->databases++ == 0});
    }
    reinterpret_cast<File*>(file)->open = open.release();
    file->pMethods = &kMethods;
    return code;
  };
  CHECK(sqlite3_vfs_register(&impl_->vfs, 0) == SQLITE_OK);
}

StoreVfs::~StoreVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
}

}  // namespace drakkar::storage
