#include "node/runtime/testing/failing_syscalls.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

thread_local bool armed = false;
thread_local int calls_left = 0;
thread_local const char* failed_call = "";

bool FailsNow(const char* name) {
  if (!armed || calls_left-- != 0) return false;
  failed_call = name;
  errno = EIO;
  return true;
}

}  // namespace

// The linker redirects every call here, and __real_ to the system.
#define WRAP(type, name, parameters, arguments, failure) \
  extern "C" type __real_##name parameters;              \
  extern "C" type __wrap_##name parameters {             \
    if (FailsNow(#name)) return failure;                 \
    return __real_##name arguments;                      \
  }

WRAP(int, unlinkat, (int a, const char* b, int c), (a, b, c), -1)
WRAP(int, symlinkat, (const char* a, int b, const char* c), (a, b, c), -1)
WRAP(int, mkfifoat, (int a, const char* b, mode_t c), (a, b, c), -1)
WRAP(int, mkdirat, (int a, const char* b, mode_t c), (a, b, c), -1)
WRAP(int, fstatat, (int a, const char* b, struct stat* c, int d), (a, b, c, d), -1)
WRAP(ssize_t, write, (int a, const void* b, std::size_t c), (a, b, c), -1)
WRAP(ssize_t, read, (int a, void* b, std::size_t c), (a, b, c), -1)
WRAP(int, linkat, (int a, const char* b, int c, const char* d, int e), (a, b, c, d, e), -1)
WRAP(int, fchownat, (int a, const char* b, uid_t c, gid_t d, int e), (a, b, c, d, e), -1)
WRAP(int, fchown, (int a, uid_t b, gid_t c), (a, b, c), -1)
WRAP(int, fchmod, (int a, mode_t b), (a, b), -1)
WRAP(int, fstat, (int a, struct stat* b), (a, b), -1)
WRAP(int, stat, (const char* a, struct stat* b), (a, b), -1)
WRAP(int, lstat, (const char* a, struct stat* b), (a, b), -1)
WRAP(int, mkdir, (const char* a, mode_t b), (a, b), -1)
WRAP(int, rename, (const char* a, const char* b), (a, b), -1)
WRAP(int, remove, (const char* a), (a), -1)
WRAP(int, fsync, (int a), (a), -1)
WRAP(ssize_t, pwrite, (int a, const void* b, std::size_t c, off_t d), (a, b, c, d), -1)
WRAP(ssize_t, readlinkat, (int a, const char* b, char* c, std::size_t d), (a, b, c, d), -1)
WRAP(ssize_t, copy_file_range, (int a, off_t* b, int c, off_t* d, std::size_t e, unsigned f),
     (a, b, c, d, e, f), -1)
WRAP(DIR*, opendir, (const char* a), (a), nullptr)
WRAP(DIR*, fdopendir, (int a), (a), nullptr)
WRAP(dirent*, readdir, (DIR * a), (a), nullptr)
WRAP(int, mount, (const char* a, const char* b, const char* c, unsigned long d, const void* e),
     (a, b, c, d, e), -1)
WRAP(int, statfs, (const char* a, struct statfs* b), (a, b), -1)
WRAP(int, umount2, (const char* a, int b), (a, b), -1)

extern "C" int __real_open(const char* path, int flags, ...);
extern "C" int __wrap_open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return FailsNow("open") ? -1 : __real_open(path, flags, mode);
}

extern "C" int __real_openat(int directory, const char* path, int flags, ...);
extern "C" int __wrap_openat(int directory, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return FailsNow("openat") ? -1 : __real_openat(directory, path, flags, mode);
}

// No call of ours has more than six.
extern "C" long __real_syscall(long number, ...);
extern "C" long __wrap_syscall(long number, ...) {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat2 && FailsNow("openat2")) return -1;
  return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                        arguments[4], arguments[5]);
}

namespace drakkar::node {

FailingSyscalls::FailingSyscalls(int calls_from_now) {
  calls_left = calls_from_now;
  failed_call = "";
  armed = true;
}

FailingSyscalls::~FailingSyscalls() {
  armed = false;
}

std::string FailingSyscalls::failed() {
  return failed_call;
}

}  // namespace drakkar::node
