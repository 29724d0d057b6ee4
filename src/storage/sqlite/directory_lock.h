#pragma once

#include <memory>
#include <string>

#include "base/result/result.h"

namespace drakkar::storage {

// Holds a data directory for this process: the file `lock` in it, locked by the kernel, which lets
// go when the process ends in whatever way. The file has the holder's process id and stays behind.
class DirectoryLock {
 public:
  // kFailedPrecondition "data directory X is in use by another drakkar (pid N)".
  static Result<std::unique_ptr<DirectoryLock>> Take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace drakkar::storage
