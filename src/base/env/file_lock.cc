#include "base/env/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/env/pause.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar {
namespace {

int SetLock(int descriptor, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return fcntl(descriptor, F_OFD_SETLK, &range);
}

}  // namespace

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<bool> FileLock::TryLock() {
  CHECK(!held_);
  if (descriptor_ < 0) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) return ErrnoError(errno, path_);
  }
  if (SetLock(descriptor_, F_WRLCK) == 0) {
    held_ = true;
    return true;
  }
  if (errno == EAGAIN || errno == EACCES) return false;
  return ErrnoError(errno, path_);
}

Result<void> FileLock::LockWithin(std::chrono::milliseconds limit) {
  for (std::int64_t waited = 0;; ++waited) {
    ASSIGN_OR_RETURN(const bool taken, TryLock());
    if (taken) return Ok();
    if (waited >= limit.count()) {
      return Unavailable(StrCat(path_, " was held by another process for ", limit.count(), " ms"));
    }
    RealPause().For(std::chrono::milliseconds(1));
  }
}

void FileLock::Unlock() {
  if (!held_) return;
  held_ = false;
  static_cast<void>(SetLock(descriptor_, F_UNLCK));
}

}  // namespace drakkar
