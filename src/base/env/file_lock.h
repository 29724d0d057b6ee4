#pragma once

#include <chrono>
#include <string>

#include "base/result/result.h"

namespace drakkar {

// An exclusive lock between processes that share a file: Linux open-file-description locks on the
// whole file, which programs in other languages use too. The file is created (0666 and the umask)
// and kept. Released by Unlock, by the destructor, and by the kernel when the process exits.
class FileLock {
 public:
  explicit FileLock(std::string path) : path_(std::move(path)) {}
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Does not wait: returns false if the lock is held, including by another FileLock of this
  // process.
  Result<bool> TryLock();
  // Waits for a lock that is held only briefly; kUnavailable if that takes longer than `limit`.
  Result<void> LockWithin(std::chrono::milliseconds limit);
  void Unlock();

 private:
  const std::string path_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace drakkar
