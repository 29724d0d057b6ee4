#include "storage/sqlite/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::storage {

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Take(const std::string& directory) {
  const std::string path = JoinPath(directory, "lock");
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return ErrnoError(errno, path);
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(descriptor));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, path);
    char text[32] = {};
    const ssize_t size = ::pread(descriptor, text, sizeof text - 1, 0);
    const auto pid =
        ParseInt64(Trim(std::string_view(text, size > 0 ? static_cast<std::size_t>(size) : 0)));
    return FailedPrecondition("data directory " + directory +
                              " is in use by another drakkar (pid " +
                              (pid.has_value() ? std::to_string(*pid) : "unknown") + ")");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoError(errno, path);
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  ::close(descriptor_);
}

}  // namespace drakkar::storage
