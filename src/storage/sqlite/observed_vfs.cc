#include "storage/sqlite/observed_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>

#include "base/result/check.h"

namespace drakkar::storage {

struct ObservedVfs::Impl {
  sqlite3_vfs vfs;  // first: SQLite hands us its address
  sqlite3_vfs* real;
  IoObserver* observer;
};

namespace {

// SQLite writes its log in pieces of a frame's head and a page, and copies it into the file page by
// page. Pieces that follow each other are gathered and written as one, at the latest before the file
// is synced, read or looked at in any other way: what is promised is promised after a sync. SQLite's
// own layer writes less than 128 KiB in one call.
constexpr std::size_t kMaxGatheredBytes = 124 * 1024;

// SQLite allocates it, with room for the real file behind it.
struct ObservedFile {
  sqlite3_file base;
  IoObserver* observer;
  const char* path;  // lives as long as the file is open
  char* gathered;    // kMaxGatheredBytes, made when first needed
  std::size_t gathered_size;
  sqlite3_int64 gathered_offset;
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
  const int code =
      Real(file)->pMethods->xWrite(Real(file), own->gathered, static_cast<int>(own->gathered_size),
                                   own->gathered_offset);
  // Kept if it failed: nobody may take it for written, and a sync tries it again.
  if (code == SQLITE_OK) own->gathered_size = 0;
  return code;
}

int Close(sqlite3_file* file) {
  const int flushed = Flush(file);
  delete[] Own(file)->gathered;
  Own(file)->gathered = nullptr;
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
int Lock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xLock(Real(file), level);
}
int Unlock(sqlite3_file* file, int level) {
  if (const int code = Flush(file); code != SQLITE_OK) return code;
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
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
    .iVersion = 1,  // no shared memory, no mapping
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
    file->pMethods = &kMethods;
    return code;
  };
  CHECK(sqlite3_vfs_register(&impl_->vfs, 0) == SQLITE_OK);
}

ObservedVfs::~ObservedVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
}

}  // namespace drakkar::storage
