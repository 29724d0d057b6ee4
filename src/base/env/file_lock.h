#pragma once

#include <chrono>
#include <string>

#include "base/result/result.h"

namespace drakkar {

// An exclusive lock between processes that share a file: Linux open-file-description locks over the
// whole file, which programs in other languages take too. The file is made (0666 and the umask) and
// kept. Given up by Unlock, by the destructor, and by the kernel when the process ends.
class FileLock {
 public:
  explicit FileLock(std::string path) : path_(std::move(path)) {}
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Never waits: false if someone else has it, another FileLock of this process included.
  Result<bool> TryLock();
  // Waits for others, for locks that are held for the time of a few small files: kUnavailable if it
  // is not to be had within `limit`.
  Result<void> LockWithin(std::chrono::milliseconds limit);
  void Unlock();

 private:
  const std::string path_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace drakkar
