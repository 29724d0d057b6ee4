#pragma once

#include <memory>
#include <string>

#include "base/result/result.h"

namespace drakkar::storage {

// Claims a data directory for this process with a kernel lock on the file `lock` in it. The kernel
// releases the lock however the process ends. The file contains the holder's process id and is not
// removed.
class DirectoryLock {
 public:
  // Fails with kFailedPrecondition "data directory X is in use by another drakkar (pid N)".
  static Result<std::unique_ptr<DirectoryLock>> Take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace drakkar::storage
