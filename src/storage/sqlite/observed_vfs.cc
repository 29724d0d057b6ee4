#include "storage/sqlite/observed_vfs.h"

#include <sqlite3.h>

#include <atomic>

#include "base/result/check.h"

namespace drakkar::storage {

struct ObservedVfs::Impl {
  sqlite3_vfs vfs;  // first: SQLite hands us its address
  sqlite3_vfs* real;
  IoObserver* observer;
};

namespace {

// SQLite allocates it, with room for the real file behind it.
struct ObservedFile {
  sqlite3_file base;
  IoObserver* observer;
  const char* path;  // lives as long as the file is open
};
constexpr int kHeaderBytes = (sizeof(ObservedFile) + 7) & ~7;

sqlite3_file* Real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kHeaderBytes);
}
ObservedFile* Own(sqlite3_file* file) {
  return reinterpret_cast<ObservedFile*>(file);
}

int Close(sqlite3_file* file) {
  return Real(file)->pMethods->xClose(Real(file));
}
int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  return Real(file)->pMethods->xRead(Real(file), out, size, offset);
}
int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  if (!Own(file)->observer->OnWrite(Own(file)->path)) return SQLITE_IOERR_WRITE;
  return Real(file)->pMethods->xWrite(Real(file), data, size, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (!Own(file)->observer->OnWrite(Own(file)->path)) return SQLITE_IOERR_TRUNCATE;
  return Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  if (!Own(file)->observer->OnSync(Own(file)->path)) return SQLITE_IOERR_FSYNC;
  const int code = Real(file)->pMethods->xSync(Real(file), flags);
  if (code == SQLITE_OK) Own(file)->observer->AfterSync(Own(file)->path);
  return code;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xLock(Real(file), level);
}
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
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
    file->pMethods = &kMethods;
    return code;
  };
  CHECK(sqlite3_vfs_register(&impl_->vfs, 0) == SQLITE_OK);
}

ObservedVfs::~ObservedVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
}

}  // namespace drakkar::storage
