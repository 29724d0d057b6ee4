#include "storage/sqlite/observed_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/result/check.h"
#include "storage/sqlite/shared_file.h"

namespace drakkar::storage {

struct ObservedVfs::Impl {
  sqlite3_vfs vfs;  // first: SQLite hands us its address
  sqlite3_vfs* real;
  IoObserver* observer;
  SharedFile shared;
  std::atomic<int> databases{0};  // open ones
};

namespace {

// SQLite writes its log in pieces of a frame's head and a page, and copies it into the file page by
// page. Pieces that follow each other are gathered and written as one, at the latest before the
// file is synced, read or looked at in any other way: what is promised is promised after a sync.
// SQLite's own layer writes less than 128 KiB in one call.
constexpr std::size_t kMaxGatheredBytes = 124 * 1024;

// SQLite allocates it, with room for the real file behind it.
struct ObservedFile {
  sqlite3_file base;
  IoObserver* observer;
  const char* path;  // lives as long as the file is open
  char* gathered;    // kMaxGatheredBytes, made when first needed
  std::size_t gathered_size;
  sqlite3_int64 gathered_offset;
  // Of a database; null for its log.
  SharedFile* shared;
  SharedFile::Holder* holder;
  std::atomic<int>* databases;
  bool keeps_others_out;
};
constexpr int kHeaderBytes = (sizeof(ObservedFile) + 7) & ~7;

sqlite3_file* Real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kHeaderBytes);
}
ObservedFile* Own(sqlite3_file* file) {
  return reinterpret_cast<ObservedFile*>(file);
}

int Flush(sqlite3_file* file) {
  ObservedFile* own = Own(file);
  if (own->gathered_size == 0) return SQLITE_OK;
  const int code = Real(file)->pMethods->xWrite(
      Real(file), own->gathered, static_cast<int>(own->gathered_size), own->gathered_offset);
  // Kept if it failed: nobody may take it for written, and a sync tries it again.
  if (code == SQLITE_OK) own->gathered_size = 0;
  return code;
}

int Close(sqlite3_file* file) {
  const int flushed = Flush(file);
  delete[] Own(file)->gathered;
  Own(file)->gathered = nullptr;
  if (Own(file)->shared != nullptr) {
    Own(file)->shared->UnmapIndex(*Own(file)->holder);
    Own(file)->shared->Unlock(*Own(file)->holder, SQLITE_LOCK_NONE);
    delete std::exchange(Own(file)->holder, nullptr);
    --*Own(file)->databases;
  }
  const int closed = Real(file)->pMethods->xClose(Real(file));
  return flushed != SQLITE_OK ? flushed : closed;
}
int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xRead(Real(file), out, size, offset);
}
int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  ObservedFile* own = Own(file);
  if (!own->observer->OnWrite(own->path)) return SQLITE_IOERR_WRITE;
  const auto bytes = static_cast<std::size_t>(size);
  const bool follows =
      own->gathered_size > 0 &&
      own->gathered_offset + static_cast<sqlite3_int64>(own->gathered_size) == offset &&
      own->gathered_size + bytes <= kMaxGatheredBytes;
  if (!follows) {
    if (const int code = Flush(file); code != SQLITE_OK) return code;
    if (bytes > kMaxGatheredBytes) {
      return Real(file)->pMethods->xWrite(Real(file), data, size, offset);
    }
    if (own->gathered == nullptr) own->gathered = new char[kMaxGatheredBytes];
    own->gathered_offset = offset;
  }
  std::copy_n(static_cast<const char*>(data), bytes, own->gathered + own->gathered_size);
  own->gathered_size += bytes;
  return SQLITE_OK;
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (!Own(file)->observer->OnWrite(Own(file)->path)) return SQLITE_IOERR_TRUNCATE;
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  if (!Own(file)->observer->OnSync(Own(file)->path)) return SQLITE_IOERR_FSYNC;
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  const int code = Real(file)->pMethods->xSync(Real(file), flags);
  if (code == SQLITE_OK) Own(file)->observer->AfterSync(Own(file)->path);
  return code;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
// Connections of this process agree among themselves. Other programs are kept out by the first of
// them, from its first lock to its last: they know nothing of the index in our memory.
int Lock(sqlite3_file* file, int level) {
  ObservedFile* own = Own(file);
  if (own->keeps_others_out && own->holder->level == SQLITE_LOCK_NONE) {
    int code = Real(file)->pMethods->xLock(Real(file), SQLITE_LOCK_SHARED);
    if (code == SQLITE_OK) code = Real(file)->pMethods->xLock(Real(file), SQLITE_LOCK_EXCLUSIVE);
    if (code != SQLITE_OK) {
      Real(file)->pMethods->xUnlock(Real(file), SQLITE_LOCK_NONE);
      return code;
    }
  }
  return own->shared->Lock(*own->holder, level) ? SQLITE_OK : SQLITE_BUSY;
}
int Unlock(sqlite3_file* file, int level) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  ObservedFile* own = Own(file);
  own->shared->Unlock(*own->holder, level);
  if (!own->keeps_others_out || level != SQLITE_LOCK_NONE) return SQLITE_OK;
  return Real(file)->pMethods->xUnlock(Real(file), SQLITE_LOCK_NONE);
}
int CheckReservedLock(sqlite3_file* file, int* out) {
  *out = Own(file)->shared->IsReserved() ? 1 : 0;
  return SQLITE_OK;
}
int ShmMap(sqlite3_file* file, int region, int bytes, int make, void volatile** out) {
  *out = Own(file)->shared->MapIndex(*Own(file)->holder, static_cast<std::size_t>(region),
                                     static_cast<std::size_t>(bytes), make != 0);
  return SQLITE_OK;
}
int ShmLock(sqlite3_file* file, int first, int count, int flags) {
  ObservedFile* own = Own(file);
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    own->shared->UnlockIndex(*own->holder, first, count);
    return SQLITE_OK;
  }
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  return own->shared->LockIndex(*own->holder, first, count, exclusive) ? SQLITE_OK : SQLITE_BUSY;
}
void ShmBarrier(sqlite3_file* file) {
  Own(file)->shared->Barrier();
}
int ShmUnmap(sqlite3_file* file, int) {
  Own(file)->shared->UnmapIndex(*Own(file)->holder);
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
    .iVersion = 2,  // shared memory, no mapping of the file
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

ObservedVfs::ObservedVfs(IoObserver& observer) : impl_(std::make_unique<Impl>()) {
  static std::atomic<unsigned> next{0};
  name_ = "drakkar-" + std::to_string(next++);
  impl_->real = sqlite3_vfs_find(nullptr);
  CHECK(impl_->real != nullptr);
  impl_->observer = &observer;
  // Everything but opening goes straight to the real functions, which look at pAppData only.
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
    Own(file)->observer = self->observer;
    Own(file)->path = path == nullptr ? "" : path;
    Own(file)->gathered = nullptr;
    Own(file)->gathered_size = 0;
    Own(file)->gathered_offset = 0;
    Own(file)->shared = nullptr;
    Own(file)->holder = nullptr;
    Own(file)->databases = nullptr;
    Own(file)->keeps_others_out = false;
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
      Own(file)->shared = &self->shared;
      Own(file)->holder = new SharedFile::Holder;
      Own(file)->databases = &self->databases;
      Own(file)->keeps_others_out = self->databases++ == 0;
    }
    file->pMethods = &kMethods;
    return code;
  };
  CHECK(sqlite3_vfs_register(&impl_->vfs, 0) == SQLITE_OK);
}

ObservedVfs::~ObservedVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
}

}  // namespace drakkar::storage
