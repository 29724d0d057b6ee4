// Preloaded into a process: adds the number of seconds in the file $CLOCK_SHIM to the wall clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile long* offset;
static int (*real)(clockid_t, struct timespec*);

__attribute__((constructor)) static void Load(void) {
  real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const char* path = getenv("CLOCK_SHIM");
  const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) offset = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (real == NULL) Load();
  const int result = real(clock, out);
  const int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && is_wall && offset != NULL) out->tv_sec += *offset;
  return result;
}
